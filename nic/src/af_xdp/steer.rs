//! The steering program: RoCEv2 goes to our socket, everything else to the kernel.
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
    let (ours, kernels) = (asm.label(), asm.label());
    // R2 points to the Ethernet header, or four bytes behind it after a tag; R3 is the end of the first buffer.
    asm.copy(R6, R1);
    asm.load(Width::Word, R2, R6, context::DATA);
    asm.load(Width::Word, R3, R6, context::DATA_END);
    let ipv4 = link_header(&mut asm, kernels);
    ipv6_and_udp(&mut asm, kernels);
    asm.jump_if_equal(R4, network(ROCE_PORT), ours);
    give(&mut asm, kernels);
    asm.bind(ipv4);
    ipv4_and_udp(&mut asm, kernels);
    asm.jump_unless_equal(R4, network(ROCE_PORT), kernels);
    take(&mut asm, ours, sockets, without_socket);
    asm.finish()
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

fn give(asm: &mut Assembler, kernels: Label) {
    asm.bind(kernels);
    asm.set(R0, Verdict::Pass as i32);
    asm.exit();
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
