//! An AF_XDP socket as a [`Nic`].

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use xsk_rs::config::BindFlags;

use super::program::XdpProgram;
use super::rings::{self, CAPACITY, Failure, Layout, PAIR_CAPACITY};
use super::rx::Receiver;
use super::tx::Transmitter;
use crate::host::Interface;
use crate::{Mode, Nic, NicStats, OpenError, RxFrame, XdpAttach, sys};

/// Bytes that a frame may have beyond the MTU: Ethernet header and one VLAN tag.
const LINK_OVERHEAD: usize = 14 + 4;
/// Room for frames that the kernel copied and the device has not sent yet. The default holds less than one ring.
const SEND_BUFFER: libc::c_int = 8 << 20;
/// The kernel frees the queue of a closed socket a little later.
const BUSY_RETRIES: u32 = 100;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// How to set up an AF_XDP socket. `Default` suits most.
#[derive(Clone, Debug)]
pub struct XdpConfig {
    /// Where the steering program must run; `None` takes the driver if it can, else the generic path.
    pub attach: Option<XdpAttach>,
    /// Whether to let the driver use our buffers without a copy where it can.
    pub zero_copy: bool,
    /// Chunks of 4 KiB that wait for received frames, a power of two. Fewer stay warmer in the cache, more hold a
    /// longer burst.
    pub rx_chunks: u32,
    /// Frames of up to 8 KiB that can be on their way out, a power of two.
    pub tx_frames: u32,
}

impl Default for XdpConfig {
    fn default() -> Self {
        Self { attach: None, zero_copy: true, rx_chunks: 1024, tx_frames: 256 }
    }
}

/// One queue of one interface through an AF_XDP socket.
pub struct AfXdp {
    // Dropped in this order: the socket first, so that the program never sends to one that is half gone.
    rx: Receiver,
    tx: Transmitter,
    program: XdpProgram,
    mode: Mode,
    stats: NicStats,
}

impl AfXdp {
    /// Attaches the steering program to `interface` and opens one of its queues.
    ///
    /// # Errors
    /// The interface cannot be used so: see [`OpenError`].
    pub fn open(interface: &str, queue: u32, config: &XdpConfig) -> Result<Self, OpenError> {
        Self::bind(&XdpProgram::attach(interface, config.attach)?, queue, config)
    }

    /// Opens a queue of an interface that has the steering program already.
    ///
    /// # Errors
    /// There is no such queue, it is in use, or the kernel refuses the socket.
    pub fn bind(program: &XdpProgram, queue: u32, config: &XdpConfig) -> Result<Self, OpenError> {
        let interface = program.interface();
        check(interface, queue, config)?;
        let wants_two = interface.mtu as usize + LINK_OVERHEAD > CAPACITY;
        let base = BindFlags::XDP_USE_NEED_WAKEUP | copy_flags(program, config);
        let (opened, multi_buffer) = match wants_two && program.takes_fragments() {
            true => open_multi_buffer(interface, queue, config, base)?,
            false => (open(interface, queue, config, base)?, false),
        };
        if wants_two && !multi_buffer {
            tell_path_mtu(interface);
        }
        let (rx, tx, frames) = opened;
        let zero_copy = rings::is_zero_copy(rx.socket());
        enlarge_send_buffer(tx.socket());
        program.insert(queue, rx.socket())?;
        let capacity = if multi_buffer { PAIR_CAPACITY } else { CAPACITY };
        let max_frame = capacity.min(interface.mtu as usize + LINK_OVERHEAD);
        Ok(Self {
            rx: Receiver::new(rx),
            tx: Transmitter::new(tx, frames, max_frame, zero_copy),
            mode: Mode::AfXdp {
                attach: program.attached(),
                zero_copy,
                multi_buffer: multi_buffer || !wants_two,
            },
            program: program.clone(),
            stats: NicStats::default(),
        })
    }

    /// The program that sends frames here.
    pub fn program(&self) -> &XdpProgram {
        &self.program
    }
}

