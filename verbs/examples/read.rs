//! RDMA READ: bytes come from the peer's memory; the peer's program takes no part in it.

mod shared;

use shared::{End, Outcome};
use uroce::{Access, CompletionExt, SendWr};

fn main() -> Outcome {
    shared::run(server, client)
}

fn server(end: &mut End) -> Outcome {
    let source = end.pd.alloc_mr_from(b"come and get it", Access::REMOTE_READ)?;
    end.tell(source.remote())?;
    end.meet() // The client has read.
}

fn client(end: &mut End) -> Outcome {
    let source = end.hear()?;
    let target = end.pd.alloc_mr(15, Access::LOCAL_WRITE)?;
    end.qp.post_send(&[SendWr::rdma_read(1, target.sge(..), source).signaled()])?;
    end.cq.wait_one()?.result()?;
    println!("read {:?}", String::from_utf8_lossy(&target.to_vec(..)?));
    end.meet()
}
