//! The socket filter: a classic BPF program that keeps the frames of RoCEv2.
//!
//! It follows the rules of the XDP program: UDP to our port over IPv4 (no later fragments) or directly over IPv6,
//! under at most one VLAN tag. The kernel usually takes the tag out before; both forms are understood.

use crate::ROCE_PORT;

const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
/// Into the index register: four times the low nibble of a byte, the length of an IPv4 header.
const LOAD_HEADER_LENGTH: u16 = 0xb1;
/// From the index register on.
const LOAD_HALF_INDEXED: u16 = 0x48;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

const WHOLE_FRAME: u32 = u32::MAX;
const UDP: u32 = 17;

/// The program that keeps our frames.
pub(super) fn ours() -> Vec<libc::sock_filter> {
    let blocks = [ipv4(0), ipv6(0), ipv4(4), ipv6(4)];
    // Where each block starts, counted from the end of the dispatch.
    let starts: Vec<u8> =
        blocks.iter().scan(0, |at, block| Some(std::mem::replace(at, *at + block.len() as u8))).collect();
    let mut code = vec![
        statement(LOAD_HALF, 12),
        jump(JUMP_IF_EQUAL, 0x0800, 6 + starts[0], 0),
        jump(JUMP_IF_EQUAL, 0x86dd, 5 + starts[1], 0),
        jump(JUMP_IF_EQUAL, 0x8100, 0, 3),
        statement(LOAD_HALF, 16),
        jump(JUMP_IF_EQUAL, 0x0800, 2 + starts[2], 0),
        jump(JUMP_IF_EQUAL, 0x86dd, 1 + starts[3], 0),
        statement(RETURN, 0),
    ];
    code.extend(blocks.into_iter().flatten());
    code
}

/// The program that keeps nothing.
pub(super) fn nothing() -> Vec<libc::sock_filter> {
    vec![statement(RETURN, 0)]
}

/// `tag` is the length of the VLAN tag before the header.
fn ipv4(tag: u32) -> Vec<libc::sock_filter> {
    vec![
        statement(LOAD_BYTE, tag + 23),
        jump(JUMP_IF_EQUAL, UDP, 0, 6),
        statement(LOAD_HALF, tag + 20),
        jump(JUMP_IF_ANY_BIT, 0x1fff, 4, 0),
        statement(LOAD_HEADER_LENGTH, tag + 14),
        statement(LOAD_HALF_INDEXED, tag + 16),
        jump(JUMP_IF_EQUAL, ROCE_PORT.into(), 0, 1),
        statement(RETURN, WHOLE_FRAME),
        statement(RETURN, 0),
    ]
}

fn ipv6(tag: u32) -> Vec<libc::sock_filter> {
    vec![
        statement(LOAD_BYTE, tag + 20),
        jump(JUMP_IF_EQUAL, UDP, 0, 3),
        statement(LOAD_HALF, tag + 56),
        jump(JUMP_IF_EQUAL, ROCE_PORT.into(), 0, 1),
        statement(RETURN, WHOLE_FRAME),
        statement(RETURN, 0),
    ]
}

fn statement(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 0, k }
}

/// Skips `yes` or `no` instructions.
fn jump(code: u16, k: u32, yes: u8, no: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt: yes, jf: no, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program as the kernel would: a load beyond the frame refuses it.
    fn keeps(code: &[libc::sock_filter], frame: &[u8]) -> bool {
        let half = |at: usize| frame.get(at..at + 2).map(|b| u32::from(b[0]) << 8 | u32::from(b[1]));
        let (mut at, mut a, mut x) = (0, 0, 0);
        loop {
            let op = code[at];
            let k = op.k as usize;
            let loaded = match op.code {
                LOAD_HALF => half(k),
                LOAD_BYTE => frame.get(k).map(|&byte| byte.into()),
                LOAD_HALF_INDEXED => half(x + k),
                LOAD_HEADER_LENGTH => frame.get(k).map(|byte| x = 4 * usize::from(byte & 15)).map(|()| a),
                RETURN => return op.k != 0,
                _ => Some(a),
            };
            let Some(loaded) = loaded else { return false };
            a = loaded;
            let skip = match op.code {
                JUMP_IF_EQUAL => {
                    if a == op.k {
                        op.jt
                    } else {
                        op.jf
                    }
                }
                JUMP_IF_ANY_BIT => {
                    if a & op.k != 0 {
                        op.jt
                    } else {
                        op.jf
                    }
                }
                _ => 0,
            };
            at += 1 + usize::from(skip);
        }
    }

    fn frame(tag: bool, v4: bool, options: usize, protocol: u8, port: u16) -> Vec<u8> {
        let mut frame = vec![2; 12];
        if tag {
            frame.extend([0x81, 0, 0, 5]);
        }
        if v4 {
            frame.extend([0x08, 0, 0x45 + options as u8 / 4, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0]);
            frame.extend(vec![10; 8 + options]);
        } else {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, protocol, 64]);
            frame.extend([0xfd; 32]);
        }
        frame.extend([0xc0, 0]);
        frame.extend(port.to_be_bytes());
        frame.extend([0; 20]);
        frame
    }

    #[test]
    fn only_our_frames_are_kept() {
        let code = ours();
        for tag in [false, true] {
            for v4 in [false, true] {
                assert!(keeps(&code, &frame(tag, v4, 0, 17, 4791)), "{tag} {v4}");
                assert!(!keeps(&code, &frame(tag, v4, 0, 17, 53)), "{tag} {v4}");
                assert!(!keeps(&code, &frame(tag, v4, 0, 6, 4791)), "{tag} {v4}");
            }
            assert!(keeps(&code, &frame(tag, true, 8, 17, 4791)));
        }
        let mut fragment = frame(false, true, 0, 17, 4791);
        fragment[20..22].copy_from_slice(&[0, 1]);
        assert!(!keeps(&code, &fragment));
        let mut arp = vec![2; 12];
        arp.extend([0x08, 0x06]);
        arp.resize(60, 0);
        assert!(!keeps(&code, &arp));
        assert!(!keeps(&code, &frame(false, true, 0, 17, 4791)[..37]), "cut before the port");
    }
}
