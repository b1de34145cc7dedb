//! Send work requests.

use uroce_stack::wire::Qpn;
use uroce_stack::{PostError, Recipient, RemoteAddr, SendFlags, SendOp};

use super::data::Data;
use super::sge::SgeList;
use crate::ah::AddressHandle;
use crate::remote::RemoteMr;

/// A send work request: an operation, its data, and how it is to be done.
///
/// Made by the function of its operation, refined by the methods that follow:
///
/// ```
/// # let pair = uroce::testing::loopback_pair(Default::default())?;
/// # let pd = pair.0.alloc_pd()?;
/// # let mr = pd.alloc_mr(64, uroce::Access::LOCAL_WRITE | uroce::Access::REMOTE_WRITE)?;
/// # let remote = mr.remote();
/// use uroce::SendWr;
/// let write = SendWr::rdma_write(1, mr.sge(..8), remote).imm(7).signaled();
/// let fetch = SendWr::fetch_and_add(2, mr.sge(8..16), remote, 1).fence().signaled();
/// # Ok::<(), uroce::Error>(())
/// ```
///
/// Unless [`signaled`](Self::signaled), or on a queue pair made with `sq_sig_all`, success brings no
/// completion; failure always does. What the transport service of a queue pair does not have is refused when posted:
///
/// | | RC, XRC | UC | UD |
/// |---|---|---|---|
/// | SEND, also with immediate | yes | yes | yes, [to](Self::to) an address |
/// | RDMA WRITE, also with immediate | yes | yes | |
/// | SEND with invalidate, RDMA READ, atomics, ATOMIC WRITE, FLUSH | yes | | |
/// | local invalidate, bind, fast registration | yes | yes | |
#[derive(Clone, Debug)]
pub struct SendWr {
    wr_id: u64,
    op: SendOp,
    flags: SendFlags,
    data: Data,
    to: To,
    /// What was asked for that the operation does not have.
    misuse: Option<&'static str>,
}

/// Who gets it.
#[derive(Clone, Debug)]
enum To {
    Peer,
    Datagram { ah: AddressHandle, qpn: Qpn, qkey: u32 },
    Srq(u32),
}

impl SendWr {
    /// Sends it to a queue pair, or to the members of a multicast group, which have number [`Qpn::MULTICAST`]; UD only,
    /// and there always.
    ///
    /// `qkey` is what the receiver must have. With bit 31 set, the sender's own Q_Key is sent instead (IBTA, Q_Key).
    #[must_use]
    pub fn to(mut self, ah: &AddressHandle, qpn: Qpn, qkey: u32) -> Self {
        self.to = To::Datagram { ah: ah.clone(), qpn, qkey };
        self
    }

    /// Addresses it to a shared receive queue of the peer by its [number](crate::SharedReceiveQueue::number); XRC
    /// initiators only, and there always.
    #[must_use]
    pub fn to_srq(mut self, number: u32) -> Self {
        self.to = To::Srq(number);
        self
    }

    /// Adds an immediate, which the peer finds in the completion of a receive; also an RDMA WRITE consumes
    /// one then.
    ///
    /// The value is in host order at both ends. Only SEND and RDMA WRITE carry one: on anything else posting
    /// fails.
    #[must_use]
    pub fn imm(mut self, value: u32) -> Self {
        match &mut self.op {
            SendOp::Send { immediate } | SendOp::Write { immediate, .. } => *immediate = Some(value),
            _ => self.misuse = Some("only SEND without invalidation and RDMA WRITE carry an immediate"),
        }
        self
    }

    /// Success, too, brings a completion.
    #[must_use]
    pub fn signaled(self) -> Self {
        self.with(SendFlags::SIGNALED)
    }

    /// Does not start before every earlier READ and atomic operation of the queue pair has completed.
    #[must_use]
    pub fn fence(self) -> Self {
        self.with(SendFlags::FENCE)
    }

    /// Wakes a peer whose completion queue is armed for solicited completions only.
    #[must_use]
    pub fn solicited(self) -> Self {
        self.with(SendFlags::SOLICITED)
    }

    pub(crate) fn as_stack(&self) -> Result<uroce_stack::SendWr<'_>, PostError> {
        if let Some(misuse) = self.misuse {
            return Err(PostError::Invalid(misuse));
        }
        let to = match &self.to {
            To::Peer => Recipient::Peer,
            To::Datagram { ah, qpn, qkey } => Recipient::Datagram { ah: ah.stack(), qpn: *qpn, qkey: *qkey },
            To::Srq(srqn) => Recipient::Xrc { srqn: *srqn },
        };
        let (wr_id, op, flags) = (self.wr_id, self.op, self.flags);
        Ok(uroce_stack::SendWr { wr_id, op, flags, data: self.data.gather(), to })
    }

    pub(super) fn new(wr_id: u64, op: SendOp, sges: impl Into<SgeList>) -> Self {
        Self::with_data(wr_id, op, Data::Sges(sges.into()))
    }

    pub(super) const fn with_data(wr_id: u64, op: SendOp, data: Data) -> Self {
        Self { wr_id, op, flags: data.flags(), data, to: To::Peer, misuse: None }
    }

    fn with(mut self, flag: SendFlags) -> Self {
        self.flags |= flag;
        self
    }
}

impl From<RemoteMr> for RemoteAddr {
    fn from(remote: RemoteMr) -> Self {
        Self { va: remote.addr, rkey: remote.rkey }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uroce_stack::Sge;

    const REMOTE: RemoteMr = RemoteMr { addr: 0x1000, len: 64, rkey: 7 };

    #[test]
    fn the_builder_says_what_was_asked_for() {
        let wr = SendWr::rdma_write(9, Sge::default(), REMOTE).imm(5).signaled().fence().solicited();
        let wr = wr.as_stack().expect("a valid request");
        let remote = RemoteAddr { va: 0x1000, rkey: 7 };
        assert_eq!((wr.wr_id, wr.op), (9, SendOp::Write { remote, immediate: Some(5) }));
        assert_eq!(wr.flags, SendFlags::SIGNALED | SendFlags::FENCE | SendFlags::SOLICITED);
    }

    #[test]
    fn an_immediate_where_there_is_none_is_refused() {
        for wr in [SendWr::rdma_read(1, [], REMOTE), SendWr::send_with_inv(1, [], 7), SendWr::local_inv(1, 7)]
        {
            assert!(wr.imm(5).as_stack().is_err());
        }
    }

    #[test]
    fn a_shared_receive_queue_is_named_by_its_number() {
        let wr = SendWr::send(1, []).to_srq(0x1234);
        assert!(matches!(wr.as_stack().expect("a valid request").to, Recipient::Xrc { srqn: 0x1234 }));
    }
}
