//! A shared receive queue: many connections, one stock of receives, and an event when it runs low.

mod shared;

use shared::{End, Outcome};
use uroce::{Access, AsyncEvent, CompletionExt, QpType, RecvWr, SendWr, SrqAttr};

const CONNECTIONS: usize = 3;
const LOW: u32 = 2;

fn main() -> Outcome {
    shared::run(server, client)
}

fn server(end: &mut End) -> Outcome {
    let srq = end.pd.create_srq(SrqAttr { max_wr: 8, ..SrqAttr::default() })?;
    let inbox = end.pd.alloc_mr(CONNECTIONS * 64, Access::LOCAL_WRITE)?;
    let receives: Vec<RecvWr> =
        (0..CONNECTIONS).map(|at| RecvWr::new(at as u64, inbox.sge(at * 64..(at + 1) * 64))).collect();
    srq.post_recv(&receives)?;
    srq.set_limit(LOW)?;
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let qp = end.pd.create_qp(QpType::Rc, &end.cq, &end.cq).srq(&srq).build()?;
        connections.push(end.join(qp)?);
    }
    for _ in &connections {
        let received = end.cq.wait_one()?.result()?;
        let start = received.wr_id as usize * 64;
        let text = inbox.to_vec(start..start + received.byte_len as usize)?;
        println!("queue pair {} got {:?}", received.qp_num, String::from_utf8_lossy(&text));
    }
    let low = end.ctx.wait_async_event(None)?;
    println!("fewer than {LOW} receives are left: {}", low == Some(AsyncEvent::SrqLimitReached(srq.id())));
    end.meet()
}

fn client(end: &mut End) -> Outcome {
    for number in 1..=CONNECTIONS {
        let qp = end.pd.create_qp(QpType::Rc, &end.cq, &end.cq).build()?;
        let qp = end.join(qp)?;
        let text = format!("message {number}");
        qp.post_send(&[SendWr::send_inline(1, text.as_bytes()).signaled()])?;
        end.cq.wait_one()?.result()?;
    }
    end.meet()
}
