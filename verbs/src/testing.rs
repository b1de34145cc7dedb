//! Two devices on a cable in memory: for tests of applications, without privileges and without a network.

use std::net::{IpAddr, Ipv4Addr};

use uroce_nic::{Cable, Fault, Nic, Plan, Seeded, cable};
use uroce_stack::wire::MacAddr;

use crate::config::{DeviceConfig, Drive, Link};
use crate::context::Context;
use crate::cq::CompletionQueue;
use crate::error::Error;
use crate::pd::ProtectionDomain;
use crate::qp::{ConnectionParams, PreparedQueuePair, QueuePair};
use uroce_stack::{Access, QpType};

/// Frames that each direction of the cable holds.
const DEPTH: usize = 256;
/// Room for the largest path MTU and every header.
const MAX_FRAME: usize = 4096 + 128;

/// What the cable does to frames, and who drives the devices at its ends. The default is a perfect cable and
/// a thread at each end.
#[derive(Clone, Debug)]
pub struct LinkModel {
    /// The cable's MTU in bytes; 4200, unless set, carries path MTU 4096.
    pub mtu: u32,
    /// Who drives either device. With [`Drive::Inline`] both have to be driven by the test.
    pub drive: Drive,
    /// Seeds the faults, and every random choice of both devices.
    pub seed: u64,
    /// The probability, 0 to 1, that a frame is lost.
    pub loss: f64,
    /// The probability that a frame arrives twice.
    pub duplication: f64,
    /// The probability that a bit of a frame is flipped; the receiver drops it then.
    pub corruption: f64,
    /// The probability that up to eight later frames overtake a frame.
    pub reordering: f64,
}

impl LinkModel {
    /// A cable that loses, repeats, corrupts and reorders frames, each with this probability.
    #[must_use]
    pub fn faulty(seed: u64, rate: f64) -> Self {
        Self { seed, loss: rate, duplication: rate, corruption: rate, reordering: rate, ..Self::default() }
    }

    fn is_perfect(&self) -> bool {
        [self.loss, self.duplication, self.corruption, self.reordering].iter().all(|rate| *rate <= 0.0)
    }

    /// The same faults for the same seed, others in each direction.
    fn faults(&self, direction: u8) -> Plan {
        let seed = self.seed ^ u64::from(direction) << 56;
        let (loss, duplication, corruption, reordering) =
            (self.loss, self.duplication, self.corruption, self.reordering);
        Seeded { seed, loss, duplication, corruption, reordering, span: 8 }.plan()
    }
}

impl Default for LinkModel {
    fn default() -> Self {
        let (loss, duplication, corruption, reordering) = (0.0, 0.0, 0.0, 0.0);
        Self { mtu: 4200, drive: Drive::default(), seed: 0, loss, duplication, corruption, reordering }
    }
}

/// Two devices, `192.0.2.1` and `192.0.2.2`, joined by a cable.
///
/// # Errors
/// As [`Context::open`].
pub fn loopback_pair(model: LinkModel) -> Result<(Context, Context), Error> {
    let cable = cable::pair_with_fd(DEPTH, MAX_FRAME);
    let (left, right) = cable.map_err(Error::system("cannot make the eventfd of a cable"))?;
    Ok((open(left, 1, &model)?, open(right, 2, &model)?))
}

/// One end of a connection: a device, a domain, a completion queue for everything, and a queue pair in RTS.
#[derive(Debug)]
pub struct Connected {
    /// The device.
    pub ctx: Context,
    /// The domain of the queue pair.
    pub pd: ProtectionDomain,
    /// Where its sends and receives complete.
    pub cq: CompletionQueue,
    /// The queue pair: 128 sends and receives of up to 4 entries, which allows its peer everything.
    pub qp: QueuePair,
}

/// [`loopback_pair`] with a queue pair on each device, [connected](connect) to each other.
///
/// # Errors
/// As [`Context::open`].
pub fn connected_pair(model: LinkModel) -> Result<(Connected, Connected), Error> {
    let (left, right) = loopback_pair(model)?;
    connect(&left, &right)
}

/// A queue pair on each of two devices, connected to each other.
///
/// They wait for receives for ever (`rnr_retry` 7): a test machine may be busy.
///
/// # Errors
/// As [`connect_with`].
pub fn connect(left: &Context, right: &Context) -> Result<(Connected, Connected), Error> {
    connect_with(left, right, &ConnectionParams { rnr_retry: 7, ..ConnectionParams::default() })
}

/// [`connect`] with other parameters.
///
/// # Errors
/// [`Error::Refused`] when a device has no object left, [`Error::Modify`] when they do not reach each other
/// or a parameter is out of range.
pub fn connect_with(
    left: &Context,
    right: &Context,
    params: &ConnectionParams,
) -> Result<(Connected, Connected), Error> {
    let ((left_pd, left_cq), (right_pd, right_cq)) = (parts(left)?, parts(right)?);
    let left_qp = prepare(&left_pd, &left_cq)?.params(params.clone());
    let right_qp = prepare(&right_pd, &right_cq)?.params(params.clone());
    let (ours, theirs) = (left_qp.endpoint(), right_qp.endpoint());
    let right_qp = right_qp.connect(ours)?;
    let left_qp = left_qp.connect(theirs)?;
    Ok((
        Connected { ctx: left.clone(), pd: left_pd, cq: left_cq, qp: left_qp },
        Connected { ctx: right.clone(), pd: right_pd, cq: right_cq, qp: right_qp },
    ))
}

fn open(end: Cable, number: u8, model: &LinkModel) -> Result<Context, Error> {
    let other = 3 - number;
    let link = Link {
        mac: mac(number),
        addresses: vec![address(number)],
        mtu: model.mtu,
        neighbours: vec![(address(other), mac(other))],
    };
    let mut seed = [number; 32];
    seed[..8].copy_from_slice(&model.seed.to_le_bytes());
    let nic: Box<dyn Nic> = match model.is_perfect() {
        true => Box::new(end),
        false => Box::new(Fault::new(end, Some(model.faults(number)), None)),
    };
    Context::open(DeviceConfig::with_nic(nic, link).drive(model.drive).seed(seed))
}

fn parts(ctx: &Context) -> Result<(ProtectionDomain, CompletionQueue), Error> {
    Ok((ctx.alloc_pd()?, ctx.create_cq(256).build()?))
}

fn prepare(pd: &ProtectionDomain, cq: &CompletionQueue) -> Result<PreparedQueuePair, Error> {
    let access = Access::REMOTE | Access::FLUSH_GLOBAL;
    pd.create_qp(QpType::Rc, cq, cq)
        .max_send_sge(4)
        .max_recv_sge(4)
        .max_inline_data(256)
        .access(access)
        .build()
}

fn address(number: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, number).into()
}

const fn mac(number: u8) -> MacAddr {
    MacAddr([0x02, 0, 0, 0, 0, number])
}
