//! The other side, played by hand: it says what a test wants it to say.

use uroce_stack::wire::cm::*;
use uroce_stack::wire::{Psn, Qpn};

use crate::host::{HERE, Host, OUR_QPN, SERVICE, THERE, ip, mad, want};
use uroce_stack::cm::ConnId;

pub(crate) const PEER_ID: u32 = 0xc548_37b9;
pub(crate) const PEER_GUID: u64 = 0x5054_00ff_fe00_0002;
pub(crate) const PEER_QPN: Qpn = Qpn::new(0x2a);
pub(crate) const PEER_TID: u64 = 0x2_b937_48c5;

/// What the peer knows: both identifiers, and the exchange that is going on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) ours: u32,
    pub(crate) theirs: u32,
    pub(crate) transaction_id: u64,
}

pub(crate) fn path() -> CmPath {
    CmPath {
        local_lid: 0xffff,
        remote_lid: 0xffff,
        local_gid: ip(THERE),
        remote_gid: ip(HERE),
        flow_label: 0x6_c51f,
        hop_limit: 64,
        ack_timeout: 17,
        ..CmPath::NONE
    }
}

/// A REQ as Linux sends it.
pub(crate) fn req() -> Req {
    let header = IpCmHeader { source_port: 0xb9b4, source: ip(THERE), destination: ip(HERE) };
    Req {
        local_comm_id: PEER_ID,
        vendor_id: 0,
        service_id: SERVICE,
        local_ca_guid: PEER_GUID,
        local_qkey: 0,
        local_qpn: PEER_QPN,
        responder_resources: 4,
        local_eecn: 0,
        initiator_depth: 5,
        remote_eecn: 0,
        remote_response_timeout: 20,
        transport: CmTransport::Rc,
        flow_control: false,
        starting_psn: Psn::new(0x8e_7046),
        local_response_timeout: 20,
        retry_count: 7,
        pkey: 0xffff,
        path_mtu: 3,
        rdc_exists: false,
        rnr_retry_count: 7,
        max_cm_retries: 15,
        srq: false,
        primary: path(),
        alternate: CmPath::NONE,
        private_data: header.emit(b"hello").expect("it fits"),
    }
}

pub(crate) fn req_mad(req: Req) -> CmMad {
    mad(PEER_TID, CmMessage::Req(req))
}

impl Peer {
    /// The peer whom the connection manager has just asked.
    pub(crate) fn asked(host: &mut Host) -> Self {
        let sent = host.sent_one();
        let req = want!(sent, Req);
        Self { ours: req.local_comm_id, theirs: PEER_ID, transaction_id: sent.transaction_id }
    }

    /// The peer who has asked, and got the connection `id`.
    pub(crate) fn asking(id: ConnId) -> Self {
        Self { ours: id.comm_id(), theirs: PEER_ID, transaction_id: PEER_TID }
    }

    pub(crate) fn says(&self, message: CmMessage) -> CmMad {
        mad(self.transaction_id, message)
    }

    pub(crate) fn rep(&self) -> CmMad {
        self.says(CmMessage::Rep(self.rep_fields()))
    }

    pub(crate) fn rep_fields(&self) -> Rep {
        Rep {
            local_comm_id: self.theirs,
            remote_comm_id: self.ours,
            local_qkey: 0,
            local_qpn: PEER_QPN,
            local_eecn: 0,
            starting_psn: Psn::new(0xb7_1e79),
            vendor_id: 0,
            responder_resources: 5,
            initiator_depth: 4,
            target_ack_delay: 15,
            failover_accepted: 0,
            flow_control: false,
            rnr_retry_count: 3,
            srq: false,
            local_ca_guid: PEER_GUID,
            private_data: PrivateData::default(),
        }
    }

    pub(crate) fn rtu(&self) -> CmMad {
        self.says(CmMessage::Rtu(Rtu {
            local_comm_id: self.theirs,
            remote_comm_id: self.ours,
            private_data: PrivateData::default(),
        }))
    }

    pub(crate) fn dreq(&self) -> CmMad {
        self.says(CmMessage::Dreq(Dreq {
            local_comm_id: self.theirs,
            remote_comm_id: self.ours,
            remote_qpn: OUR_QPN,
            private_data: PrivateData::default(),
        }))
    }

    pub(crate) fn drep(&self) -> CmMad {
        self.says(CmMessage::Drep(Drep {
            local_comm_id: self.theirs,
            remote_comm_id: self.ours,
            private_data: PrivateData::default(),
        }))
    }

    pub(crate) fn mra(&self, answered: Answered, service_timeout: u8) -> CmMad {
        self.says(CmMessage::Mra(Mra {
            local_comm_id: self.theirs,
            remote_comm_id: self.ours,
            answered,
            service_timeout,
            private_data: PrivateData::default(),
        }))
    }

    pub(crate) fn rej(&self, answered: Answered, reason: RejectReason) -> CmMad {
        self.says(CmMessage::Rej(Rej {
            local_comm_id: self.theirs,
            remote_comm_id: self.ours,
            answered,
            reason,
            info: RejectInfo::default(),
            private_data: PrivateData::default(),
        }))
    }

    /// What a peer says that gave up without having heard of our identifier.
    pub(crate) fn rej_timeout(&self) -> CmMad {
        self.says(CmMessage::Rej(Rej {
            local_comm_id: self.theirs,
            remote_comm_id: 0,
            answered: Answered::Other,
            reason: RejectReason::Timeout,
            info: RejectInfo::new(&PEER_GUID.to_be_bytes()).expect("it fits"),
            private_data: PrivateData::default(),
        }))
    }
}

/// A connection that we asked for, granted and established; nothing is left to send or to fetch.
pub(crate) fn active(host: &mut Host) -> (ConnId, Peer) {
    let id = host.connect();
    let peer = Peer::asked(host);
    host.receive(&peer.rep());
    assert_eq!(host.reply().id, id);
    host.cm.establish(id, b"").expect("the reply is there");
    want!(host.sent_one(), Rtu);
    (id, peer)
}

/// A connection that a peer asked for, granted and established; nothing is left to send or to fetch.
pub(crate) fn passive(host: &mut Host) -> (ConnId, Peer) {
    host.receive(&req_mad(req()));
    let id = host.request().id;
    host.accept(id);
    want!(host.sent_one(), Rep);
    let peer = Peer::asking(id);
    host.receive(&peer.rtu());
    host.event();
    (id, peer)
}
