//! Packs a few files as a "newc" cpio archive: the part of the guest's root that changes often. The kernel unpacks it
//! and the base image one after the other.

/// Type and permission bits of a folder and of an executable file.
const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_755;

/// An archive under construction.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// Adds a folder; its parents must have been added before.
    pub(super) fn folder(&mut self, name: &str) {
        self.entry(name, FOLDER, &[]);
    }

    /// Adds an executable file.
    pub(super) fn file(&mut self, name: &str, data: &[u8]) {
        self.entry(name, FILE, data);
    }

    /// The finished archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.pad();
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, data: &[u8]) {
        self.entries += 1;
        // inode, mode, uid, gid, links, mtime, size, device (major, minor), its own device, length of name, checksum
        let sizes = (data.len() as u32, name.len() as u32 + 1);
        let fields = [self.entries, mode, 0, 0, 1, 0, sizes.0, 0, 0, 0, 0, sizes.1, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(data);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::Archive;

    #[test]
    fn entries_are_aligned_and_the_trailer_closes() {
        let mut archive = Archive::default();
        archive.folder("uroce");
        archive.file("uroce/a", b"hello");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(&bytes[..6], b"070701");
        let second = 110 + 6; // header and "uroce" with its NUL, already a multiple of four
        assert_eq!(&bytes[second..second + 6], b"070701");
        assert_eq!(&bytes[second + 110 + 8 + 2..][..5], b"hello");
        assert!(bytes.windows(10).any(|window| window == b"TRAILER!!!"));
    }
}
