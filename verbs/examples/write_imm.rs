//! RDMA WRITE with immediate: as a WRITE, and it tells the peer so through a completion.

mod shared;

use shared::{End, Outcome};
use uroce::{Access, CompletionExt, RecvWr, SendWr};

fn main() -> Outcome {
    shared::run(server, client)
}

fn server(end: &mut End) -> Outcome {
    let target = end.pd.alloc_mr(64, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
    end.qp.post_recv(&[RecvWr::new(1, [])])?; // The data does not go there; the immediate takes it.
    end.tell(target.remote())?;
    let told = end.cq.wait_one()?.result()?;
    let data = target.to_vec(..told.byte_len as usize)?;
    println!("part {:?} of the memory now holds {:?}", told.immediate, String::from_utf8_lossy(&data));
    end.meet()
}

fn client(end: &mut End) -> Outcome {
    let target = end.hear()?;
    let source = end.pd.alloc_mr_from(b"block seven", Access::empty())?;
    end.qp.post_send(&[SendWr::rdma_write(1, source.sge(..), target).imm(7).signaled()])?;
    end.cq.wait_one()?.result()?;
    end.meet()
}
