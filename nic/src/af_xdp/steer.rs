//! The steering programs: RoCEv2 goes to our socket, or nowhere as the socket has seen it, everything else to the
//! kernel.
//!
//! ARP, neighbour discovery, ssh and the rest of the host's traffic must not notice us. The program takes a frame
//! only when it carries, under at most one 802.1Q tag, UDP to [`ROCE_PORT`] over IPv4 or directly over IPv6. Headers
//! that are unusual but still name the port (IPv4 options, a first fragment) are taken as well, so that the stack
//! counts what it refuses; later fragments carry no port and go to the kernel.

use super::asm::Register::{R0, R1, R2, R3, R4, R5, R6};
use super::asm::{Assembler, Instruction, Label, Width};
use crate::ROCE_PORT;

/// What becomes of a frame that is ours while no socket is bound to its queue: the verdicts of `enum xdp_action`.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub(super) enum Verdict {
    /// Distinguishes our frames from the others in tests.
    #[cfg(test)]
    Drop = 1,
    Pass = 2,
}

/// Offsets within `struct xdp_md`, the argument of an XDP program.
mod context {
    pub(super) const DATA: i16 = 0;
    pub(super) const DATA_END: i16 = 4;
    pub(super) const RX_QUEUE: i16 = 16;
}

/// Offsets within `struct __sk_buff`, the argument of a program of traffic control.
mod packet_context {
    pub(super) const KIND: i16 = 4;
    pub(super) const VLAN_PRESENT: i16 = 20;
    pub(super) const DATA: i16 = 76;
    pub(super) const DATA_END: i16 = 80;
}

/// The verdicts of traffic control: the next program decides, or the packet is dropped.
const TCX_NEXT: i32 = -1;
const TCX_DROP: i32 = 2;

const REDIRECT_MAP: i32 = 51;

const ETHERNET: i16 = 14;
const VLAN_TAG: i16 = 4;
const IPV4: i16 = 20;
const IPV6: i16 = 40;
const UDP: i16 = 8;

const UDP_PROTOCOL: i32 = 17;
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// Assembles the program for the socket map `sockets`, a file descriptor.
pub(super) fn assemble(sockets: i32, without_socket: Verdict) -> Vec<Instruction> {
    let mut asm = Assembler::default();
    let ours = choose(&mut asm, [context::DATA, context::DATA_END], Verdict::Pass as i32);
    take(&mut asm, ours, sockets, without_socket);
    asm.finish()
}

/// Assembles the program of traffic control that drops what is ours: frames to the MAC of the interface, without a tag
/// that the kernel took out. Others may be for interfaces on top of it, which somebody else may use.
pub(super) fn assemble_drop() -> Vec<Instruction> {
    let mut asm = Assembler::default();
    let others = asm.label();
    for field in [packet_context::KIND, packet_context::VLAN_PRESENT] {
        asm.load(Width::Word, R4, R1, field);
        asm.jump_unless_equal(R4, 0, others);
    }
    let ours = choose(&mut asm, [packet_context::DATA, packet_context::DATA_END], TCX_NEXT);
    asm.bind(ours);
    asm.set(R0, TCX_DROP);
    asm.exit();
    asm.bind(others);
    asm.set(R0, TCX_NEXT);
    asm.exit();
    asm.finish()
}

/// Answers `others` to frames that are not ours; returns the label for those that are, to be bound right behind. The
/// context says at these offsets where the frame begins and where its first buffer ends.
fn choose(asm: &mut Assembler, [data, data_end]: [i16; 2], others: i32) -> Label {
    let (ours, kernels) = (asm.label(), asm.label());
    // R2 points to the Ethernet header, or four bytes behind it after a tag; R3 is the end of the first buffer.
    asm.copy(R6, R1);
    asm.load(Width::Word, R2, R6, data);
    asm.load(Width::Word, R3, R6, data_end);
    let ipv4 = link_header(asm, kernels);
    ipv6_and_udp(asm, kernels);
    asm.jump_if_equal(R4, network(ROCE_PORT), ours);
    asm.bind(kernels);
    asm.set(R0, others);
    asm.exit();
    asm.bind(ipv4);
    ipv4_and_udp(asm, kernels);
    asm.jump_unless_equal(R4, network(ROCE_PORT), kernels);
    ours
}

/// Steps over a VLAN tag and falls through for IPv6; returns the label to bind for IPv4.
fn link_header(asm: &mut Assembler, kernels: Label) -> Label {
    let (untagged, ipv4) = (asm.label(), asm.label());
    require(asm, ETHERNET, kernels);
    asm.load(Width::Half, R5, R2, ETHERNET - 2);
    asm.jump_unless_equal(R5, network(0x8100), untagged);
    require(asm, ETHERNET + VLAN_TAG, kernels);
    asm.load(Width::Half, R5, R2, ETHERNET + VLAN_TAG - 2);
    asm.add(R2, VLAN_TAG.into());
    asm.bind(untagged);
    asm.jump_if_equal(R5, network(0x0800), ipv4);
    asm.jump_unless_equal(R5, network(0x86dd), kernels);
    ipv4
}

/// Leaves the UDP destination port in R4.
fn ipv6_and_udp(asm: &mut Assembler, kernels: Label) {
    const NEXT_HEADER: i16 = ETHERNET + 6;
    require(asm, ETHERNET + IPV6 + UDP, kernels);
    asm.load(Width::Byte, R4, R2, NEXT_HEADER);
    asm.jump_unless_equal(R4, UDP_PROTOCOL, kernels);
    asm.load(Width::Half, R4, R2, ETHERNET + IPV6 + 2);
}

/// Leaves the UDP destination port in R4.
fn ipv4_and_udp(asm: &mut Assembler, kernels: Label) {
    const FRAGMENT: i16 = ETHERNET + 6;
    const PROTOCOL: i16 = ETHERNET + 9;
    require(asm, ETHERNET + IPV4 + UDP, kernels);
    asm.load(Width::Byte, R4, R2, PROTOCOL);
    asm.jump_unless_equal(R4, UDP_PROTOCOL, kernels);
    asm.load(Width::Half, R4, R2, FRAGMENT);
    asm.and(R4, network(FRAGMENT_OFFSET));
    asm.jump_unless_equal(R4, 0, kernels);
    // The header's length in words of four bytes: options move the UDP header.
    asm.load(Width::Byte, R5, R2, ETHERNET);
    asm.and(R5, 0x0f);
    asm.shift_left(R5, 2);
    asm.add_register(R2, R5);
    require(asm, ETHERNET + UDP, kernels);
    asm.load(Width::Half, R4, R2, ETHERNET + 2);
}

/// Gives the frame to the kernel unless `length` bytes from R2 on lie within the first buffer.
fn require(asm: &mut Assembler, length: i16, kernels: Label) {
    asm.copy(R4, R2);
    asm.add(R4, length.into());
    asm.jump_if_above(R4, R3, kernels);
}

fn take(asm: &mut Assembler, ours: Label, sockets: i32, without_socket: Verdict) {
    asm.bind(ours);
    asm.load(Width::Word, R2, R6, context::RX_QUEUE);
    asm.load_map(R1, sockets);
    asm.set(R3, without_socket as i32);
    asm.call(REDIRECT_MAP);
    asm.exit();
}

/// A 16-bit field as a half-word load sees it.
const fn network(value: u16) -> i32 {
    value.to_be() as i32
}
