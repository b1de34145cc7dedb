//! Completion events: sleep on a descriptor until a completion is there, beside whatever else a program waits
//! for.

mod shared;

use std::os::fd::{AsFd, AsRawFd};

use shared::{End, Outcome};
use uroce::{Completion, CompletionExt, CompletionQueue, RecvWr, SendWr};

const MESSAGES: u32 = 3;

fn main() -> Outcome {
    shared::run(server, client)
}

fn server(end: &mut End) -> Outcome {
    let channel = end.channel.clone();
    println!("an event loop would watch descriptor {}", channel.as_fd().as_raw_fd());
    end.qp.post_recv(&vec![RecvWr::new(1, []); MESSAGES as usize])?;
    end.cq.req_notify(false)?;
    end.meet()?;
    let mut received = 0;
    while received < MESSAGES {
        let event = channel.get_event()?;
        println!("the queue with token {} has something", event.token);
        // Arm first, then take everything: in this order no completion goes unnoticed.
        end.cq.req_notify(false)?;
        received += take_all(&end.cq)?;
    }
    end.meet()
}

fn take_all(cq: &CompletionQueue) -> Outcome<u32> {
    let (mut out, mut taken) = ([Completion::default(); 4], 0);
    while let found @ 1.. = cq.poll(&mut out) {
        for completion in &out[..found] {
            println!("message {:?}", completion.result()?.immediate);
            taken += 1;
        }
    }
    Ok(taken)
}

fn client(end: &mut End) -> Outcome {
    end.meet()?;
    for number in 1..=MESSAGES {
        end.qp.post_send(&[SendWr::send(1, []).imm(number).signaled()])?;
        end.cq.wait_one()?.result()?;
    }
    end.meet()
}
