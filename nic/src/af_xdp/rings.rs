//! The memory and the four rings that we share with the kernel: all `unsafe` of the AF_XDP backend but the calls
//! into libbpf.
//!
//! # Who may touch what
//!
//! The memory (UMEM) is divided into chunks of 4096 bytes. At any time a chunk belongs either to the kernel or to
//! us, and the rings move it from one to the other. A chunk that is ours is represented by a value that can neither
//! be copied nor made elsewhere: [`RxChunk`], or [`TxFrame`] for a pair of chunks to send from. Ring operations that
//! give chunks to the kernel consume these values, those that take chunks back make them. So safe code holding such
//! a value may read (or, holding it exclusively, write) its chunk: nobody else does.
//!
//! # Layout
//!
//! ```text
//! | tx 0 even | tx 0 odd | tx 1 even | tx 1 odd | ... | rx 0 | rx 1 | ...
//! ```
//!
//! The first 256 bytes of each chunk are headroom, which leaves 3840 for a frame. A longer frame is written in one
//! piece from the even chunk on over the odd one; before it is sent, what lies in the odd chunk is moved behind the
//! headroom there, because that is where a descriptor of the library can point to.

use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, BorrowedFd};

use xsk_rs::config::{BindFlags, Interface as XskInterface, LibxdpFlags, SocketConfig, UmemConfig};
use xsk_rs::{CompQueue, FillQueue, FrameDesc, RxQueue, Socket, TxQueue, Umem};

use super::bpf;

/// Bytes of a chunk. More is refused for memory of ordinary pages.
pub(super) const CHUNK: usize = 4096;
/// Bytes before the frame in each chunk.
const HEADROOM: usize = 256;
/// Largest frame, or piece of one, in a chunk.
pub(super) const CAPACITY: usize = CHUNK - HEADROOM;
/// Largest frame in two chunks.
pub(super) const PAIR_CAPACITY: usize = 2 * CAPACITY;
/// Descriptors moved over a ring at once.
pub(super) const BATCH: usize = 64;

/// Set on every descriptor of a frame but the last.
const CONTINUED: u32 = 1;

/// A received chunk that is ours.
#[derive(Debug)]
pub(super) struct RxChunk(FrameDesc);

impl RxChunk {
    /// Whether the frame goes on in the next chunk.
    pub(super) fn is_continued(&self) -> bool {
        self.0.options() & CONTINUED != 0
    }
}

/// Two neighbouring chunks that are ours, to send a frame from.
#[derive(Debug)]
pub(super) struct TxFrame {
    even: FrameDesc,
    odd: FrameDesc,
}

/// How many chunks there are, and how the socket is bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// A power of two.
    pub(super) rx_chunks: u32,
    /// Pairs of chunks; a power of two.
    pub(super) tx_frames: u32,
    pub(super) flags: BindFlags,
}

impl Layout {
    /// Places in the fill ring, twice as many as chunks: the kernel shows us a frame before it says that it took the
    /// frame's chunk out of the ring, so up to `rx_chunks` places look taken that are not, beside those that are.
    fn fill_places(&self) -> u32 {
        2 * self.rx_chunks
    }

    /// Places in the tx ring: two descriptors a frame, twice because the kernel may be done with a frame before it says
    /// that it took it out of the ring.
    fn tx_places(&self) -> u32 {
        4 * self.tx_frames
    }

    pub(super) fn bytes(&self) -> usize {
        (self.rx_chunks + 2 * self.tx_frames) as usize * CHUNK
    }
}

/// The receiving half: chunks go out empty through the fill ring and come back with frames through the rx ring.
pub(super) struct RxRings {
    memory: Memory,
    received: RxQueue,
    fill: FillQueue,
    scratch: [FrameDesc; BATCH],
}

