//! What `uroce devinfo` shows is what the create calls accept: exactly so many, and not one more.

mod common;

use common::uroce;
use serde_json::Value;
use uroce::testing::{LinkModel, connect_with, connected_pair, loopback_pair};
use uroce::{
    Access, ConnectionParams, Context, DeviceConfig, Drive, Error, Limits, Link, MwType, PostErrorKind,
    ProtectionDomain, QpAttr, QpBuilder, QpState, QpType, RecvWr, SendWr, Sge, SrqAttr,
};

/// The limits that are shown.
struct Shown(Value);

impl Shown {
    fn new() -> Self {
        Self(uroce("devinfo cable --json").json()["limits"].clone())
    }

    fn get(&self, name: &str) -> u32 {
        let value = self.0[name].as_u64().unwrap_or_else(|| panic!("{name} is not in {}", self.0));
        u32::try_from(value).expect("a count")
    }
}

fn device() -> Context {
    let model = LinkModel { drive: Drive::Inline, ..LinkModel::default() };
    loopback_pair(model).expect("a pair").0
}

fn domain() -> ProtectionDomain {
    device().alloc_pd().expect("a domain")
}

/// `create` succeeds as often as `limit` says, and then no more.
#[track_caller]
fn exactly<T>(limit: u32, mut create: impl FnMut() -> Result<T, Error>) {
    let held: Result<Vec<T>, Error> = (0..limit).map(|_| create()).collect();
    let held = held.unwrap_or_else(|error| panic!("not even {limit}: {error}"));
    let error = create().err().unwrap_or_else(|| panic!("more than {limit}"));
    assert!(error.to_string().contains("left"), "{error}");
    drop(held);
}

/// `create` accepts `limit` and refuses one more.
#[track_caller]
fn up_to<T>(limit: u32, create: impl Fn(u32) -> Result<T, Error>) {
    if let Err(error) = create(limit) {
        panic!("not even {limit}: {error}");
    }
    assert!(create(limit + 1).is_err(), "more than {limit}");
}

#[test]
fn so_many_objects() {
    let (shown, ctx) = (Shown::new(), device());
    exactly(shown.get("max_pd"), || ctx.alloc_pd());
    exactly(shown.get("max_cq"), || ctx.create_cq(1).build());
    exactly(shown.get("max_xrcd"), || ctx.open_xrcd());
    let pd = ctx.alloc_pd().expect("a domain");
    exactly(shown.get("max_mw"), || pd.alloc_mw(MwType::Type2));
    exactly(shown.get("max_srq"), || pd.create_srq(SrqAttr { max_wr: 1, ..SrqAttr::default() }));
    let cq = ctx.create_cq(1).build().expect("a queue");
    exactly(shown.get("max_qp"), || {
        pd.create_qp(QpType::Rc, &cq, &cq).max_send_wr(1).max_recv_wr(1).max_inline_data(0).build()
    });
    let memory = [0; 64];
    pd.scope(|scope| exactly(shown.get("max_mr"), || scope.reg_mr_readonly(&memory)));
}

#[test]
fn so_many_members_of_groups() {
    let (shown, pd) = (Shown::new(), domain());
    let cq = pd.context().create_cq(1).build().expect("a queue");
    let member = || pd.create_qp(QpType::Ud, &cq, &cq).build().map(uroce::PreparedQueuePair::into_queue_pair);
    let one = member().expect("a queue pair");
    let mut groups = (0u32..).map(|number| std::net::IpAddr::from((0xef00_0000 + number).to_be_bytes()));
    exactly(shown.get("max_mcast_grp"), || one.attach_multicast(groups.next().expect("a group")));
    drop(one);
    let group = std::net::IpAddr::from([239, 1, 2, 3]);
    exactly(shown.get("max_mcast_qp_attach"), || {
        let qp = member()?;
        qp.attach_multicast(group).map(|()| qp)
    });
}

