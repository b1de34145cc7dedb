//! Frames through an AF_PACKET socket: slower than AF_XDP, on any interface and any kernel.
//!
//! The kernel gives us a copy of each frame and goes on with its own. So that it does not answer our peers with
//! "port unreachable", a UDP socket that discards everything is bound to port 4791 of each address.
//!
//! One system call a frame: simple, and no figure of this crate is measured with it.

mod filter;
mod socket;

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::host::Interface;
use crate::{Mode, Nic, NicStats, OpenError, ROCE_PORT, RxFrame, sys};

/// Bytes of a VLAN tag.
const TAG: usize = 4;
/// Room for a burst of received frames; the default holds about a hundred.
const RECEIVE_BUFFER: libc::c_int = 8 << 20;

/// How long a flush waits for room in the socket; a frame that finds none until then leaves with a later flush.
const FLUSH_PATIENCE: Duration = Duration::from_millis(10);

/// One interface through an AF_PACKET socket.
#[derive(Debug)]
pub struct AfPacket {
    socket: OwnedFd,
    /// Hold the port of each address as long as we are open.
    _reserved: Vec<UdpSocket>,
    /// Frames are read behind the room for a tag.
    received: Box<[u8]>,
    to_send: Box<[u8]>,
    /// Length of the frame in `to_send` that found no room.
    waiting: Option<usize>,
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
        enlarge_receive_buffer(socket.as_fd());
        let max_frame = interface.mtu as usize + 14 + TAG;
        Ok(Self {
            socket,
            _reserved: reserved,
            received: vec![0; TAG + max_frame].into(),
            to_send: vec![0; max_frame].into(),
            waiting: None,
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

    /// Reads one frame and shows it; false when there is none.
    fn receive_one(&mut self, deliver: &mut dyn FnMut(RxFrame<'_>)) -> io::Result<Option<bool>> {
        let got = match socket::receive(self.socket.as_fd(), &mut self.received[TAG..]) {
            Ok(got) => got,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            // The interface went down or away.
            Err(_) => return self.check_alive().map(|()| None),
        };
        if got.outgoing {
            return Ok(Some(false));
        }
        if got.truncated {
            self.stats.rx_oversize += 1;
            return Ok(Some(false));
        }
        let frame = with_tag(&mut self.received[..TAG + got.length], got.tag);
        self.stats.rx_frames += 1;
        self.stats.rx_bytes += frame.len() as u64;
        deliver(RxFrame::linear(frame));
        Ok(Some(true))
    }

    /// Sends the frame in the buffer; false when it must wait.
    fn send_one(&mut self, length: usize) -> io::Result<bool> {
        match socket::send(self.socket.as_fd(), &self.to_send[..length]) {
            Ok(()) => {
                self.stats.tx_frames += 1;
                self.stats.tx_bytes += length as u64;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(_) => {
                self.check_alive()?;
                self.stats.tx_dropped += 1;
                Ok(true)
            }
        }
    }

    /// Sends the frame that found no room before; false when it still does not.
    fn send_waiting(&mut self) -> io::Result<bool> {
        let Some(length) = self.waiting.take() else { return Ok(true) };
        let sent = self.send_one(length)?;
        self.waiting = (!sent).then_some(length);
        Ok(sent)
    }
}

impl Nic for AfPacket {
    fn rx(&mut self, budget: usize, deliver: &mut dyn FnMut(RxFrame<'_>)) -> io::Result<usize> {
        let mut count = 0;
        while count < budget {
            match self.receive_one(deliver)? {
                Some(shown) => count += usize::from(shown),
                None => break,
            }
        }
        Ok(count)
    }

    fn tx(&mut self, budget: usize, fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> io::Result<usize> {
        for count in 0..budget {
            if !self.send_waiting()? {
                return Ok(count);
            }
            let Some(length) = fill(&mut self.to_send) else { return Ok(count) };
            assert!(
                length > 0 && length <= self.to_send.len(),
                "a filled frame of {length} bytes is not within its buffer"
            );
            self.waiting = Some(length);
        }
        Ok(budget)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.send_waiting()? && sys::wait_writable(self.socket.as_fd(), FLUSH_PATIENCE)? {
            self.send_waiting()?;
        }
        Ok(())
    }

    fn max_frame(&self) -> usize {
        self.to_send.len()
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
        Mode::AfPacket
    }
}

/// Puts a tag that the kernel took out back in its place. The frame starts behind the room for one.
fn with_tag(buffer: &mut [u8], tag: Option<(u16, u16)>) -> &[u8] {
    const MACS: usize = 12;
    let Some((kind, control)) = tag else { return &buffer[TAG..] };
    buffer.copy_within(TAG..TAG + MACS, 0);
    buffer[MACS..MACS + 2].copy_from_slice(&kind.to_be_bytes());
    buffer[MACS + 2..MACS + 4].copy_from_slice(&control.to_be_bytes());
    buffer
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

/// A larger buffer only loses fewer frames, so a refusal is no harm.
fn enlarge_receive_buffer(socket: BorrowedFd<'_>) {
    let forced = sys::set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER);
    if forced.is_err() {
        let _ = sys::set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_taken_out_is_put_back() {
        let mut buffer: Vec<u8> = [0; 4].into_iter().chain(1..=20).collect();
        assert_eq!(with_tag(&mut buffer.clone(), None), (1..=20).collect::<Vec<u8>>());
        let tagged = with_tag(&mut buffer, Some((0x8100, 0x6005)));
        let expected: Vec<u8> = (1..=12).chain([0x81, 0, 0x60, 5]).chain(13..=20).collect();
        assert_eq!(tagged, expected);
    }
}
