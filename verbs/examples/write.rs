//! RDMA WRITE: bytes appear in the peer's memory; the peer's program takes no part in it.

mod shared;

use shared::{End, Outcome};
use uroce::{Access, CompletionExt, SendWr};

fn main() -> Outcome {
    shared::run(server, client)
}

fn server(end: &mut End) -> Outcome {
    let target = end.pd.alloc_mr(64, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
    end.tell(target.remote())?;
    end.meet()?; // The client has written.
    println!("the memory holds {:?}", String::from_utf8_lossy(&target.to_vec(..13)?));
    Ok(())
}

fn client(end: &mut End) -> Outcome {
    let target = end.hear()?;
    let source = end.pd.alloc_mr_from(b"from far away", Access::empty())?;
    end.qp.post_send(&[SendWr::rdma_write(1, source.sge(..13), target).signaled()])?;
    end.cq.wait_one()?.result()?;
    end.meet()
}
