//! A memory window: a part of a region, opened to one peer and taken back, without registering anything.

mod shared;

use shared::{End, Outcome};
use uroce::{Access, BindInfo, CompletionExt, MwType, RecvWr, SendWr};

fn main() -> Outcome {
    shared::run(server, client)
}

fn server(end: &mut End) -> Outcome {
    let mr = end.pd.alloc_mr(4096, Access::LOCAL_WRITE | Access::MW_BIND)?;
    let window = end.pd.alloc_mw(MwType::Type2)?;
    let part = BindInfo::new(&mr, 1024..1088, Access::REMOTE_WRITE);
    end.qp.post_recv(&[RecvWr::new(1, [])])?;
    end.qp.post_send(&[SendWr::bind_mw(2, &window, part).signaled()])?;
    end.cq.wait_one()?.result()?;
    end.tell(window.remote())?;
    let received = end.cq.wait_one()?.result()?;
    println!("the peer wrote {:?}", String::from_utf8_lossy(&mr.to_vec(1024..1036)?));
    println!("and has closed the window: {}", received.invalidated_rkey == Some(window.rkey()));
    end.meet()
}

fn client(end: &mut End) -> Outcome {
    let window = end.hear()?;
    let write = SendWr::rdma_write_inline(1, b"in the frame", window);
    end.qp.post_send(&[write, SendWr::send_with_inv(2, [], window.rkey).signaled()])?;
    end.cq.wait_one()?.result()?;
    end.meet()
}
