//! Queue pairs beside the first, on the same engine.

use super::*;

impl Host {
    /// As many more queue pairs, each connected to a queue pair of its own at the peer: the first to the one behind
    /// [`PEER_QPN`].
    pub fn neighbours(&mut self, count: u32) -> Vec<NewQp> {
        (1..=count).map(|number| self.neighbour(number, self.pd)).collect()
    }

    /// One of them, in any protection domain.
    pub fn neighbour(&mut self, number: u32, pd: Pd) -> NewQp {
        let qp = self.engine.create_qp(pd, &self.init()).expect("room for a queue pair");
        for state in [QpState::Init, QpState::Rtr, QpState::Rts] {
            let mut attr = attr_to(state, &self.setup);
            attr.dest_qpn = attr.dest_qpn.map(|qpn| Qpn::new(qpn.get() + number));
            self.engine.modify_qp(self.now, qp.qpn, &attr).expect("allowed");
        }
        qp
    }

    pub fn state_of(&self, qpn: Qpn) -> QpState {
        let (attr, _) = self.engine.query_qp(qpn).expect("the queue pair exists");
        attr.state.expect("the state is told")
    }
}

impl Pkt {
    /// The peer sends it to another queue pair than the first.
    pub fn at(self, qp: &NewQp) -> Self {
        Self { dest_qp: Some(qp.qpn), ..self }
    }

    /// It goes to the peer of neighbour number `number`.
    pub fn to_neighbour(&self, number: u32) -> Self {
        Self { dest_qp: Some(Qpn::new(PEER_QPN.get() + number)), ..self.clone() }
    }
}

/// Posts to the send queue of a neighbour.
pub fn post_to(qp: &mut NewQp, wr_id: u64, op: SendOp, sges: &[Sge]) {
    let flags = SendFlags::empty();
    qp.send
        .push(&SendWr { wr_id, op, flags, data: Gather::Sges(sges), to: Recipient::Peer })
        .expect("the request is accepted");
    qp.send.ring_doorbell();
}
