//! What every backend and wrapper offers.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

/// One received frame, lent for the duration of the call that shows it.
///
/// The Ethernet header comes first; the frame check sequence is not included.
#[derive(Clone, Copy, Debug)]
pub struct RxFrame<'a> {
    /// The frame, or its first piece when it spans two buffers.
    pub head: &'a [u8],
    /// The second piece; empty unless the frame spans two buffers.
    pub rest: &'a [u8],
}

impl<'a> RxFrame<'a> {
    /// A frame that lies in one piece.
    pub fn linear(head: &'a [u8]) -> Self {
        Self { head, rest: &[] }
    }

    /// Bytes in both pieces.
    #[expect(clippy::len_without_is_empty, reason = "a frame always holds an Ethernet header")]
    pub fn len(&self) -> usize {
        self.head.len() + self.rest.len()
    }

    /// Copies both pieces one after the other into `to` and returns the filled part; `None` when it is too short.
    pub fn copy_to<'b>(&self, to: &'b mut [u8]) -> Option<&'b mut [u8]> {
        let to = to.get_mut(..self.len())?;
        let (head, rest) = to.split_at_mut(self.head.len());
        head.copy_from_slice(self.head);
        rest.copy_from_slice(self.rest);
        Some(to)
    }
}

/// One queue of one interface.
///
/// See the [crate documentation](crate) for the contract between the methods. An error from [`rx`](Self::rx),
/// [`tx`](Self::tx) or [`flush`](Self::flush) means that the interface is gone and will not come back.
pub trait Nic: Send {
    /// Shows up to `budget` received frames to `deliver`, oldest first; returns how many there were.
    ///
    /// Never blocks.
    ///
    /// # Errors
    /// The interface is gone.
    fn rx(&mut self, budget: usize, deliver: &mut dyn FnMut(RxFrame<'_>)) -> io::Result<usize>;

    /// Lends up to `budget` frames of [`max_frame`](Self::max_frame) bytes to `fill`; returns how many were filled.
    ///
    /// `fill` writes a frame from the start of the slice and answers its length, or answers `None` when there is
    /// nothing (more) to send: the frame is kept and no further one is lent. What a lent frame holds beforehand is
    /// unspecified. Fewer frames than `budget` are lent while the ring is full. Never blocks.
    ///
    /// # Errors
    /// The interface is gone.
    ///
    /// # Panics
    /// When `fill` answers a length of zero or above that of the slice it was lent.
    fn tx(&mut self, budget: usize, fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> io::Result<usize>;

    /// Hands everything filled so far to the wire or the kernel, as far as the backend can know.
    ///
    /// # Errors
    /// The interface is gone.
    fn flush(&mut self) -> io::Result<()>;

    /// Length in bytes of the frames that [`tx`](Self::tx) lends.
    fn max_frame(&self) -> usize;

    /// A descriptor that polls readable when [`rx`](Self::rx) has something, if the backend has one.
    ///
    /// Wait on it only after an `rx` that delivered fewer frames than its budget, with no frame sent since.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// What went through so far, and what was lost where.
    fn stats(&self) -> NicStats;

    /// Which backend this is, and how it is attached.
    fn mode(&self) -> Mode;
}

impl<N: Nic + ?Sized> Nic for Box<N> {
    fn rx(&mut self, budget: usize, deliver: &mut dyn FnMut(RxFrame<'_>)) -> io::Result<usize> {
        (**self).rx(budget, deliver)
    }

    fn tx(&mut self, budget: usize, fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> io::Result<usize> {
        (**self).tx(budget, fill)
    }

    fn flush(&mut self) -> io::Result<()> {
        (**self).flush()
    }

    fn max_frame(&self) -> usize {
        (**self).max_frame()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        (**self).fd()
    }

    fn stats(&self) -> NicStats {
        (**self).stats()
    }

    fn mode(&self) -> Mode {
        (**self).mode()
    }
}

/// Counts since the backend was opened. Fields that a backend cannot know stay zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NicStats {
    /// Frames shown to `rx`'s closure.
    pub rx_frames: u64,
    /// Bytes of these.
    pub rx_bytes: u64,
    /// Frames filled by `tx`'s closure and handed on.
    pub tx_frames: u64,
    /// Bytes of these.
    pub tx_bytes: u64,
    /// Received frames lost for want of an empty buffer (the application was too slow).
    pub rx_no_buffer: u64,
    /// Received frames lost because the receive ring was full (the application was too slow).
    pub rx_ring_full: u64,
    /// Received frames that did not fit two buffers.
    pub rx_oversize: u64,
    /// Received frames that the kernel dropped at the socket for any other reason.
    pub rx_kernel: u64,
    /// Frames that the kernel refused to send, or that a peer no longer there did not take.
    pub tx_dropped: u64,
    /// Frames that a [`Fault`](crate::Fault) wrapper discarded on purpose.
    pub fault_dropped: u64,
    /// Frames that a [`Capture`](crate::Capture) wrapper could not write down (they were carried all the same).
    pub capture_failed: u64,
}

impl NicStats {
    /// Every count with its name, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("rx_frames", self.rx_frames),
            ("rx_bytes", self.rx_bytes),
            ("tx_frames", self.tx_frames),
            ("tx_bytes", self.tx_bytes),
            ("rx_no_buffer", self.rx_no_buffer),
            ("rx_ring_full", self.rx_ring_full),
            ("rx_oversize", self.rx_oversize),
            ("rx_kernel", self.rx_kernel),
            ("tx_dropped", self.tx_dropped),
            ("fault_dropped", self.fault_dropped),
            ("capture_failed", self.capture_failed),
        ]
        .into_iter()
    }

    /// Frames lost in either direction, for whatever reason.
    pub fn dropped(&self) -> u64 {
        self.rx_no_buffer
            + self.rx_ring_full
            + self.rx_oversize
            + self.rx_kernel
            + self.tx_dropped
            + self.fault_dropped
    }
}

/// Which backend carries the frames. `Display` gives the words for a person: `AF_XDP native zero-copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// An AF_XDP socket.
    AfXdp {
        /// Where the steering program runs.
        attach: XdpAttach,
        /// Whether the driver reads and writes our buffers without a copy.
        zero_copy: bool,
        /// Whether frames of the interface's full MTU are carried, in several buffers where one is too small, as for
        /// path MTU 4096.
        multi_buffer: bool,
    },
    /// An AF_PACKET socket.
    AfPacket {
        /// Whether consecutive frames of a flow leave as one, for the kernel or the interface to take apart.
        offload: bool,
    },
    /// An in-memory cable.
    Cable,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AfXdp { attach, zero_copy, multi_buffer } => {
                let copy = if *zero_copy { "zero-copy" } else { "copy" };
                let single = if *multi_buffer { "" } else { ", single buffer" };
                write!(f, "AF_XDP {attach} {copy}{single}")
            }
            Self::AfPacket { offload: true } => f.write_str("AF_PACKET segmentation offload"),
            Self::AfPacket { offload: false } => f.write_str("AF_PACKET"),
            Self::Cable => f.write_str("cable"),
        }
    }
}