/// The sending half: chunks go out with frames through the tx ring and come back through the completion ring.
pub(super) struct TxRings {
    memory: Memory,
    send: TxQueue,
    completed: CompQueue,
    /// For each pair: its chunks while the kernel has them, and how many of the two it still has.
    in_flight: Vec<Option<(TxFrame, u8)>>,
    ring_size: u32,
    scratch: [FrameDesc; BATCH],
}

/// What could not be made, with the error.
pub(super) type Failure = (&'static str, io::Error);

/// Makes memory and socket, binds it to a queue, and gives the kernel every receiving chunk.
///
/// Returned are both halves and the pairs of chunks to send from.
pub(super) fn open(
    interface: &str,
    queue: u32,
    layout: &Layout,
) -> Result<(RxRings, TxRings, Vec<TxFrame>), Failure> {
    let (umem, mut chunks) = create_memory(layout)?;
    let name: XskInterface =
        interface.parse().map_err(|_| ("name the interface", io::ErrorKind::InvalidInput.into()))?;
    // SAFETY: the memory is not shared with another socket, which is all that the contract is about.
    let sockets = unsafe { Socket::new(socket_config(layout)?, &umem, &name, queue) };
    let (send, received, others) = sockets.map_err(|error| ("bind an AF_XDP socket", os_error(&error)))?;
    let (fill, completed) = others.expect("memory of its own comes with rings of its own");
    let memory = Memory::new(umem, &chunks[0], chunks.len() * CHUNK);
    let rx_chunks = chunks.split_off(2 * layout.tx_frames as usize);
    let frames: Vec<_> = chunks.chunks_exact(2).map(|pair| TxFrame { even: pair[0], odd: pair[1] }).collect();
    let in_flight = frames.iter().map(|_| None).collect();
    let scratch = [FrameDesc::default(); BATCH];
    let mut rx = RxRings { memory: memory.clone(), received, fill, scratch };
    rx.refill(rx_chunks.into_iter().map(RxChunk));
    let ring_size = layout.tx_places();
    Ok((rx, TxRings { memory, send, completed, in_flight, ring_size, scratch }, frames))
}

fn create_memory(layout: &Layout) -> Result<(Umem, Vec<FrameDesc>), Failure> {
    let impossible = |_| ("size the rings", io::ErrorKind::InvalidInput.into());
    let tx_chunks = 2 * layout.tx_frames;
    let config = UmemConfig::builder()
        .frame_size((CHUNK as u32).try_into().expect("a chunk is a valid frame size"))
        .fill_queue_size(layout.fill_places().try_into().map_err(impossible)?)
        .comp_queue_size(tx_chunks.try_into().map_err(impossible)?)
        .build()
        .expect("the chunk is a power of two and larger than the headroom");
    let count = NonZeroU32::new(layout.rx_chunks + tx_chunks).expect("powers of two are not zero");
    Umem::new(config, count, false)
        .map_err(|error| ("create the frame buffers of an AF_XDP socket", os_error(&error)))
}

fn socket_config(layout: &Layout) -> Result<SocketConfig, Failure> {
    let impossible = |_| ("size the rings", io::ErrorKind::InvalidInput.into());
    Ok(SocketConfig::builder()
        .rx_queue_size(layout.rx_chunks.try_into().map_err(impossible)?)
        .tx_queue_size(layout.tx_places().try_into().map_err(impossible)?)
        .libxdp_flags(LibxdpFlags::XSK_LIBXDP_FLAGS_INHIBIT_PROG_LOAD)
        .bind_flags(layout.flags)
        .build())
}

/// The error of the kernel behind one of the library's.
fn os_error(error: &dyn std::error::Error) -> io::Error {
    let inner = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    inner
        .and_then(io::Error::raw_os_error)
        .map_or_else(|| io::Error::other(error.to_string()), io::Error::from_raw_os_error)
}

impl RxRings {
    /// Takes up to `max` (at most [`BATCH`]) received chunks, in order; returns how many.
    pub(super) fn receive(&mut self, max: usize, into: &mut Vec<RxChunk>) -> usize {
        // SAFETY: the descriptors are overwritten with those of received frames, and used with this memory only.
        let count = unsafe { self.received.consume(&mut self.scratch[..max.min(BATCH)]) };
        into.extend(self.scratch[..count].iter().map(|desc| RxChunk(*desc)));
        count
    }

    /// The frame, or piece of one, in a chunk.
    pub(super) fn bytes<'a>(&'a self, chunk: &'a RxChunk) -> &'a [u8] {
        let pointer = self.memory.at(chunk.0.addr(), chunk.0.lengths().data());
        // SAFETY: `at` checked that the bytes lie within the memory, which lives as long as `self`. The chunk is
        // ours as long as its value is borrowed, so neither the kernel nor anyone here writes to it. Memory from
        // mmap is initialised.
        unsafe { std::slice::from_raw_parts(pointer, chunk.0.lengths().data()) }
    }

    /// Gives chunks back to the kernel.
    pub(super) fn refill(&mut self, chunks: impl Iterator<Item = RxChunk>) {
        let mut chunks = chunks.peekable();
        while chunks.peek().is_some() {
            let mut count = 0;
            for (desc, chunk) in self.scratch.iter_mut().zip(&mut chunks) {
                *desc = chunk.0;
                count += 1;
            }
            // SAFETY: the descriptors are of this memory, and their values, the only way to its bytes, are gone.
            let given = unsafe { self.fill.produce(&self.scratch[..count]) };
            assert_eq!(given, count, "the fill ring has two places for every receiving chunk");
        }
    }

    /// Whether the driver sleeps until it is told that there are empty chunks.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.fill.needs_wakeup()
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        bpf::borrow(self.received.fd())
    }

    /// Frames that the kernel lost at this socket: without a chunk, without a place in the ring, otherwise, and
    /// refused to send.
    pub(super) fn losses(&self) -> [u64; 4] {
        self.received.fd().xdp_statistics().map_or([0; 4], |kernel| {
            // A frame copied without an empty chunk counts as dropped for other reasons as well.
            let other = kernel.rx_dropped().saturating_sub(kernel.rx_fill_ring_empty_descs());
            let other = other + kernel.rx_invalid_descs();
            [kernel.rx_fill_ring_empty_descs(), kernel.rx_ring_full(), other, kernel.tx_invalid_descs()]
        })
    }
}

