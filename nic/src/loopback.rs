//! Frames to ourselves.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;

use crate::{Mode, Nic, NicStats, RxFrame};

/// Delivers frames to the own MAC back to ourselves, since no switch would.
///
/// Frames wait in a bounded ring until the next `rx`; while it is full, `tx` lends nothing. They count as sent and as
/// received like any other.
#[derive(Debug)]
pub struct Loopback<N> {
    nic: N,
    mac: [u8; 6],
    waiting: VecDeque<Buffer>,
    free: Vec<Buffer>,
    /// Frames and bytes that took the way back.
    frames: u64,
    bytes: u64,
    delivered: u64,
    delivered_bytes: u64,
}

#[derive(Debug)]
struct Buffer {
    bytes: Box<[u8]>,
    len: usize,
}

impl<N: Nic> Loopback<N> {
    /// Wraps `nic`, whose own address is `mac`, with a ring of `frames` frames.
    ///
    /// # Panics
    /// When `frames` is zero.
    pub fn new(nic: N, mac: [u8; 6], frames: usize) -> Self {
        assert!(frames > 0, "a ring needs room for a frame");
        let max_frame = nic.max_frame();
        let free = (0..frames).map(|_| Buffer { bytes: vec![0; max_frame].into(), len: 0 }).collect();
        let waiting = VecDeque::with_capacity(frames);
        Self { nic, mac, waiting, free, frames: 0, bytes: 0, delivered: 0, delivered_bytes: 0 }
    }

    /// The wrapped backend.
    pub fn inner(&self) -> &N {
        &self.nic
    }

    fn deliver_own(&mut self, budget: usize, deliver: &mut dyn FnMut(RxFrame<'_>)) -> usize {
        let count = budget.min(self.waiting.len());
        for buffer in self.waiting.drain(..count) {
            self.delivered += 1;
            self.delivered_bytes += buffer.len as u64;
            deliver(RxFrame::linear(&buffer.bytes[..buffer.len]));
            self.free.push(buffer);
        }
        count
    }
}

impl<N: Nic> Nic for Loopback<N> {
    fn rx(&mut self, budget: usize, deliver: &mut dyn FnMut(RxFrame<'_>)) -> io::Result<usize> {
        let own = self.deliver_own(budget, deliver);
        Ok(own + self.nic.rx(budget - own, deliver)?)
    }

    fn tx(&mut self, budget: usize, fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> io::Result<usize> {
        let Self { nic, mac, waiting, free, frames, bytes, .. } = self;
        let (mut count, before) = (0, *frames);
        nic.tx(budget, &mut |to| {
            while count < budget {
                // Whether the next frame is for us is known only once it is filled.
                let mut place = free.pop()?;
                let Some(len) = fill(to) else {
                    free.push(place);
                    return None;
                };
                count += 1;
                if to[..len].starts_with(mac) {
                    place.bytes[..len].copy_from_slice(&to[..len]);
                    place.len = len;
                    waiting.push_back(place);
                    *frames += 1;
                    *bytes += len as u64;
                } else {
                    free.push(place);
                    return Some(len);
                }
            }
            None
        })
        .map(|sent| sent + (*frames - before) as usize)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.nic.flush()
    }

    fn max_frame(&self) -> usize {
        self.nic.max_frame()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.nic.fd()
    }

    fn stats(&self) -> NicStats {
        let mut stats = self.nic.stats();
        stats.tx_frames += self.frames;
        stats.tx_bytes += self.bytes;
        stats.rx_frames += self.delivered;
        stats.rx_bytes += self.delivered_bytes;
        stats
    }

    fn mode(&self) -> Mode {
        self.nic.mode()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cable;

    const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const PEER: [u8; 6] = [2, 0, 0, 0, 0, 2];

    fn send(nic: &mut dyn Nic, macs: &[[u8; 6]], budget: usize) -> usize {
        let mut number = 0;
        nic.tx(budget, &mut |to| {
            let mac = macs.get(number)?;
            to[..6].copy_from_slice(mac);
            to[6] = number as u8;
            number += 1;
            Some(20)
        })
        .unwrap()
    }

    fn receive(nic: &mut dyn Nic) -> Vec<u8> {
        let mut got = Vec::new();
        nic.rx(64, &mut |frame| got.push(frame.head[6])).unwrap();
        got
    }

    #[test]
    fn frames_to_the_own_address_come_back_and_others_leave() {
        let (left, mut right) = cable::pair(4, 64);
        let mut left = Loopback::new(left, OWN, 4);
        assert_eq!(send(&mut left, &[OWN, PEER, OWN, PEER], 9), 4);
        assert_eq!(receive(&mut left), [0, 2]);
        assert_eq!(receive(&mut right), [1, 3]);
        let stats = left.stats();
        assert_eq!((stats.tx_frames, stats.tx_bytes, stats.rx_frames, stats.rx_bytes), (4, 80, 2, 40));
    }

    #[test]
    fn the_budget_counts_both_kinds() {
        let (left, mut right) = cable::pair(4, 64);
        let mut left = Loopback::new(left, OWN, 4);
        assert_eq!(send(&mut left, &[OWN, OWN, PEER, PEER], 3), 3);
        assert_eq!((receive(&mut left), receive(&mut right)), (vec![0, 1], vec![2]));
    }

    #[test]
    fn a_full_ring_lends_nothing_until_it_is_read() {
        let (left, _right) = cable::pair(4, 64);
        let mut left = Loopback::new(left, OWN, 2);
        assert_eq!(send(&mut left, &[OWN; 5], 9), 2);
        assert_eq!(left.tx(1, &mut |_| panic!("lent a frame")).unwrap(), 0);
        assert_eq!(receive(&mut left), [0, 1]);
        assert_eq!(send(&mut left, &[OWN; 5], 9), 2);
    }
}
