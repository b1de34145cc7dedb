//! Datagrams: one queue pair asks another a question and is answered, without a connection.

mod shared;

use shared::{End, Outcome};
use uroce::{Access, AddressVector, CompletionExt, GRH_BYTES, QpType, QueuePair, RecvWr, SendWr};

const QKEY: u32 = 0x1234_5678;

fn main() -> Outcome {
    shared::run(server, client)
}

fn datagrams(end: &End) -> Outcome<QueuePair> {
    Ok(end.pd.create_qp(QpType::Ud, &end.cq, &end.cq).build()?.activate(QKEY)?)
}

fn server(end: &mut End) -> Outcome {
    let qp = datagrams(end)?;
    // The IP header stands before the payload.
    let inbox = end.pd.alloc_mr(GRH_BYTES + 64, Access::LOCAL_WRITE)?;
    qp.post_recv(&[RecvWr::new(1, inbox.sge(..))])?;
    end.tell_address(qp.qpn())?;
    let asked = end.cq.wait_one()?.result()?;
    let question = inbox.to_vec(GRH_BYTES..asked.byte_len as usize)?;
    println!("{:?} from queue pair {}", String::from_utf8_lossy(&question), asked.src_qp);
    let mut header = [0; GRH_BYTES];
    inbox.read_at(0, &mut header)?;
    let back = end.pd.create_ah_from_wc(&asked, &header)?;
    qp.post_send(&[SendWr::send_inline(2, b"42").to(&back, asked.src_qp, QKEY).signaled()])?;
    end.cq.wait_one()?.result()?;
    end.meet()
}

fn client(end: &mut End) -> Outcome {
    let qp = datagrams(end)?;
    let inbox = end.pd.alloc_mr(GRH_BYTES + 64, Access::LOCAL_WRITE)?;
    qp.post_recv(&[RecvWr::new(1, inbox.sge(..))])?;
    let (gid, qpn) = end.hear_address()?;
    let there = end.pd.create_ah(&AddressVector::new(gid))?;
    qp.post_send(&[SendWr::send_inline(2, b"what is it?").to(&there, qpn, QKEY)])?;
    let answered = end.cq.wait_one()?.result()?;
    println!("answered {:?}", String::from_utf8_lossy(&inbox.to_vec(GRH_BYTES..answered.byte_len as usize)?));
    end.meet()
}