impl TxRings {
    /// The `length` bytes of a frame to fill.
    ///
    /// # Panics
    /// When `length` is above [`PAIR_CAPACITY`].
    pub(super) fn bytes<'a>(&'a self, frame: &'a mut TxFrame, length: usize) -> &'a mut [u8] {
        assert!(length <= PAIR_CAPACITY, "a frame lies in two chunks");
        &mut self.memory.pair(frame)[..length]
    }

    /// Gives a frame of `length` bytes to the kernel; [`flush`](super::tx) makes it look.
    pub(super) fn submit(&mut self, mut frame: TxFrame, length: usize) {
        let pair = frame.even.addr() / (2 * CHUNK);
        let first = length.min(CAPACITY);
        let rest = length - first;
        if rest > 0 {
            self.memory.pair(&mut frame).copy_within(CAPACITY..length, CAPACITY + HEADROOM);
        }
        set_length(&self.memory, &mut frame.even, first);
        set_length(&self.memory, &mut frame.odd, rest);
        frame.even.set_options(if rest > 0 { CONTINUED } else { 0 });
        frame.odd.set_options(0);
        let pieces = [frame.even, frame.odd];
        let count = if rest > 0 { 2 } else { 1 };
        self.in_flight[pair] = Some((frame, count as u8));
        // SAFETY: the descriptors are of this memory; the frame's value is put away until the kernel is done.
        let sent = unsafe { self.send.produce(&pieces[..count]) };
        assert_eq!(sent, count, "the tx ring has four places for every frame");
    }