/// Where an XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum XdpAttach {
    /// In the driver, before the kernel makes a packet of the frame.
    Native,
    /// In the kernel's receive path, for drivers without XDP; slower, works everywhere.
    Generic,
}

impl fmt::Display for XdpAttach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::Generic => "generic",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_read_as_words() {
        let xdp =
            |attach, zero_copy, multi_buffer| Mode::AfXdp { attach, zero_copy, multi_buffer }.to_string();
        assert_eq!(xdp(XdpAttach::Native, true, true), "AF_XDP native zero-copy");
        assert_eq!(xdp(XdpAttach::Generic, false, true), "AF_XDP generic copy");
        assert_eq!(xdp(XdpAttach::Generic, false, false), "AF_XDP generic copy, single buffer");
        assert_eq!(Mode::Cable.to_string(), "cable");
    }

    #[test]
    fn a_frame_in_two_pieces_is_copied_whole() {
        let frame = RxFrame { head: b"abc", rest: b"de" };
        let mut to = [0; 6];
        assert_eq!(frame.copy_to(&mut to).as_deref(), Some(b"abcde".as_slice()));
        assert_eq!(frame.copy_to(&mut to[..4]), None);
    }

    #[test]
    fn drops_are_summed_and_carried_frames_are_not() {
        let stats =
            NicStats { rx_frames: 5, tx_frames: 5, rx_oversize: 1, tx_dropped: 2, ..NicStats::default() };
        assert_eq!(stats.dropped(), 3);
        assert_eq!(stats.iter().find(|(name, _)| *name == "tx_dropped"), Some(("tx_dropped", 2)));
    }
}
