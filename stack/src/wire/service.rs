//! Transport services, and where a packet stands in its message.

/// The transport service, bits 7:5 of the opcode (protocol section 2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Reliable datagram, which nobody implements.
    Rd,
    /// Unreliable datagram.
    Ud,
    /// Congestion notification.
    Cnp,
    /// Extended reliable connection.
    Xrc,
}

/// Where a packet stands in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// The first of several packets.
    First,
    /// Neither the first nor the last.
    Middle,
    /// The last of several packets.
    Last,
    /// The whole message.
    Only,
}

impl Position {
    /// Whether the packet begins a message.
    pub const fn is_start(self) -> bool {
        matches!(self, Self::First | Self::Only)
    }

    /// Whether the packet ends a message.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Last | Self::Only)
    }

    /// Whether a packet of a message may carry `len` bytes at a path MTU of `mtu` (case C24): FIRST and MIDDLE carry
    /// exactly the path MTU, LAST 1 byte to the path MTU, ONLY none to the path MTU.
    pub const fn admits(self, len: usize, mtu: usize) -> bool {
        match self {
            Self::First | Self::Middle => len == mtu,
            Self::Last => len != 0 && len <= mtu,
            Self::Only => len <= mtu,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_is_start_and_end() {
        let ends = [Position::First, Position::Middle, Position::Last, Position::Only]
            .map(|p| (p.is_start(), p.is_end()));
        assert_eq!(ends, [(true, false), (false, false), (false, true), (true, true)]);
    }
}