impl Nic for AfXdp {
    fn rx(&mut self, budget: usize, deliver: &mut dyn FnMut(RxFrame<'_>)) -> io::Result<usize> {
        self.rx.receive(budget, &mut self.stats, deliver)
    }

    fn tx(&mut self, budget: usize, fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> io::Result<usize> {
        Ok(self.tx.fill(budget, &mut self.stats, fill))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tx.flush(&mut self.stats)
    }

    fn max_frame(&self) -> usize {
        self.tx.max_frame()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.rx.rings().socket())
    }

    fn stats(&self) -> NicStats {
        let [no_chunk, ring_full, other, tx_invalid] = self.rx.rings().losses();
        let mut stats = self.stats;
        stats.rx_no_buffer += no_chunk;
        stats.rx_ring_full += ring_full;
        stats.rx_kernel += other;
        stats.tx_dropped += tx_invalid;
        stats
    }

    fn mode(&self) -> Mode {
        self.mode
    }
}

type Opened = (rings::RxRings, rings::TxRings, Vec<rings::TxFrame>);

fn check(interface: &Interface, queue: u32, config: &XdpConfig) -> Result<(), OpenError> {
    if queue >= interface.rx_queues {
        let (interface, queues) = (interface.name.clone(), interface.rx_queues);
        return Err(OpenError::NoSuchQueue { interface, queue, queues });
    }
    if !config.rx_chunks.is_power_of_two() || !config.tx_frames.is_power_of_two() {
        return Err(OpenError::Config { what: "rx_chunks and tx_frames must be powers of two" });
    }
    if config.rx_chunks > 1 << 20 || config.tx_frames > 1 << 19 {
        return Err(OpenError::Config {
            what: "rx_chunks and tx_frames ask for more than 4 GiB of frame buffers",
        });
    }
    Ok(())
}

/// Generic programs meet frames only after the driver has made a copy.
fn copy_flags(program: &XdpProgram, config: &XdpConfig) -> BindFlags {
    let may = config.zero_copy && program.attached() == XdpAttach::Native;
    if may { BindFlags::empty() } else { BindFlags::XDP_COPY }
}

fn open_multi_buffer(
    interface: &Interface,
    queue: u32,
    config: &XdpConfig,
    base: BindFlags,
) -> Result<(Opened, bool), OpenError> {
    match open(interface, queue, config, base | BindFlags::XDP_USE_SG) {
        // Kernels before 6.6 do not know the flag.
        Err(OpenError::Io { source, .. }) if source.raw_os_error() == Some(libc::EINVAL) => {
            Ok((open(interface, queue, config, base)?, false))
        }
        other => Ok((other?, true)),
    }
}

fn open(
    interface: &Interface,
    queue: u32,
    config: &XdpConfig,
    flags: BindFlags,
) -> Result<Opened, OpenError> {
    let layout = Layout { rx_chunks: config.rx_chunks, tx_frames: config.tx_frames, flags };
    for _ in 0..BUSY_RETRIES {
        match rings::open(&interface.name, queue, &layout) {
            Err((_, error)) if error.raw_os_error() == Some(libc::EBUSY) => pause(),
            other => return other.map_err(|failure| refusal(interface, queue, &layout, failure)),
        }
    }
    Err(OpenError::QueueBusy { interface: interface.name.clone(), queue })
}

#[expect(
    clippy::disallowed_methods,
    reason = "opening is not part of the poll loop, and the kernel gives no event"
)]
fn pause() {
    std::thread::sleep(BUSY_PAUSE);
}

fn refusal(interface: &Interface, queue: u32, layout: &Layout, (action, error): Failure) -> OpenError {
    let interface = interface.name.clone();
    match error.raw_os_error() {
        Some(libc::EBUSY) => OpenError::QueueBusy { interface, queue },
        Some(libc::ENETDOWN) => OpenError::InterfaceDown { interface },
        Some(libc::ENODEV | libc::ENXIO) => crate::host::HostError::NoSuchInterface(interface).into(),
        Some(libc::EAFNOSUPPORT) => OpenError::NoAfXdp,
        Some(libc::ENOBUFS | libc::ENOMEM) => OpenError::LockedMemory { bytes: layout.bytes() },
        _ => OpenError::io(action)(error),
    }
}

fn tell_path_mtu(interface: &Interface) {
    tracing::warn!(
        interface = interface.name,
        mtu = interface.mtu,
        "this kernel or driver gives AF_XDP no frames in several buffers (kernel 6.6 and later do): frames end at \
         {CAPACITY} bytes, which leaves path MTU 2048"
    );
}

/// A larger buffer only saves retries, so a refusal is no harm.
fn enlarge_send_buffer(socket: BorrowedFd<'_>) {
    let forced = sys::set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER);
    if forced.is_err() {
        let _ = sys::set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &SEND_BUFFER);
    }
}

/// Binds queue 0 with one more flag and undoes it; the error tells why that is not possible.
pub(crate) fn try_bind(interface: &Interface, flag: BindFlags) -> io::Result<()> {
    let flags = BindFlags::XDP_USE_NEED_WAKEUP | flag;
    let layout = Layout { rx_chunks: 64, tx_frames: 64, flags };
    for _ in 0..BUSY_RETRIES {
        match rings::open(&interface.name, 0, &layout) {
            Err((_, error)) if error.raw_os_error() == Some(libc::EBUSY) => pause(),
            other => return other.map(|_| ()).map_err(|(_, error)| error),
        }
    }
    Err(io::Error::from_raw_os_error(libc::EBUSY))
}
