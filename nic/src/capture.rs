//! Writing down what passes.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::os::fd::BorrowedFd;

use crate::{Mode, Nic, NicStats, RxFrame};

/// Marks a pcap file with stamps in nanoseconds, in the byte order of whoever wrote it.
const MAGIC: u32 = 0xa1b2_3c4d;
const ETHERNET: u32 = 1;
const LONGEST: u32 = 0xffff;

/// Writes every frame of both directions into a pcap file, which Wireshark and tcpdump read.
///
/// Frames are stamped once for each call of `rx` and `tx`. When a frame cannot be written it is carried all the same
/// and counted in [`NicStats::capture_failed`].
pub struct Capture<N> {
    nic: N,
    log: Log,
}

struct Log {
    file: BufWriter<Box<dyn Write + Send>>,
    /// Nanoseconds since 1970.
    clock: Box<dyn FnMut() -> u64 + Send>,
    failed: u64,
    fresh: bool,
}

impl<N: Nic> Capture<N> {
    /// Wraps `nic` and writes to `file`, with stamps from `clock` in nanoseconds since 1970.
    ///
    /// # Errors
    /// The file takes not even the header.
    pub fn new(
        nic: N,
        file: impl Write + Send + 'static,
        clock: impl FnMut() -> u64 + Send + 'static,
    ) -> io::Result<Self> {
        let mut file: BufWriter<Box<dyn Write + Send>> = BufWriter::with_capacity(1 << 18, Box::new(file));
        for word in [MAGIC, 2 | 4 << 16, 0, 0, LONGEST, ETHERNET] {
            file.write_all(&word.to_ne_bytes())?;
        }
        file.flush()?;
        Ok(Self { nic, log: Log { file, clock: Box::new(clock), failed: 0, fresh: false } })
    }

    /// The wrapped backend.
    pub fn inner(&self) -> &N {
        &self.nic
    }
}

impl Log {
    fn write(&mut self, stamp: u64, head: &[u8], rest: &[u8]) {
        self.fresh = true;
        if self.try_write(stamp, head, rest).is_err() {
            self.failed += 1;
        }
    }

    fn try_write(&mut self, stamp: u64, head: &[u8], rest: &[u8]) -> io::Result<()> {
        const SECOND: u64 = 1_000_000_000;
        let length = (head.len() + rest.len()) as u32;
        for word in [(stamp / SECOND) as u32, (stamp % SECOND) as u32, length, length] {
            self.file.write_all(&word.to_ne_bytes())?;
        }
        self.file.write_all(head)?;
        self.file.write_all(rest)
    }

    /// Puts what is buffered into the file while nothing else is to do, so that a reader is not left behind.
    fn settle(&mut self) {
        if std::mem::take(&mut self.fresh) && self.file.flush().is_err() {
            self.failed += 1;
        }
    }
}

impl<N: Nic> Nic for Capture<N> {
    fn rx(&mut self, budget: usize, deliver: &mut dyn FnMut(RxFrame<'_>)) -> io::Result<usize> {
        let (log, mut stamp) = (&mut self.log, None);
        let count = self.nic.rx(budget, &mut |frame| {
            let stamp = *stamp.get_or_insert_with(|| (log.clock)());
            log.write(stamp, frame.head, frame.rest);
            deliver(frame);
        })?;
        if count == 0 {
            self.log.settle();
        }
        Ok(count)
    }

    fn tx(&mut self, budget: usize, fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> io::Result<usize> {
        let (log, mut stamp) = (&mut self.log, None);
        self.nic.tx(budget, &mut |to| {
            let len = fill(to)?;
            let stamp = *stamp.get_or_insert_with(|| (log.clock)());
            log.write(stamp, &to[..len], &[]);
            Some(len)
        })
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
        let stats = self.nic.stats();
        NicStats { capture_failed: stats.capture_failed + self.log.failed, ..stats }
    }

    fn mode(&self) -> Mode {
        self.nic.mode()
    }
}

impl<N: fmt::Debug> fmt::Debug for Capture<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("nic", &self.nic).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::cable;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn words(bytes: &[u8]) -> Vec<u32> {
        bytes.chunks(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
    }

    #[test]
    fn both_directions_are_written_with_their_stamps() {
        let (left, mut right) = cable::pair(4, 64);
        let (file, mut time) = (Shared::default(), 1_700_000_000_000_000_005);
        let clock = move || {
            time += 1;
            time
        };
        let mut left = Capture::new(left, file.clone(), clock).unwrap();
        let fill = |byte: u8, len: usize| {
            move |to: &mut [u8]| {
                to[..len].fill(byte);
                Some(len)
            }
        };
        left.tx(1, &mut fill(7, 20)).unwrap();
        right.tx(1, &mut fill(9, 24)).unwrap();
        left.rx(8, &mut |_| ()).unwrap();
        assert_eq!(file.0.lock().unwrap().len(), 24, "buffered");
        left.rx(8, &mut |_| ()).unwrap();
        let bytes = file.0.lock().unwrap().clone();
        assert_eq!(words(&bytes[..24]), [MAGIC, 0x0004_0002, 0, 0, 65535, 1]);
        assert_eq!(words(&bytes[24..40]), [1_700_000_000, 6, 20, 20]);
        assert_eq!(bytes[40..60], [7; 20]);
        assert_eq!(words(&bytes[60..76]), [1_700_000_000, 7, 24, 24]);
        assert_eq!(bytes[76..], [9; 24]);
    }

    #[test]
    fn a_full_disk_stops_the_capture_not_the_traffic() {
        let (left, mut right) = cable::pair(4, 64);
        let mut left = Capture::new(left, Full(24), || 0).unwrap();
        assert_eq!(left.tx(3, &mut |_| Some(64)).unwrap(), 3);
        left.rx(1, &mut |_| ()).unwrap();
        assert_eq!(right.rx(9, &mut |_| ()).unwrap(), 3);
        assert!(left.stats().capture_failed > 0);
        assert_eq!(left.stats().dropped(), 0);
    }
}