    /// Takes back the frames that the kernel is done with.
    pub(super) fn reclaim(&mut self, into: &mut Vec<TxFrame>) {
        loop {
            // SAFETY: the descriptors are overwritten with those of sent frames; only their addresses are used.
            let count = unsafe { self.completed.consume(&mut self.scratch) };
            for desc in &self.scratch[..count] {
                let pair = &mut self.in_flight[desc.addr() / (2 * CHUNK)];
                if let Some((_, pieces)) = pair {
                    *pieces -= 1;
                    if *pieces == 0 {
                        into.extend(pair.take().map(|(frame, _)| frame));
                    }
                }
            }
            if count < BATCH {
                return;
            }
        }
    }

    /// Descriptors that the kernel has not looked at yet.
    pub(super) fn unsent(&mut self) -> u32 {
        self.ring_size - self.send.nb_free_exact()
    }

    /// Whether the kernel looks at the ring only after a system call.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.send.needs_wakeup()
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        bpf::borrow(self.send.fd())
    }
}

/// The shared memory.
#[derive(Clone)]
struct Memory {
    umem: Umem,
    /// Address of the first byte. A number, not a pointer: the library keeps its pointer to itself.
    base: usize,
    len: usize,
}

impl Memory {
    /// `first` is the descriptor of the first chunk.
    fn new(umem: Umem, first: &FrameDesc, len: usize) -> Self {
        // SAFETY: the descriptor is of this memory, and of length zero: no byte is touched.
        let data = unsafe { umem.data(first) };
        let base = data.contents().as_ptr().addr() - first.addr();
        Self { umem, base, len }
    }

    /// Both chunks of a frame, from behind the headroom of the first on.
    #[expect(
        clippy::needless_pass_by_ref_mut,
        reason = "the exclusive borrow is what makes the slice exclusive"
    )]
    fn pair<'a>(&'a self, frame: &'a mut TxFrame) -> &'a mut [u8] {
        const LENGTH: usize = 2 * CHUNK - HEADROOM;
        let pointer = self.at(frame.even.addr(), LENGTH);
        // SAFETY: `at` checked that the bytes lie within the memory, which lives as long as `self`. They are those of
        // the two neighbouring chunks of the frame, which are ours and borrowed exclusively through its value.
        // Memory from mmap is initialised.
        unsafe { std::slice::from_raw_parts_mut(pointer, LENGTH) }
    }

    /// A pointer to `len` bytes at an offset into the memory.
    ///
    /// # Panics
    /// When they do not lie within.
    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        let end = offset.checked_add(len);
        assert!(end.is_some_and(|end| end <= self.len), "a descriptor beyond the memory");
        // The mapping's pointer was exposed when the library handed it to C, so a pointer made from the address may
        // go to any byte of the mapping, across chunks too.
        std::ptr::with_exposed_provenance_mut(self.base + offset)
    }
}

/// The library lets only a cursor over the bytes set the length of a descriptor.
fn set_length(memory: &Memory, desc: &mut FrameDesc, length: usize) {
    // SAFETY: the descriptor is of this memory, its chunk is ours (it is part of a `TxFrame` on its way to the
    // kernel), and no other reference to it lives.
    let mut data = unsafe { memory.umem.data_mut(desc) };
    data.cursor().set_pos(length);
}

/// Asks the kernel how a socket is bound: whether without a copy.
pub(super) fn is_zero_copy(socket: BorrowedFd<'_>) -> bool {
    let mut flags = 0_u32;
    let mut len = size_of::<u32>() as libc::socklen_t;
    let value = std::ptr::from_mut(&mut flags).cast();
    // SAFETY: value and length are on the stack and outlive the call; `struct xdp_options` is one 32-bit number.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_XDP, libc::XDP_OPTIONS, value, &mut len) };
    result == 0 && flags & libc::XDP_OPTIONS_ZEROCOPY != 0
}