#[test]
fn queues_so_deep() {
    let (shown, pd) = (Shown::new(), domain());
    let cq = pd.context().create_cq(1).build().expect("a queue");
    let qp = |with: &dyn Fn(QpBuilder<'_>) -> QpBuilder<'_>| {
        let small = pd.create_qp(QpType::Rc, &cq, &cq).max_send_wr(1).max_recv_wr(1);
        with_builder(small, with)
    };
    up_to(shown.get("max_cqe"), |entries| pd.context().create_cq(entries).build());
    up_to(shown.get("max_qp_wr"), |count| qp(&|qp| qp.max_send_wr(count)));
    up_to(shown.get("max_qp_wr"), |count| qp(&|qp| qp.max_recv_wr(count)));
    up_to(shown.get("max_sge"), |count| qp(&|qp| qp.max_send_sge(count)));
    up_to(shown.get("max_sge"), |count| qp(&|qp| qp.max_recv_sge(count)));
    up_to(shown.get("max_inline_data"), |bytes| qp(&|qp| qp.max_inline_data(bytes)));
    up_to(shown.get("max_srq_wr"), |max_wr| pd.create_srq(SrqAttr { max_wr, ..SrqAttr::default() }));
    up_to(shown.get("max_srq_sge"), |max_sge| pd.create_srq(SrqAttr { max_sge, ..SrqAttr::default() }));
    up_to(shown.get("max_pkeys") - 1, |index| {
        let qp = pd.create_qp(QpType::Rc, &cq, &cq).build_reset()?;
        let (pkey_index, access) = (Some(index as u16), Some(Access::empty()));
        Ok(qp.modify(&QpAttr { pkey_index, port: Some(1), access, ..QpAttr::to(QpState::Init) })?)
    });
}

fn with_builder<'a>(
    builder: QpBuilder<'a>,
    with: &dyn Fn(QpBuilder<'a>) -> QpBuilder<'a>,
) -> Result<uroce::PreparedQueuePair, Error> {
    with(builder).build()
}

#[test]
fn so_many_reads_outstanding() {
    let shown = Shown::new();
    let connected = |params: &ConnectionParams| {
        let model = LinkModel { drive: Drive::Inline, ..LinkModel::default() };
        let (left, right) = loopback_pair(model)?;
        connect_with(&left, &right, params)
    };
    up_to(shown.get("max_qp_init_rd_atom"), |count| {
        connected(&ConnectionParams { max_rd_atomic: count as u8, ..ConnectionParams::default() })
    });
    up_to(shown.get("max_qp_rd_atom"), |count| {
        connected(&ConnectionParams { max_dest_rd_atomic: count as u8, ..ConnectionParams::default() })
    });
}

#[test]
fn entries_of_a_request_and_bytes_of_a_message() {
    let shown = Shown::new();
    let model = LinkModel { drive: Drive::Inline, ..LinkModel::default() };
    let (end, _other) = connected_pair(model).expect("a connection");
    let message = |length| SendWr::send(1, Sge { addr: 0, length, lkey: 0 });
    let refused = |length| end.qp.post_send(&[message(length)]).err().map(|error| error.kind);
    assert_eq!(refused(shown.get("max_msg_sz")), None);
    let too_long = refused(shown.get("max_msg_sz") + 1);
    assert!(matches!(too_long, Some(PostErrorKind::TooLong { .. })), "{too_long:?}");
    let inbox = end.pd.alloc_mr(64, Access::LOCAL_WRITE).expect("memory");
    let receive = |entries: usize| end.qp.post_recv(&[RecvWr::new(1, vec![inbox.sge(..); entries])]);
    assert!(receive(4).is_ok() && receive(5).is_err(), "the queue pair was made for 4 entries");
}

/// Memory as large as the default limit does not exist; the rule is the same for every limit.
#[test]
fn regions_so_large() {
    let (end, _other) = uroce_nic::cable::pair(8, 4224);
    let link = Link {
        mac: uroce::MacAddr([2, 0, 0, 0, 0, 1]),
        addresses: vec![[192, 0, 2, 1].into()],
        mtu: 4200,
        neighbours: Vec::new(),
    };
    let limits = Limits { max_mr_size: 8192, ..Limits::default() };
    let config = DeviceConfig::with_nic(Box::new(end), link).drive(Drive::Inline).limits(limits);
    let ctx = Context::open(config).expect("a device");
    assert_eq!(ctx.query_device().limits.max_mr_size, 8192);
    let pd = ctx.alloc_pd().expect("a domain");
    up_to(8192, |bytes| pd.alloc_mr(bytes as usize, Access::empty()));
}
