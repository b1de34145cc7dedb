//! SEND: a message fills the buffer that its receiver has posted.

mod shared;

use shared::{End, Outcome};
use uroce::{Access, CompletionExt, RecvWr, SendWr};

fn main() -> Outcome {
    shared::run(server, client)
}

fn server(end: &mut End) -> Outcome {
    let inbox = end.pd.alloc_mr(64, Access::LOCAL_WRITE)?;
    end.qp.post_recv(&[RecvWr::new(1, inbox.sge(..))])?;
    end.meet()?;
    let received = end.cq.wait_one()?.result()?;
    let message = inbox.to_vec(..received.byte_len as usize)?;
    println!("received {:?}", String::from_utf8_lossy(&message));
    end.meet()
}

fn client(end: &mut End) -> Outcome {
    let outbox = end.pd.alloc_mr_from(b"hello", Access::empty())?;
    end.meet()?;
    end.qp.post_send(&[SendWr::send(1, outbox.sge(..)).signaled()])?;
    end.cq.wait_one()?.result()?;
    println!("the message has arrived");
    end.meet()
}
