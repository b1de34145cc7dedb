//! Each message is written as it was read.

use uroce_pcap_tests::Set;
use uroce_stack::wire::cm::{CmKind, CmMad};

use crate::mads::{SETS, mads};

fn kinds(set: Set, name: &str) -> Vec<CmKind> {
    let written_again = |mad: &crate::mads::Mad| {
        let read = CmMad::parse(&mad.bytes).unwrap_or_else(|error| panic!("{name} {}: {error}", mad.number));
        assert_eq!(read.emit().to_vec(), mad.bytes, "{name} frame {}", mad.number);
        read.message.kind()
    };
    mads(set, name).iter().map(written_again).collect()
}

#[test]
fn every_message_is_written_as_it_was_read() {
    use CmKind::{Drep, Dreq, Rep, Req, Rtu, SidrRep, SidrReq};
    let one: &[CmKind] = &[Req, Rep, Rtu, Dreq, Drep];
    for (set, names) in SETS {
        for name in names {
            let expected: &[CmKind] = match *name {
                "cm_udaddy" => &[SidrReq, SidrRep],
                "cm_write_bw" => &[Req, Rep, Rtu, Req, Rep, Rtu, Dreq, Drep, Dreq, Drep],
                _ => one,
            };
            assert_eq!(kinds(set, name), expected, "{name}");
        }
    }
    assert_eq!(kinds(Set::Rxe, "all").len(), 22, "the same and no others");
}
