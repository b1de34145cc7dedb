//! Frames through an AF_PACKET socket: slower than AF_XDP, on any interface and any kernel.
//!
//! The kernel gives us a copy of each frame and goes on with its own. So that it does not answer our peers with
//! "port unreachable", a UDP socket that discards everything is bound to port 4791 of each address. Where a BPF program
//! can be had (Linux 6.6, feature `af-xdp`), it ends the kernel's copies before they cost a route and a lookup.
//!
//! Consecutive frames of one flow go to the kernel as one of up to 64 KiB, where it takes such frames (Linux 6.2) and
//! the peer is known to take them (module `peers`). It passes through the kernel, and through a veth pair, whole, for
//! little more than the cost of one; on other interfaces the kernel or the interface makes the frames of it that it
//! holds. What arrives whole is taken apart here. Either way the frames that are shown are those that were sent, but
//! for the UDP checksum, which nobody reads.

mod filter;
mod headers;
mod inbox;
mod outbox;
mod peers;
mod run;
mod socket;
mod split;
#[cfg(test)]
mod tests;
mod vnet;

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::host::Interface;
use crate::{Mode, Nic, NicStats, OpenError, ROCE_PORT, RxFrame, probe, sys};
use inbox::Inbox;
use outbox::Outbox;

/// Bytes of a VLAN tag.
const TAG: usize = 4;
/// Room for a burst of received frames; the default holds about a hundred.
const RECEIVE_BUFFER: libc::c_int = 8 << 20;
/// Room for frames that the interface has not taken yet; the default holds three of 64 KiB.
const SEND_BUFFER: libc::c_int = 4 << 20;

/// How long a flush waits for room in the socket; a frame that finds none until then leaves with a later flush.
const FLUSH_PATIENCE: Duration = Duration::from_millis(10);

/// One interface through an AF_PACKET socket.
#[derive(Debug)]
pub struct AfPacket {
    socket: OwnedFd,
    /// Hold the port of each address as long as we are open.
    _reserved: Vec<UdpSocket>,
    /// Where there is none, as on an interface that forwards, the sockets above refuse what comes.
    #[cfg(feature = "af-xdp")]
    _shield: Option<crate::af_xdp::Shield>,
    inbox: Inbox,
    outbox: Outbox,
    /// The kernel takes frames that hold several.
    offload: bool,
    lost: Cell<u64>,
    stats: NicStats,
}

impl AfPacket {
    /// Opens `interface`, and reserves port 4791 of `addresses`, which should be those of the GIDs in use.
    ///
    /// # Errors
    /// There is no such interface, it is down, an address's port is taken, or privileges are lacking.
    pub fn open(interface: &str, addresses: &[IpAddr]) -> Result<Self, OpenError> {
        let interface = Interface::find(interface)?;
        if !interface.up {
            return Err(OpenError::InterfaceDown { interface: interface.name });
        }
        let socket = socket::open(interface.index).map_err(OpenError::io("open an AF_PACKET socket"))?;
        let reserved =
            addresses.iter().map(|&address| reserve(address, interface.index)).collect::<Result<_, _>>()?;
        enlarge_buffers(socket.as_fd());
        let max_frame = interface.mtu as usize + 14 + TAG;
        Ok(Self {
            socket,
            _reserved: reserved,
            #[cfg(feature = "af-xdp")]
            _shield: raise_shield(&interface),
            inbox: Inbox::new(max_frame),
            outbox: Outbox::new(max_frame),
            offload: probe::segmentation_offload(),
            lost: Cell::new(0),
            stats: NicStats::default(),
        })
    }

