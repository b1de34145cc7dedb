//! The steering program, run by the kernel on frames of every kind.

use std::os::fd::AsRawFd;

use super::*;

const PORT: [u8; 2] = 4791_u16.to_be_bytes();

fn ethernet(kind: u16) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend(kind.to_be_bytes());
    frame
}

fn tagged(tags: usize, kind: u16) -> Vec<u8> {
    let mut frame = vec![2; 12];
    for _ in 0..tags {
        frame.extend([0x81, 0x00, 0x00, 0x05]);
    }
    frame.extend(kind.to_be_bytes());
    frame
}

fn ipv4(options: usize, fragment: u16, protocol: u8) -> Vec<u8> {
    let mut header = vec![0x45 + (options / 4) as u8, 0, 0, 60, 0, 1];
    header.extend(fragment.to_be_bytes());
    header.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    header.extend(vec![1; options]);
    header
}

fn ipv6(next: u8) -> Vec<u8> {
    let mut header = vec![0x60, 0, 0, 0, 0, 40, next, 64];
    header.extend([0xfd; 32]);
    header
}

fn udp(port: [u8; 2]) -> Vec<u8> {
    let mut datagram = vec![0xc0, 0, port[0], port[1], 0, 32, 0, 0];
    datagram.extend([0; 24]);
    datagram
}

/// Every frame with whether it is ours.
fn frames() -> Vec<(&'static str, bool, Vec<u8>)> {
    let join = |parts: &[Vec<u8>]| parts.concat();
    let (v4, v6) = (ethernet(0x0800), ethernet(0x86dd));
    vec![
        ("IPv4", true, join(&[v4.clone(), ipv4(0, 0x4000, 17), udp(PORT)])),
        ("IPv6", true, join(&[v6.clone(), ipv6(17), udp(PORT)])),
        ("IPv4 in a VLAN", true, join(&[tagged(1, 0x0800), ipv4(0, 0, 17), udp(PORT)])),
        ("IPv6 in a VLAN", true, join(&[tagged(1, 0x86dd), ipv6(17), udp(PORT)])),
        ("IPv4 with options", true, join(&[v4.clone(), ipv4(12, 0, 17), udp(PORT)])),
        ("IPv4, most options", true, join(&[v4.clone(), ipv4(40, 0, 17), udp(PORT)])),
        ("first fragment", true, join(&[v4.clone(), ipv4(0, 0x2000, 17), udp(PORT)])),
        ("later fragment", false, join(&[v4.clone(), ipv4(0, 0x2001, 17), udp(PORT)])),
        ("two VLAN tags", false, join(&[tagged(2, 0x0800), ipv4(0, 0, 17), udp(PORT)])),
        ("another port", false, join(&[v4.clone(), ipv4(0, 0, 17), udp([0, 53])])),
        ("another port, IPv6", false, join(&[v6.clone(), ipv6(17), udp([0, 53])])),
        ("TCP", false, join(&[v4.clone(), ipv4(0, 0, 6), udp(PORT)])),
        ("TCP, IPv6", false, join(&[v6.clone(), ipv6(6), udp(PORT)])),
        ("IPv6 extension header", false, join(&[v6.clone(), ipv6(0), udp(PORT)])),
        ("ARP", false, join(&[ethernet(0x0806), vec![0; 46]])),
        ("RoCEv1", false, join(&[ethernet(0x8915), vec![0; 60]])),
        ("IPv4 cut in UDP", false, join(&[v4.clone(), ipv4(0, 0, 17), udp(PORT)[..7].to_vec()])),
        ("IPv4 with options beyond the end", false, join(&[v4, ipv4(0, 0, 17), udp(PORT)[..8].to_vec()])),
        ("IPv6 cut in UDP", false, join(&[v6, ipv6(17), udp(PORT)[..7].to_vec()])),
        ("nothing but Ethernet", false, ethernet(0x0800)),
    ]
}

fn loaded() -> io::Result<OwnedFd> {
    let sockets = bpf::create_socket_map(1)?;
    bpf::load_program(&steer::assemble(sockets.as_raw_fd(), Verdict::Drop), true)
}

#[test]
fn only_rocev2_is_taken_from_the_kernel() {
    let program = match loaded() {
        Ok(program) => program,
        Err(error) => return crate::testing::skip(&error),
    };
    tells_apart(&program, Verdict::Drop as u32, Verdict::Pass as u32);
}

#[test]
fn only_rocev2_is_kept_from_the_network_stack() {
    let program = match bpf::load_traffic_program(&steer::assemble_drop()) {
        Ok(program) => program,
        Err(error) => return crate::testing::skip(&error),
    };
    const DROP: u32 = 2;
    const NEXT: u32 = u32::MAX;
    tells_apart(&program, DROP, NEXT);
}

/// Whether the program answers so to each frame that is ours, and so to the others.
fn tells_apart(program: &OwnedFd, ours: u32, others: u32) {
    for (name, is_ours, mut frame) in frames() {
        if name == "IPv4 with options beyond the end" {
            frame[14] = 0x4f;
        }
        // The MAC of the interface that the kernel pretends to have received it on.
        frame[..6].fill(0);
        match bpf::test_run(program.as_fd(), &frame) {
            Ok(verdict) => assert_eq!(verdict, if is_ours { ours } else { others }, "{name}"),
            // A packet that ends in its IP header is none to a program of traffic control.
            Err(error) => assert!(!is_ours && frame.len() < 14 + 20, "{name}: {error}"),
        }
    }
}

#[test]
fn the_program_is_a_few_dozen_instructions() {
    let length = steer::assemble(3, Verdict::Pass).len();
    assert!((40..70).contains(&length), "{length} instructions");
}
