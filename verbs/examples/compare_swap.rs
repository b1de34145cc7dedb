//! CMP_SWAP: a lock in the peer's memory, taken if it is free and given back.

mod shared;

use shared::{End, Outcome};
use uroce::{Access, CompletionExt, SendWr};

const FREE: u64 = 0;
const OURS: u64 = 42;

fn main() -> Outcome {
    shared::run(server, client)
}

fn server(end: &mut End) -> Outcome {
    let lock = end.pd.alloc_mr(8, Access::LOCAL_WRITE | Access::REMOTE_ATOMIC)?;
    end.tell(lock.remote())?;
    end.meet()?; // The client holds the lock.
    println!("held by {}", lock.load_u64(0)?);
    println!("we may not have it: {:?}", lock.compare_exchange(0, FREE, 1)?);
    end.meet()?;
    end.meet()?; // The client has given it back.
    println!("now we may: {:?}", lock.compare_exchange(0, FREE, 1)?);
    Ok(())
}

fn client(end: &mut End) -> Outcome {
    let lock = end.hear()?;
    let former = end.pd.alloc_mr(8, Access::LOCAL_WRITE)?;
    for (expected, new) in [(FREE, OURS), (OURS, FREE)] {
        end.qp.post_send(&[SendWr::cmp_and_swp(1, former.sge(..), lock, expected, new).signaled()])?;
        end.cq.wait_one()?.result()?;
        println!("it was {}, so it is {new} now: {}", former.load_u64(0)?, former.load_u64(0)? == expected);
        end.meet()?;
        if new == OURS {
            end.meet()?;
        }
    }
    Ok(())
}
