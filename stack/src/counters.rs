//! What happened, counted: every silent drop, every NAK, every retry.

/// Declares counters with the names they are shown under, and the type that holds their values.
macro_rules! counters {
    (
        $(#[$enum_doc:meta])* enum $Counter:ident;
        $(#[$struct_doc:meta])* struct $Counters:ident;
        $($(#[$doc:meta])* $variant:ident = $name:literal,)+
    ) => {
        $(#[$enum_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $Counter {
            $($(#[$doc])* $variant,)+
        }

        impl $Counter {
            /// Every counter, in the order they are shown.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name it is shown under.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        $(#[$struct_doc])*
        #[derive(Clone, Debug)]
        pub struct $Counters([u64; $Counter::ALL.len()]);

        impl Default for $Counters {
            fn default() -> Self {
                Self([0; $Counter::ALL.len()])
            }
        }

        impl $Counters {
            /// The value of one counter.
            #[must_use]
            pub const fn get(&self, counter: $Counter) -> u64 {
                self.0[counter as usize]
            }

            /// Every counter by name, in the order they are shown.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
                $Counter::ALL.iter().map(|counter| (counter.name(), self.get(*counter)))
            }

            pub(crate) const fn add(&mut self, counter: $Counter) {
                let value = &mut self.0[counter as usize];
                *value = value.wrapping_add(1);
            }
        }
    };
}
pub(crate) use counters;

counters! {
    /// A counter of an engine.
    ///
    /// Where `rdma_rxe` or mlx5 count the same thing in `hw_counters`, the name is theirs.
    enum Counter;
    /// The values of every [`Counter`]; they start at 0 and wrap after 2^64.
    struct Counters;
    /// Packets sent.
    SentPkts = "sent_pkts",
    /// Packets received that were meant for this endpoint and whole.
    RcvdPkts = "rcvd_pkts",
    /// SEND messages sent.
    RdmaSends = "rdma_sends",
    /// SEND messages received.
    RdmaRecvs = "rdma_recvs",
    /// RDMA WRITE requests received.
    RxWriteRequests = "rx_write_requests",
    /// RDMA READ requests received.
    RxReadRequests = "rx_read_requests",
    /// Atomic requests received.
    RxAtomicRequests = "rx_atomic_requests",
    /// ATOMIC WRITE requests received.
    RxAtomicWriteRequests = "rx_atomic_write_requests",
    /// FLUSH requests received.
    RxFlushRequests = "rx_flush_requests",
    /// Requests received again and not executed again.
    DuplicateRequest = "duplicate_request",
    /// Request packets that arrived ahead of their turn.
    OutOfSequence = "out_of_sequence",
    /// Requests that found no receive posted (RNR NAK sent).
    SendRnrErr = "send_rnr_err",
    /// RNR NAKs received.
    RcvdRnrErr = "rcvd_rnr_err",
    /// Sequence error NAKs received.
    PacketSeqErr = "packet_seq_err",
    /// Sequence error NAKs sent.
    SendSeqErr = "send_seq_err",
    /// Responses that skipped an unanswered READ or atomic request.
    ImpliedNakSeqErr = "implied_nak_seq_err",
    /// ACK timeouts.
    LocalAckTimeoutErr = "local_ack_timeout_err",
    /// Packets sent again.
    RetransmittedPkts = "retransmitted_pkts",
    /// Work requests that ran out of retries.
    RetryExceededErr = "retry_exceeded_err",
    /// Work requests that ran out of RNR retries.
    RetryRnrExceededErr = "retry_rnr_exceeded_err",
    /// Invalid request NAKs sent.
    RespInvalidRequest = "resp_invalid_request",
    /// Remote access error NAKs sent.
    RespRemoteAccessErrors = "resp_remote_access_errors",
    /// Remote operational error NAKs sent.
    RespOperationalErrors = "resp_operational_errors",
    /// Invalid request NAKs received.
    ReqRemoteInvalidRequest = "req_remote_invalid_request",
    /// Remote access error NAKs received.
    ReqRemoteAccessErrors = "req_remote_access_errors",
    /// Remote operational error NAKs received, and NAKs of undefined codes.
    ReqRemoteOperationalErrors = "req_remote_operational_errors",
    /// Local protection errors of send work requests.
    ReqLocalProtErr = "req_local_prot_err",
    /// Local protection or length errors of receives.
    RespLocalErr = "resp_local_err",
    /// Responses that do not answer the request they name.
    BadRespErr = "req_bad_response",
    /// Completions that found their queue full.
    CqOverrun = "cq_overrun",
    /// Congestion notification packets received.
    RpCnpHandled = "rp_cnp_handled",
    /// Frames for somebody else: another protocol, port or address family.
    NotRoce = "rx_not_roce",
    /// Frames whose IP or UDP header is broken, unsupported or a fragment.
    BadIp = "rx_ip_errors",
    /// Packets shorter than their headers, pad and ICRC.
    BadLength = "rx_length_errors",
    /// Packets with an opcode that does not exist.
    UnknownOpcode = "rx_unknown_opcode",
    /// Packets with a transport version other than 0.
    BadVersion = "rx_version_errors",
    /// Packets with a wrong ICRC.
    IcrcErrors = "rx_icrc_encapsulated",
    /// Packets for a queue pair that does not exist.
    UnknownQp = "rx_unknown_qp",
    /// Packets of a service that is not the queue pair's.
    WrongService = "rx_wrong_service",
    /// Packets for a queue pair that does not take them in its state.
    WrongState = "rx_wrong_state",
    /// Packets that do not come from the queue pair's peer or are not sent to its address.
    WrongSource = "rx_wrong_source",
    /// Packets with a P_Key that does not match.
    BadPkey = "bad_pkey_cntr",
    /// Datagrams with a Q_Key that does not match.
    BadQkey = "qkey_viol_cntr",
    /// Datagrams for an address that is not ours.
    WrongDestination = "rx_wrong_destination",
    /// Multicast datagrams for a group without members here.
    NoGroup = "rx_no_multicast_group",
    /// Multicast datagrams delivered; one for each member.
    MulticastDelivered = "rx_multicast_delivered",
    /// Messages of unreliable services that found no receive posted.
    NoReceive = "rx_no_receive",
    /// Messages of unreliable services that are longer than their receive, and were dropped.
    TooLong = "rx_too_long",
    /// Messages of unreliable connections that lost a packet and were dropped.
    LostMessage = "rx_lost_message",
    /// Packets of unreliable connections that break the protocol or ask for memory that they may not have.
    UcRefused = "rx_uc_refused",
    /// Requests ahead of a gap that was reported already.
    GapDropped = "rx_gap_dropped",
    /// Duplicates of READ or atomic requests that nothing is kept of, or that ask for other memory.
    DuplicateDropped = "rx_duplicate_dropped",
    /// Responses to what was answered before, or was never asked.
    StaleResponse = "rx_stale_response",
}

/// The counters of the engine and of one of its queue pairs.
#[derive(Debug)]
pub(crate) struct Tally<'a> {
    pub(crate) engine: &'a mut Counters,
    pub(crate) queue_pair: &'a mut Counters,
}

impl Tally<'_> {
    pub(crate) const fn add(&mut self, counter: Counter) {
        self.engine.add(counter);
        self.queue_pair.add(counter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (index, counter) in Counter::ALL.iter().enumerate() {
            assert!(Counter::ALL[..index].iter().all(|other| other.name() != counter.name()));
        }
    }

    #[test]
    fn each_counts_for_itself() {
        let mut counters = Counters::default();
        counters.add(Counter::BadPkey);
        counters.add(Counter::BadPkey);
        assert_eq!(counters.get(Counter::BadPkey), 2);
        assert_eq!(counters.iter().map(|(_, value)| value).sum::<u64>(), 2);
    }
}
