//! RDMA verbs over RoCEv2 in user space: queue pairs, memory regions and completion queues on a plain network
//! card.
//!
//! The names are those of `libibverbs`, the safety is Rust's. There is no kernel module and no RDMA hardware:
//! the host channel adapter is a state machine in this process, which checks every key at the moment bytes
//! move. So dropping a [`MemoryRegion`] revokes it, posting is safe, and only registering [raw
//! memory](ProtectionDomain::reg_mr_raw) is not.
//!
//! ```
//! use uroce::{Access, CompletionExt, QpType, RecvWr, SendWr};
//!
//! // Two devices on an in-memory cable; `Context::open` opens real ones.
//! let (left, right) = uroce::testing::loopback_pair(Default::default())?;
//! let (pd, cq) = (left.alloc_pd()?, left.create_cq(16).build()?);
//! let (peer_pd, peer_cq) = (right.alloc_pd()?, right.create_cq(16).build()?);
//!
//! let qp = pd.create_qp(QpType::Rc, &cq, &cq).build()?;
//! let peer = peer_pd.create_qp(QpType::Rc, &peer_cq, &peer_cq).build()?;
//! let (ours, theirs) = (qp.endpoint(), peer.endpoint());
//! let (qp, peer) = (qp.connect(theirs)?, peer.connect(ours)?);
//!
//! let inbox = peer_pd.alloc_mr(4096, Access::LOCAL_WRITE)?;
//! peer.post_recv(&[RecvWr::new(1, inbox.sge(..))])?;
//! let outbox = pd.alloc_mr_from(b"hello", Access::empty())?;
//! qp.post_send(&[SendWr::send(2, outbox.sge(..)).signaled()])?;
//!
//! cq.wait_one()?.result()?;
//! let length = peer_cq.wait_one()?.result()?.byte_len as usize;
//! assert_eq!(inbox.to_vec(..length)?, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # From verbs to here
//!
//! | C | here |
//! |---|---|
//! | `ibv_open_device`, `ibv_query_device`, `ibv_query_port` | [`Context::open`], [`query_device`](Context::query_device), [`query_port`](Context::query_port) |
//! | `ibv_alloc_pd` | [`Context::alloc_pd`] |
//! | `ibv_reg_mr`, `ibv_rereg_mr`, `ibv_dereg_mr` | [`alloc_mr`](ProtectionDomain::alloc_mr), [`scope`](ProtectionDomain::scope), [`reg_mr_raw`](ProtectionDomain::reg_mr_raw); [`reregister`](MemoryRegion::reregister); [`try_destroy`](MemoryRegion::try_destroy) or drop |
//! | `ibv_alloc_mw`, `ibv_bind_mw`, `IBV_WR_BIND_MW`, `IBV_WR_LOCAL_INV` | [`alloc_mw`](ProtectionDomain::alloc_mw), [`bind`](MemoryWindow::bind), [`SendWr::bind_mw`], [`SendWr::local_inv`] |
//! | `ib_alloc_mr`, `IB_WR_REG_MR` of the kernel | [`alloc_fast_mr`](ProtectionDomain::alloc_fast_mr), [`SendWr::reg_mr`] |
//! | `ibv_create_cq`, `ibv_poll_cq`, `ibv_req_notify_cq` | [`Context::create_cq`], [`poll`](CompletionQueue::poll), [`req_notify`](CompletionQueue::req_notify) |
//! | `ibv_resize_cq`, `ibv_modify_cq` | [`resize`](CompletionQueue::resize), [`modify`](CompletionQueue::modify) |
//! | `ibv_comp_channel`, `ibv_get_cq_event` | [`CompletionChannel`], [`get_event`](CompletionChannel::get_event); nothing to acknowledge |
//! | `ibv_create_qp`, `ibv_modify_qp`, `ibv_query_qp` | [`ProtectionDomain::create_qp`], [`modify`](QueuePair::modify), [`query`](QueuePair::query) |
//! | `ibv_post_send`, `ibv_post_recv`, `bad_wr` | [`post_send`](QueuePair::post_send), [`post_recv`](QueuePair::post_recv), [`PostError::index`] |
//! | `ibv_wr_start`, `ibv_wr_complete`, `ibv_wr_abort` | [`start_send`](QueuePair::start_send), [`submit`](SendBatch::submit), drop |
//! | `ibv_create_srq`, `ibv_modify_srq`, `ibv_query_srq`, `ibv_post_srq_recv` | [`create_srq`](ProtectionDomain::create_srq), [`set_limit`](SharedReceiveQueue::set_limit), [`resize`](SharedReceiveQueue::resize), [`query`](SharedReceiveQueue::query), [`post_recv`](SharedReceiveQueue::post_recv) |
//! | `ibv_open_xrcd`, `ibv_create_srq_ex`, `ibv_get_srq_num` | [`Context::open_xrcd`], [`create_xrc_srq`](ProtectionDomain::create_xrc_srq), [`number`](SharedReceiveQueue::number) |
//! | `ibv_create_ah`, `ibv_create_ah_from_wc`, `wr.ud` | [`create_ah`](ProtectionDomain::create_ah), [`create_ah_from_wc`](ProtectionDomain::create_ah_from_wc), [`SendWr::to`] |
//! | `ibv_attach_mcast`, `ibv_detach_mcast` | [`attach_multicast`](QueuePair::attach_multicast), [`detach_multicast`](QueuePair::detach_multicast) |
//! | `ibv_get_async_event` | [`Context::async_event`] |
//!
//! # Handles, threads, and who does the work
//!
//! [`Context`], [`ProtectionDomain`], [`CompletionQueue`], [`SharedReceiveQueue`], [`XrcDomain`] and [`AddressHandle`]
//! are cheap handles that keep their parents alive; [`QueuePair`], [`MemoryRegion`], [`FastMemoryRegion`] and
//! [`MemoryWindow`] are unique. All are `Send` and `Sync`, may be dropped in any order, and
//! never wait for a peer when they are. [`Drive`] says who runs the engine: a thread, or the application's
//! own calls.
//!
//! A completion is visible only after the acknowledgement of its message has left, so an application may exit
//! on its last completion.

