//! The system calls of a packet socket, each behind one safe function.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::filter;
use crate::sys;

/// A frame as the kernel hands it over.
pub(super) struct Received {
    /// Bytes written to the buffer.
    pub(super) length: usize,
    /// The frame was longer than the buffer.
    pub(super) truncated: bool,
    /// We sent it ourselves.
    pub(super) outgoing: bool,
    /// The VLAN tag that the kernel took out: EtherType and control information.
    pub(super) tag: Option<(u16, u16)>,
}

/// A packet socket on an interface, which sees the frames that the filter keeps.
pub(super) fn open(interface: u32) -> io::Result<OwnedFd> {
    // Protocol zero: nothing is received before the filter is in place.
    let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, 0)?;
    attach(socket.as_fd(), &filter::ours())?;
    set(socket.as_fd(), libc::PACKET_AUXDATA, 1)?;
    // Kernels before 4.20 do not know it; outgoing frames are told apart one by one as well.
    let _ = set(socket.as_fd(), libc::PACKET_IGNORE_OUTGOING, 1);
    bind(socket.as_fd(), interface)?;
    Ok(socket)
}

/// Makes a UDP socket refuse every datagram: it only occupies its port.
pub(super) fn silence(socket: &UdpSocket) -> io::Result<()> {
    attach(socket.as_fd(), &filter::nothing())
}

fn set(socket: BorrowedFd<'_>, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    sys::set_option(socket, libc::SOL_PACKET, option, &value)
}

fn attach(socket: BorrowedFd<'_>, code: &[libc::sock_filter]) -> io::Result<()> {
    // The kernel copies the program and does not write to it.
    let program = libc::sock_fprog { len: code.len() as u16, filter: code.as_ptr().cast_mut() };
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn bind(socket: BorrowedFd<'_>, interface: u32) -> io::Result<()> {
    let mut address = link_address();
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = interface as i32;
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `address`, which outlives the call; the kernel only reads it.
    sys::check(unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), len) })?;
    Ok(())
}

/// Whether the socket lost its interface for good.
pub(super) fn is_orphaned(socket: BorrowedFd<'_>) -> bool {
    let mut address = link_address();
    let mut len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: pointer and length describe `address`, which outlives the call.
    let result =
        unsafe { libc::getsockname(socket.as_raw_fd(), std::ptr::from_mut(&mut address).cast(), &mut len) };
    result == 0 && address.sll_ifindex < 0
}

fn link_address() -> libc::sockaddr_ll {
    // SAFETY: a structure of integers, for which all zeroes is a value.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address
}

/// Room for the one control message that is asked for, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Reads one frame into `buffer`.
pub(super) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Received> {
    let mut from = link_address();
    let mut control = Control([0; 64]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: a structure of integers and pointers, for which all zeroes is a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_name = std::ptr::from_mut(&mut from).cast();
    message.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    // SAFETY: every pointer of the message goes to something that outlives the call, with its length beside it.
    let length =
        sys::check(unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_DONTWAIT) } as i32)?;
    Ok(Received {
        length: length as usize,
        truncated: message.msg_flags & libc::MSG_TRUNC != 0,
        outgoing: from.sll_pkttype == libc::PACKET_OUTGOING,
        tag: tag_of(&message),
    })
}

fn tag_of(message: &libc::msghdr) -> Option<(u16, u16)> {
    // SAFETY: the message was filled by recvmsg and its control buffer lives in the caller.
    let control = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: null, or a pointer to a whole header within the aligned control buffer.
    let header = unsafe { control.as_ref() }?;
    if header.cmsg_level != libc::SOL_PACKET || header.cmsg_type != libc::PACKET_AUXDATA {
        return None;
    }
    // SAFETY: the header was just found to be within the buffer; the data follow it.
    let data = unsafe { libc::CMSG_DATA(control) };
    // SAFETY: a message of this type carries this structure, which is plain integers; no alignment is assumed.
    let auxiliary: libc::tpacket_auxdata = unsafe { data.cast::<libc::tpacket_auxdata>().read_unaligned() };
    let status = auxiliary.tp_status;
    let kind = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { auxiliary.tp_vlan_tpid } else { 0x8100 };
    (status & libc::TP_STATUS_VLAN_VALID != 0).then_some((kind, auxiliary.tp_vlan_tci))
}

/// Sends one frame.
pub(super) fn send(socket: BorrowedFd<'_>, frame: &[u8]) -> io::Result<()> {
    // SAFETY: pointer and length describe `frame`; the kernel only reads it.
    let sent =
        unsafe { libc::send(socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), libc::MSG_DONTWAIT) };
    sys::check(sent as i32)?;
    Ok(())
}

/// Frames lost for want of buffer space since the last time this was asked.
pub(super) fn lost_since(socket: BorrowedFd<'_>) -> u64 {
    let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    let value = std::ptr::from_mut(&mut stats).cast();
    // SAFETY: value and length are on the stack and outlive the call.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, value, &mut len)
    };
    if result == 0 { stats.tp_drops.into() } else { 0 }
}