    /// The error that `rx`, `tx` and `flush` answer when the interface is gone.
    fn check_alive(&self) -> io::Result<()> {
        if socket::is_orphaned(self.socket.as_fd()) {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        Ok(())
    }

    /// Reads what is there; false when there is nothing more to read after it.
    fn receive(&mut self) -> io::Result<bool> {
        match self.inbox.fill(self.socket.as_fd()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            // The interface went down or away.
            Err(_) => self.check_alive().map(|()| false),
            more => more,
        }
    }

    /// Sends what waits longest; false when it must wait on.
    fn send(&mut self) -> io::Result<bool> {
        let socket = self.socket.as_fd();
        let (sent, result) = match self.offload {
            true => self.outbox.send(socket, &self.inbox.peers),
            false => self.outbox.send_plain(socket),
        };
        match result {
            Ok(()) => {
                self.stats.tx_frames += sent.frames as u64;
                self.stats.tx_bytes += sent.bytes as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            // The kernel does not know such frames: they leave one by one from now on.
            Err(error) if sent.frames > 1 && error.raw_os_error() == Some(libc::EINVAL) => {
                self.offload = false;
                return Ok(true);
            }
            Err(_) => {
                self.check_alive()?;
                self.stats.tx_dropped += sent.frames as u64;
            }
        }
        self.outbox.release(sent);
        Ok(true)
    }

    /// Sends until nothing waits; false when something must wait on.
    fn send_all(&mut self) -> io::Result<bool> {
        while !self.outbox.is_empty() {
            if !self.send()? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Nic for AfPacket {
    fn rx(&mut self, budget: usize, deliver: &mut dyn FnMut(RxFrame<'_>)) -> io::Result<usize> {
        let (mut count, mut more) = (0, true);
        loop {
            count += self.inbox.show(budget - count, &mut self.stats, deliver);
            if count == budget || !more {
                return Ok(count);
            }
            more = self.receive()?;
        }
    }

    fn tx(&mut self, budget: usize, fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> io::Result<usize> {
        for count in 0..budget {
            while self.outbox.is_full() {
                if !self.send()? {
                    return Ok(count);
                }
            }
            if !self.outbox.fill(fill) {
                return Ok(count);
            }
        }
        Ok(budget)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.send_all()? && sys::wait_writable(self.socket.as_fd(), FLUSH_PATIENCE)? {
            self.send_all()?;
        }
        Ok(())
    }

    fn max_frame(&self) -> usize {
        self.outbox.max_frame()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn stats(&self) -> NicStats {
        // The kernel forgets its count each time it is asked.
        self.lost.set(self.lost.get() + socket::lost_since(self.socket.as_fd()));
        NicStats { rx_no_buffer: self.lost.get(), ..self.stats }
    }

    fn mode(&self) -> Mode {
        Mode::AfPacket { offload: self.offload }
    }
}

#[cfg(feature = "af-xdp")]
fn raise_shield(interface: &Interface) -> Option<crate::af_xdp::Shield> {
    if forwards(&interface.name) {
        return None;
    }
    let raised = crate::af_xdp::Shield::raise(interface.index);
    if let Err(error) = &raised {
        let name = &interface.name;
        tracing::debug!(name, %error, "the kernel's network stack goes on with each packet, which takes longer");
    }
    raised.ok()
}

/// Whether packets that the interface receives may be for other hosts.
#[cfg(feature = "af-xdp")]
fn forwards(interface: &str) -> bool {
    ["ipv4", "ipv6"].into_iter().any(|version| {
        let setting = format!("/proc/sys/net/{version}/conf/{interface}/forwarding");
        std::fs::read_to_string(setting).is_ok_and(|value| value.trim() != "0")
    })
}

fn reserve(address: IpAddr, interface: u32) -> Result<UdpSocket, OpenError> {
    let to = match address {
        IpAddr::V6(v6) if v6.is_unicast_link_local() => SocketAddrV6::new(v6, ROCE_PORT, 0, interface).into(),
        _ => SocketAddr::new(address, ROCE_PORT),
    };
    let socket = UdpSocket::bind(to).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => OpenError::PortTaken { address },
        _ => OpenError::io("reserve UDP port 4791")(error),
    })?;
    socket::silence(&socket).map_err(OpenError::io("silence UDP port 4791"))?;
    Ok(socket)
}

/// Larger buffers only lose fewer frames and wait less often, so a refusal is no harm.
fn enlarge_buffers(socket: BorrowedFd<'_>) {
    let buffers = [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, RECEIVE_BUFFER),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, SEND_BUFFER),
    ];
    for (forced, allowed, bytes) in buffers {
        if sys::set_option(socket, libc::SOL_SOCKET, forced, &bytes).is_err() {
            let _ = sys::set_option(socket, libc::SOL_SOCKET, allowed, &bytes);
        }
    }
}
