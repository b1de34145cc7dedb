//! What the demo does.

use serde::{Deserialize, Serialize};

/// Sizes of the operations that move bytes. The first one is measured one message at a time, the others many at once.
const SIZES: [(u32, u32); 4] = [(8, 500), (1000, 500), (4096, 500), (65536, 64)];
/// Atomic operations of one case.
const ATOMICS: u32 = 500;

/// Bytes that the messages of any case take together, at most.
pub(crate) const REGION: usize = 4 << 20;
/// Messages of any case, at most.
pub(crate) const MOST: u32 = 512;

/// One operation of the verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Operation {
    Send,
    SendImm,
    Write,
    WriteImm,
    Read,
    CompareSwap,
    FetchAdd,
}

/// So many messages of one operation and one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Case {
    pub(crate) operation: Operation,
    pub(crate) size: u32,
    pub(crate) messages: u32,
    /// What the bytes of this case are made from.
    pub(crate) seed: u64,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) op: String,
    pub(crate) size: u32,
    pub(crate) messages: u32,
    /// Messages of which every byte was found right.
    pub(crate) verified: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gbps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lat_us: Option<f64>,
    pub(crate) backend: String,
}

impl Operation {
    const MOVING: [Self; 5] = [Self::Send, Self::SendImm, Self::Write, Self::WriteImm, Self::Read];

    /// Its name, as the table shows it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Send => "SEND",
            Self::SendImm => "SEND with immediate",
            Self::Write => "WRITE",
            Self::WriteImm => "WRITE with immediate",
            Self::Read => "READ",
            Self::CompareSwap => "CMP_SWAP",
            Self::FetchAdd => "FETCH_ADD",
        }
    }

    /// Whether each message consumes a receive at the peer.
    pub(crate) const fn is_received(self) -> bool {
        matches!(self, Self::Send | Self::SendImm | Self::WriteImm)
    }

    pub(crate) const fn has_immediate(self) -> bool {
        matches!(self, Self::SendImm | Self::WriteImm)
    }
}

impl Case {
    /// Whether one message at a time is sent, to see how long it takes.
    pub(crate) const fn one_by_one(&self) -> bool {
        self.size == 8
    }

    /// Where message `number` lies, in bytes from the start of the region.
    pub(crate) const fn slot(&self, number: u32) -> usize {
        number as usize * self.size as usize
    }

    /// The immediate of message `number`.
    pub(crate) fn immediate(&self, number: u32) -> Option<u32> {
        self.operation.has_immediate().then_some(number ^ self.seed as u32)
    }

    /// Whether it can be carried out at all: a peer may ask for anything.
    pub(crate) fn is_sane(&self) -> bool {
        let bytes = self.size as usize * self.messages as usize;
        (1..=MOST).contains(&self.messages) && (1..=REGION).contains(&bytes)
    }
}

/// Everything that the demo does, in order.
pub(crate) fn all() -> Vec<Case> {
    let moving = Operation::MOVING
        .into_iter()
        .flat_map(|operation| SIZES.map(|(size, messages)| (operation, size, messages)));
    let atomic = [Operation::CompareSwap, Operation::FetchAdd].map(|operation| (operation, 8, ATOMICS));
    let numbered = moving.chain(atomic).zip(1..);
    numbered.map(|((operation, size, messages), seed)| Case { operation, size, messages, seed }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cases_are_sane_and_different() {
        let all = all();
        assert_eq!(all.len(), 5 * SIZES.len() + 2);
        assert!(all.iter().all(Case::is_sane));
        let seeds: std::collections::HashSet<u64> = all.iter().map(|case| case.seed).collect();
        assert_eq!(seeds.len(), all.len());
    }
}
