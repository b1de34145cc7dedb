//! Opening a device.

use std::sync::{Arc, Mutex};

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;
use uroce_nic::Nic;
use uroce_nic::host::Interface;
use uroce_stack::wire::{MAX_HEADER, Mtu};
use uroce_stack::{Config, Engine};

use crate::backend;
use crate::config::{Attachment, DeviceConfig, Drive, Link, Wrapper};
use crate::context::Inner;
use crate::driver::{Core, PollThread, Port};
use crate::error::Error;
use crate::os::fill_random;
use crate::way::{Way, choose};

/// Which of the generator's streams packet sequence numbers come from; the engine uses the first one, 0.
const PSN_STREAM: u64 = 1;

pub(crate) fn open(config: DeviceConfig) -> Result<Inner, Error> {
    let DeviceConfig { attachment, wrapper, engine, source, max_mtu, drive, seed } = config;
    let (way, nic) = attach(attachment)?;
    let nic = match wrapper {
        Some(Wrapper(wrap)) => wrap(nic),
        None => nic,
    };
    let now = way.now();
    let (gid_index, source) = choose(source, &way, &now.gids)?;
    let mtu = path_mtu(&way, now.mtu, nic.max_frame())?.min(max_mtu);
    let seed = seed.map_or_else(random_seed, Ok)?;
    let limits = engine.limits.clone();
    let mut engine = Engine::new(Config { seed, port_mtu: mtu, ..engine })?;
    engine.set_addresses(&now.gids.iter().map(|entry| entry.gid.ip()).collect::<Vec<_>>());
    let core = Core::new(Port::new(engine, mtu, nic, way.watch()?), drive == Drive::Inline)?;
    let thread = start(&core, way.name(), drive)?;
    let mut rng = ChaCha12Rng::from_seed(seed);
    rng.set_stream(PSN_STREAM);
    Ok(Inner { thread, core, way, source, gid_index, mtu, limits, rng: Mutex::new(rng) })
}

fn attach(attachment: Attachment) -> Result<(Way, Box<dyn Nic>), Error> {
    match attachment {
        Attachment::Made { nic, link } => {
            let nic = backend::with_loopback(nic, link.mac.0);
            Ok((Way::Given(checked(link)?), nic))
        }
        Attachment::Interface { name, backend, queue } => {
            let interface = Interface::find(&name)?;
            let nic = backend::open(&interface, backend, queue)?;
            Ok((Way::Host(interface), nic))
        }
    }
}

fn checked(link: Link) -> Result<Link, Error> {
    if link.addresses.is_empty() {
        return Err(Error::Config("a link needs at least one address"));
    }
    Ok(link)
}

/// The largest path MTU that both the link and the backend's frames carry.
fn path_mtu(way: &Way, link_mtu: u32, max_frame: usize) -> Result<Mtu, Error> {
    let too_small = || Error::LinkMtu { interface: way.name().to_owned(), mtu: link_mtu };
    let link = Mtu::for_link(link_mtu).ok_or_else(too_small)?;
    let fits = |mtu: &Mtu| *mtu <= link && mtu.bytes() + MAX_HEADER <= max_frame;
    Mtu::ALL.into_iter().rev().find(fits).ok_or_else(too_small)
}

fn random_seed() -> Result<[u8; 32], Error> {
    let mut seed = [0; 32];
    fill_random(&mut seed).map_err(Error::system("cannot get a random seed"))?;
    Ok(seed)
}

fn start(core: &Arc<Core>, name: &str, drive: Drive) -> Result<Option<PollThread>, Error> {
    match drive {
        Drive::Thread { cpu } => PollThread::start(core, name, cpu).map(Some),
        Drive::Inline => Ok(None),
    }
}
