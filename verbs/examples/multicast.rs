//! Multicast: one datagram, a copy for each member of the group.

mod shared;

use shared::{End, Outcome};
use uroce::{Access, AddressVector, CompletionExt, GRH_BYTES, Gid, QpType, Qpn, RecvWr, SendWr};

const GROUP: &str = "239.1.2.3";
const QKEY: u32 = 0x1234_5678;
const MEMBERS: usize = 3;

fn main() -> Outcome {
    shared::run(server, client)
}

fn server(end: &mut End) -> Outcome {
    let inboxes = end.pd.alloc_mr(MEMBERS * 128, Access::LOCAL_WRITE)?;
    let mut members = Vec::new();
    for number in 0..MEMBERS {
        let qp = end.pd.create_qp(QpType::Ud, &end.cq, &end.cq).build()?.activate(QKEY)?;
        qp.post_recv(&[RecvWr::new(number as u64, inboxes.sge(number * 128..(number + 1) * 128))])?;
        qp.attach_multicast(GROUP.parse::<Gid>()?)?;
        members.push(qp);
    }
    end.meet()?;
    for _ in &members {
        let received = end.cq.wait_one()?.result()?;
        let start = received.wr_id as usize * 128;
        let text = inboxes.to_vec(start + GRH_BYTES..start + received.byte_len as usize)?;
        println!("queue pair {} got {:?}", received.qp_num, String::from_utf8_lossy(&text));
    }
    end.meet()
}

fn client(end: &mut End) -> Outcome {
    let qp = end.pd.create_qp(QpType::Ud, &end.cq, &end.cq).build()?.activate(QKEY)?;
    let everybody = end.pd.create_ah(&AddressVector::new(GROUP.parse()?))?;
    end.meet()?; // The members have joined.
    qp.post_send(&[SendWr::send_inline(1, b"to all of you")
        .to(&everybody, Qpn::MULTICAST, QKEY)
        .signaled()])?;
    end.cq.wait_one()?.result()?;
    end.meet()
}
