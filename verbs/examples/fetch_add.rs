//! FETCH_ADD: a counter in the peer's memory that any number of clients may share.

mod shared;

use shared::{End, Outcome};
use uroce::{Access, CompletionExt, SendWr};

fn main() -> Outcome {
    shared::run(server, client)
}

fn server(end: &mut End) -> Outcome {
    let counter = end.pd.alloc_mr(8, Access::LOCAL_WRITE | Access::REMOTE_ATOMIC)?;
    counter.store_u64(0, 100)?;
    end.tell(counter.remote())?;
    counter.fetch_add_u64(0, 1)?; // At the same time as the client.
    end.meet()?;
    println!("the counter is {}", counter.load_u64(0)?);
    Ok(())
}

fn client(end: &mut End) -> Outcome {
    let counter = end.hear()?;
    let former = end.pd.alloc_mr(8, Access::LOCAL_WRITE)?;
    end.qp.post_send(&[SendWr::fetch_and_add(1, former.sge(..), counter, 10).signaled()])?;
    end.cq.wait_one()?.result()?;
    println!("it was {} before 10 were added", former.load_u64(0)?);
    end.meet()
}
