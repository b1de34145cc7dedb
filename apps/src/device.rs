//! Opening devices: an interface as the command line names it, or two ends of a cable.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::Deref;
use std::sync::Arc;

use uroce::{
    AsyncEvent, Completion, CompletionExt, Context, DeviceConfig, Drive, Gid, Link, MacAddr, Mtu, QueuePair,
};
use uroce_nic::cable;

use crate::cli::DeviceArgs;
use crate::error::{Failure, Result};
use crate::stat::Serving;

/// What is given in place of an interface to have both ends in this process.
pub(crate) const CABLE: &str = "cable";

/// Frames on the cable in each direction: few enough to stay in the cache, enough to share the cost of a round.
const CABLE_FRAMES: usize = 32;
/// Room for the largest path MTU and every header.
const CABLE_FRAME: usize = 4096 + 128;
/// What path MTU 4096 needs.
const CABLE_MTU: u32 = 4096 + 80;

/// An open device, which `uroce stat` can look at while it is open.
#[derive(Debug)]
pub(crate) struct Device {
    ctx: Context,
    serving: Option<Serving>,
}

impl Device {
    fn new(ctx: Context) -> Self {
        let serving = Serving::start(&ctx);
        Self { ctx, serving }
    }

    /// Lets `uroce stat` show these queue pairs, too, as long as they live.
    pub(crate) fn show(&self, queue_pairs: &[Arc<QueuePair>]) {
        if let Some(serving) = &self.serving {
            serving.add(queue_pairs);
        }
    }
}

impl Deref for Device {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.ctx
    }
}

/// Opens an interface.
pub(crate) fn open(interface: &str, args: &DeviceArgs, drive: Drive) -> Result<Device> {
    let mut config = DeviceConfig::new(interface).backend(args.backend.into()).drive(drive);
    if let Some(index) = args.gid_idx {
        config = config.gid_index(index);
    }
    if let Some(queue) = args.queue {
        config = config.queue(queue);
    }
    Ok(Device::new(Context::open(config)?))
}

/// Two devices joined by a cable.
pub(crate) fn cable_pair(left: Drive, right: Drive) -> Result<(Device, Device)> {
    let (one, other) = cable::pair(CABLE_FRAMES, CABLE_FRAME);
    Ok((cable_end(one, 1, left)?, cable_end(other, 2, right)?))
}

/// The path MTU to use: the one asked for if the link carries it, else the largest that it carries.
pub(crate) fn path_mtu(ctx: &Context, asked: Option<Mtu>) -> Result<Mtu> {
    let active = ctx.active_mtu();
    match asked {
        Some(asked) if asked > active => Err(too_large(ctx, asked, active)),
        asked => Ok(asked.unwrap_or(active)),
    }
}

/// A completion that succeeded; otherwise why it did not, which may lie in the interface.
pub(crate) fn checked(ctx: &Context, completion: &Completion) -> Result<Completion> {
    completion.result().map_err(|error| {
        let lost = happened(ctx, |event| matches!(event, AsyncEvent::DeviceFatal | AsyncEvent::PortErr));
        if lost { lost_interface(ctx) } else { error.into() }
    })
}

/// Fails once the device has failed.
pub(crate) fn check(ctx: &Context) -> Result<()> {
    let failed = happened(ctx, |event| matches!(event, AsyncEvent::DeviceFatal));
    if failed { Err(lost_interface(ctx)) } else { Ok(()) }
}

fn happened(ctx: &Context, what: impl Fn(&AsyncEvent) -> bool) -> bool {
    std::iter::from_fn(|| ctx.async_event()).filter(what).count() > 0
}

fn lost_interface(ctx: &Context) -> Failure {
    let name = ctx.query_device().name;
    Failure::new(format!(
        "{name} was taken down, lost its carrier, or is gone, so the peer cannot be reached any more: look at \
         `ip link show {name}`, then start both ends again"
    ))
}

/// Refuses a peer whose packets are of another family than ours.
pub(crate) fn check_family(ours: Gid, peer: Gid) -> Result<()> {
    if ours.ip().is_ipv4() == peer.ip().is_ipv4() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "our GID {ours} and the peer's {peer} are of different families: choose one of the same with -g INDEX, as \
         `uroce devinfo` lists them"
    )))
}

/// Tells what the engine counted, for whoever wants to know why a figure is low.
pub(crate) fn log_counters(ctx: &Context) {
    let counters = ctx.counters();
    for (name, count) in counters.iter().filter(|(_, count)| *count > 0) {
        tracing::debug!(count, "engine: {name}");
    }
    for (name, count) in ctx.query_port().stats.iter().filter(|(_, count)| *count > 0) {
        tracing::debug!(count, "interface: {name}");
    }
}

fn too_large(ctx: &Context, asked: Mtu, active: Mtu) -> Failure {
    let port = ctx.query_port();
    let name = ctx.query_device().name;
    let needed = asked.bytes() + 80;
    Failure::new(format!(
        "path MTU {} does not fit {name}, which has link MTU {} and carries {} as {}: use `-m {}`, or raise the \
         link at both ends with `ip link set {name} mtu {needed}`",
        asked.bytes(),
        port.link_mtu,
        active.bytes(),
        port.mode,
        active.bytes(),
    ))
}

fn cable_end(end: cable::Cable, number: u8, drive: Drive) -> Result<Device> {
    let other = 3 - number;
    let link = Link {
        mac: mac(number),
        addresses: vec![address(number)],
        mtu: CABLE_MTU,
        neighbours: vec![(address(other), mac(other))],
    };
    Ok(Device::new(Context::open(DeviceConfig::with_nic(Box::new(end), link).drive(drive))?))
}

fn address(number: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, number).into()
}

const fn mac(number: u8) -> MacAddr {
    MacAddr([0x02, 0, 0, 0, 0, number])
}
