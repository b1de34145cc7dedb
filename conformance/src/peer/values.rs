//! Numbers of the verbs interface.

/// Access rights, with the values of `ibv_access_flags`.
pub mod access {
    /// The peer's own receives and READs may write here.
    pub const LOCAL_WRITE: u32 = 1;
    /// WRITEs of the other side.
    pub const REMOTE_WRITE: u32 = 2;
    /// READs of the other side.
    pub const REMOTE_READ: u32 = 4;
    /// Atomics of the other side.
    pub const REMOTE_ATOMIC: u32 = 8;
    /// Windows may be bound to it.
    pub const MW_BIND: u32 = 16;
    /// FLUSHes of the other side, as far as everybody sees the bytes.
    pub const FLUSH_GLOBAL: u32 = 256;
    /// What a plain region is given: everything of the first kind.
    pub const ALL: u32 = LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC;
}

/// Completion statuses, with the values of `ibv_wc_status`.
pub mod status {
    /// It worked.
    pub const SUCCESS: u32 = 0;
    /// A message longer than the receive posted for it, or than a datagram may be.
    pub const LOC_LEN_ERR: u32 = 1;
    /// The local queue pair could not carry the request out.
    pub const LOC_QP_OP_ERR: u32 = 2;
    /// A local key or range was wrong.
    pub const LOC_PROT_ERR: u32 = 4;
    /// The queue pair was in error before its turn.
    pub const WR_FLUSH_ERR: u32 = 5;
    /// A window could not be bound.
    pub const MW_BIND_ERR: u32 = 6;
    /// The other side found the request invalid; on a receive, the message was.
    pub const REM_INV_REQ_ERR: u32 = 9;
    /// The other side refused the access.
    pub const REM_ACCESS_ERR: u32 = 10;
    /// The other side could not carry the request out.
    pub const REM_OP_ERR: u32 = 11;
    /// The other side did not answer.
    pub const RETRY_EXC_ERR: u32 = 12;
    /// The other side never had a receive posted.
    pub const RNR_RETRY_EXC_ERR: u32 = 13;
}

/// Completion opcodes, with the values of `ibv_wc_opcode`.
pub mod opcode {
    /// A SEND completed at its sender.
    pub const SEND: u32 = 0;
    /// A WRITE completed.
    pub const WRITE: u32 = 1;
    /// A READ completed.
    pub const READ: u32 = 2;
    /// A COMPARE SWAP completed.
    pub const COMPARE_SWAP: u32 = 3;
    /// A FETCH ADD completed.
    pub const FETCH_ADD: u32 = 4;
    /// A window was bound.
    pub const BIND_MW: u32 = 5;
    /// A local key was invalidated.
    pub const LOCAL_INV: u32 = 6;
    /// A FLUSH completed.
    pub const FLUSH: u32 = 8;
    /// An ATOMIC WRITE completed.
    pub const ATOMIC_WRITE: u32 = 9;
    /// A SEND arrived.
    pub const RECV: u32 = 128;
    /// A WRITE with immediate data arrived.
    pub const RECV_WRITE_WITH_IMM: u32 = 129;
}

/// Flags of completions, with the values of `ibv_wc_flags`.
pub mod flag {
    /// The message came with a global route, as all do on RoCE.
    pub const GRH: u32 = 1;
    /// There is immediate data.
    pub const WITH_IMM: u32 = 2;
    /// The kernel's value of [`WITH_INV`], which programs know as "checksum is right".
    pub const KERNEL_WITH_INV: u32 = 4;
    /// A key was invalidated.
    pub const WITH_INV: u32 = 8;
}

/// Asynchronous events, with the values of `ibv_event_type`.
pub mod event {
    /// The peer sent an invalid request.
    pub const QP_REQ_ERR: u32 = 2;
    /// The peer attempted a forbidden access.
    pub const QP_ACCESS_ERR: u32 = 3;
    /// The send queue has drained.
    pub const SQ_DRAINED: u32 = 5;
    /// A shared receive queue holds fewer receives than its limit.
    pub const SRQ_LIMIT_REACHED: u32 = 15;
    /// A queue pair takes no more receives from its shared receive queue.
    pub const QP_LAST_WQE_REACHED: u32 = 16;
}
