//! Whatever arrives, in whatever order, between whatever the application does: the engine does not panic, nothing
//! outside a registered region is touched, and completions stay in order.

mod forge;
mod siege;

use crate::common::*;
use proptest::collection::vec;
use proptest::prelude::*;

use self::forge::BTH_AT;
use self::siege::{Siege, any_step};

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_change_nothing(frames in vec((vec(any::<u8>(), 0..300), 0usize..300), 1..20)) {
        let mut host = Host::new();
        for (bytes, split) in &frames {
            let (head, rest) = bytes.split_at(*split.min(&bytes.len()));
            host.engine.receive(host.now, head, rest);
        }
        prop_assert_eq!(host.sent(), []);
        prop_assert_eq!(host.state(), QpState::Rts);
        let counted: u64 = host.engine.counters().iter().map(|(_, value)| value).sum();
        prop_assert_eq!(counted, frames.len() as u64, "each is counted once");
    }

    #[test]
    fn damaged_frames_change_nothing(offset in 0usize..90, mask in 1u8.., cut in 0usize..90) {
        let mut host = Host::new();
        let frame = write(Position::Only, 100, host.at(0), 30, &pattern(30)).ack_req().frame(host.qpn);
        let mut damaged = frame.clone();
        let offset = BTH_AT + 5 + offset % (frame.len() - BTH_AT - 5);
        damaged[offset] ^= mask;
        host.engine.receive(host.now, &damaged, &[]);
        host.engine.receive(host.now, &frame[..cut], &[]);
        prop_assert_eq!(host.sent(), []);
        prop_assert_eq!(host.bytes(0, 30), [0; 30]);
    }

    #[test]
    fn any_siege_is_survived(steps in vec(any_step(), 1..120)) {
        let mut siege = Siege::new();
        for step in &steps {
            siege.take(step);
        }
    }
}
