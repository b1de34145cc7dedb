//! SEND with immediate: 32 bits arrive in the completion itself, beside the data or, as here, instead of it.

mod shared;

use shared::{End, Outcome};
use uroce::{CompletionExt, RecvWr, SendWr};

fn main() -> Outcome {
    shared::run(server, client)
}

fn server(end: &mut End) -> Outcome {
    end.qp.post_recv(&[RecvWr::new(1, [])])?;
    end.meet()?;
    let received = end.cq.wait_one()?.result()?;
    println!("received {} bytes and {:#x?}", received.byte_len, received.immediate);
    end.meet()
}

fn client(end: &mut End) -> Outcome {
    end.meet()?;
    end.qp.post_send(&[SendWr::send(1, []).imm(0xcafe).signaled()])?;
    end.cq.wait_one()?.result()?;
    end.meet()
}