mod ah;
mod backend;
mod bytes;
mod channel;
mod cm;
mod completion;
mod config;
mod context;
mod cq;
mod device;
mod driver;
mod endpoint;
mod error;
mod event;
mod fast;
mod gid;
mod grh;
mod mr;
mod mw;
mod open;
mod os;
mod pd;
mod qp;
mod remote;
mod scope;
mod srq;
pub mod testing;
mod wait;
mod way;
mod wr;
mod xrc;

pub use ah::AddressHandle;
pub use bytes::RegisteredBytes;
pub use channel::{CompletionChannel, CqEvent};
pub use cm::{
    CmCounter, CmCounters, CmEvent, CmEventType, CmId, ConnParam, Connection, EventChannel, Incoming,
    Listener, PortSpace, RejectReason, UDP_QKEY, UdParam,
};
pub use completion::{CompletionExt, WcError};
pub use config::{Backend, DeviceConfig, Drive, Link};
pub use context::Context;
pub use cq::{CompletionQueue, CqBuilder, CqId};
pub use device::{DeviceAttr, GidEntry, PortAttr, PortState, Progress};
pub use endpoint::Endpoint;
pub use error::{Error, ModifyError, ParseError, PostError, RouteError};
pub use event::AsyncEvent;
pub use fast::FastMemoryRegion;
pub use gid::Gid;
pub use grh::BYTES as GRH_BYTES;
pub use mr::{MemoryRegion, MrChange};
pub use mw::{BindInfo, MemoryWindow};
pub use pd::ProtectionDomain;
pub use qp::{
    AddressVector, ConnectionParams, PreparedQueuePair, QpAttr, QpBuilder, QpInitAttr, QueuePair, SendBatch,
};
pub use remote::RemoteMr;
pub use scope::{MrScope, ScopedMr};
pub use srq::{SharedReceiveQueue, SrqAttr, SrqId};
pub use uroce_nic::host::{HostError, RouteError as HostRouteError};
pub use uroce_nic::{Mode, Nic, NicStats, OpenError, RxFrame, XdpAttach};
pub use uroce_stack::wire::{MacAddr, Mtu, Psn, Qpn};
pub use uroce_stack::{
    Access, AttrMask, BindMw, Completion, Counter, Counters, Error as RefusedError, FlushPlacement,
    FlushScope, Limits, ModifyError as RefusedChange, MwType, PostError as PostErrorKind, QpState, QpType,
    RegisterMr, Sge, WcFlags, WcOpcode, WcStatus,
};
pub use wr::{RecvWr, SendWr, SgeList, Word};
pub use xrc::XrcDomain;
