//! Holding a folder of captures against a table of what each holds.

use std::collections::BTreeMap;

use uroce_pcap_tests::{Outcome, Set, frames, replay};
use uroce_stack::wire::Malformed;

/// What a capture holds: its name, how many packets, and how many frames are refused for which reason.
pub(crate) type Expected = (&'static str, usize, &'static [(Malformed, usize)]);

/// Replays every capture of `set`; `table` names all of them.
pub(crate) fn check(set: Set, table: &[Expected]) {
    let present = set.names().unwrap_or_else(|error| panic!("{error}"));
    let mut listed: Vec<_> = table.iter().map(|row| row.0).collect();
    listed.sort_unstable();
    assert_eq!(present, listed, "captures in {} (left) and in the table (right)", set.folder().display());
    for &(name, packets, refused) in table {
        check_file(set, name, packets, refused);
    }
}

fn check_file(set: Set, name: &str, packets: usize, refused: &[(Malformed, usize)]) {
    let mut same = 0;
    let mut reasons = BTreeMap::new();
    for frame in frames(&set.file(name)).unwrap_or_else(|error| panic!("{error}")) {
        match replay(&frame.bytes) {
            Outcome::Same => same += 1,
            Outcome::Refused(reason) => *reasons.entry(reason.name()).or_insert(0) += 1,
            Outcome::Differs(at) => panic!("{name}: frame {} differs at byte {at}", frame.number),
        }
    }
    let refused: BTreeMap<_, _> = refused.iter().map(|(reason, count)| (reason.name(), *count)).collect();
    assert_eq!((same, reasons), (packets, refused), "{name}: packets and refused frames");
}
