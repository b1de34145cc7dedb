//! Reading capture files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};

use pcap_parser::{LegacyPcapBlock, Linktype, PcapCapture, parse_pcap};

/// A folder of captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// Linux `rdma_rxe` talking to itself.
    Rxe,
    /// Adapters of several vendors.
    Hardware,
}

impl Set {
    /// Where the folder lies.
    pub fn folder(self) -> PathBuf {
        let name = match self {
            Self::Rxe => "rxe",
            Self::Hardware => "hardware",
        };
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/captures").join(name)
    }

    /// The file `name.pcap` of the folder.
    pub fn file(self, name: &str) -> PathBuf {
        self.folder().join(name).with_extension("pcap")
    }

    /// The names of all its captures, without their extension, in alphabetical order.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Read`] when the folder is missing.
    pub fn names(self) -> Result<Vec<String>, CaptureError> {
        let folder = self.folder();
        let unreadable = |error| CaptureError::Read { path: folder.clone(), error };
        let mut names = Vec::new();
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension() == Some(OsStr::new("pcap")) {
                names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
            }
        }
        names.sort();
        Ok(names)
    }
}

/// A captured frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its number in the file, the first being 1.
    pub number: usize,
    /// When it was captured, in microseconds since 1970.
    pub micros: u64,
    /// From the Ethernet header on, without frame check sequence.
    pub bytes: Vec<u8>,
}

/// Why a capture cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file or folder cannot be read.
    #[error("{} cannot be read: {error}. The captures belong into shared/captures beside the repository", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It is not a capture of Ethernet frames in the classic format, or the end is missing.
    #[error("{} is not a complete pcap file of Ethernet frames: copy it again", path.display())]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// A frame was not captured whole.
    #[error("frame {number} of {} was cut when it was captured, so its ICRC cannot be checked", path.display())]
    Cut {
        /// The file.
        path: PathBuf,
        /// The frame's number, the first being 1.
        number: usize,
    },
}

/// All frames of a capture.
///
/// # Errors
///
/// When the file is missing, is no complete capture of Ethernet frames, or holds frames that were cut.
pub fn frames(path: &Path) -> Result<Vec<Frame>, CaptureError> {
    let bytes = fs::read(path).map_err(|error| CaptureError::Read { path: path.to_owned(), error })?;
    let capture = parse(&bytes).ok_or_else(|| CaptureError::Format { path: path.to_owned() })?;
    let numbered = capture.blocks.iter().zip(1..);
    numbered.map(|(block, number)| frame(block, number, path)).collect()
}

fn parse(bytes: &[u8]) -> Option<PcapCapture<'_>> {
    let (behind, capture) = parse_pcap(bytes).ok()?;
    (behind.is_empty() && capture.header.network == Linktype::ETHERNET).then_some(capture)
}

fn frame(block: &LegacyPcapBlock<'_>, number: usize, path: &Path) -> Result<Frame, CaptureError> {
    if block.caplen != block.origlen {
        return Err(CaptureError::Cut { path: path.to_owned(), number });
    }
    let micros = u64::from(block.ts_sec) * 1_000_000 + u64::from(block.ts_usec);
    Ok(Frame { number, micros, bytes: block.data.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_named() {
        let path = Set::Rxe.file("no_such_capture");
        let message = frames(&path).unwrap_err().to_string();
        assert!(message.contains("no_such_capture.pcap"), "{message}");
    }

    #[test]
    fn a_file_without_its_end_is_refused() {
        let bytes = fs::read(Set::Rxe.file("edge_read_zero")).unwrap();
        assert_eq!(parse(&bytes).unwrap().blocks.len(), 2);
        for len in [0, 10, 30, bytes.len() - 1] {
            assert!(parse(&bytes[..len]).is_none(), "{len} bytes");
        }
    }

    #[test]
    fn frames_are_numbered_from_one_and_in_time_order() {
        let frames = frames(&Set::Rxe.file("rc_send_ipv6")).unwrap();
        assert_eq!(frames.iter().map(|frame| frame.number).collect::<Vec<_>>(), (1..=32).collect::<Vec<_>>());
        assert!(frames.is_sorted_by_key(|frame| frame.micros));
    }
}
