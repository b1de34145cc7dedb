//! Opcodes (protocol section 2.4).

use super::opcode_table::ROWS;
use super::{Position, Service};
use core::fmt;

/// An opcode that exists. What it means is a table.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Opcode(u8);

/// How many payload bytes a packet may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadRule {
    /// None at all.
    None,
    /// Exactly the path MTU.
    Full,
    /// One byte to the path MTU.
    Some,
    /// None to the path MTU; for datagrams, to the MTU of the port.
    Any,
    /// Exactly eight.
    Eight,
}

impl Opcode {
    /// The opcode of `code`, or `None` when there is none.
    #[inline]
    pub fn parse(code: u8) -> Option<Self> {
        (HEADER_LEN[usize::from(code)] != 0).then_some(Self(code))
    }

    /// The byte on the wire.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The name in capitals, with the service in front: `RC_SEND_FIRST`.
    pub fn name(self) -> &'static str {
        ROWS[usize::from(ROW_OF[usize::from(self.0)])].name
    }

    /// Which service the opcode belongs to.
    pub const fn service(self) -> Service {
        match self.0 >> 5 {
            0 => Service::Rc,
            1 => Service::Uc,
            2 => Service::Rd,
            3 => Service::Ud,
            4 => Service::Cnp,
            _ => Service::Xrc,
        }
    }

    /// Where in its message a packet with this opcode stands.
    pub const fn position(self) -> Position {
        match self.operation() {
            _ if matches!(self.service(), Service::Cnp) => Position::Only,
            0x00 | 0x06 | 0x0d => Position::First,
            0x01 | 0x07 | 0x0e => Position::Middle,
            0x02 | 0x03 | 0x08 | 0x09 | 0x0f | 0x16 => Position::Last,
            _ => Position::Only,
        }
    }

    /// Whether it asks something of the responder; a congestion notification does not.
    pub const fn is_request(self) -> bool {
        !self.is_response() && !matches!(self.service(), Service::Cnp)
    }

    /// Whether it answers a requester.
    pub const fn is_response(self) -> bool {
        matches!(self.operation(), 0x0d..=0x12)
    }

    /// Base transport header and extended headers together, in bytes.
    #[inline]
    pub fn header_len(self) -> usize {
        usize::from(HEADER_LEN[usize::from(self.0)])
    }

    /// How many payload bytes may follow the headers.
    pub fn payload_rule(self) -> PayloadRule {
        ROWS[usize::from(ROW_OF[usize::from(self.0)])].payload
    }

    /// Whether payload may follow the headers.
    #[inline]
    pub const fn carries_payload(self) -> bool {
        // READ requests, acknowledgements, atomics, RESYNC and FLUSH carry none.
        !matches!(self.operation(), 0x0c | 0x11..=0x15 | 0x1c) && !matches!(self.service(), Service::Cnp)
    }

    /// What is asked or answered, whatever the service: the low five bits.
    pub(super) const fn operation(self) -> u8 {
        self.0 & 0x1f
    }

    /// For the table alone, which makes every opcode there is.
    pub(super) const fn from_table(code: u8) -> Self {
        Self(code)
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Header length by code, 0 for a code that is no opcode: the one column that every packet needs.
static HEADER_LEN: [u8; 256] = {
    let mut lengths = [0; 256];
    let mut row = 0;
    while row < ROWS.len() {
        lengths[ROWS[row].opcode.0 as usize] = ROWS[row].header_len;
        row += 1;
    }
    lengths
};

/// Row by code; meaningless for a code that is no opcode.
static ROW_OF: [u8; 256] = {
    let mut rows = [0; 256];
    let mut row = 0;
    while row < ROWS.len() {
        rows[ROWS[row].opcode.0 as usize] = row as u8;
        row += 1;
    }
    rows
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::{String, ToString};
    use std::{format, vec::Vec};

    const CSV: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/protocol/opcodes.csv");

    /// The line of the reference table, as far as this one tells.
    fn line(opcode: Opcode) -> String {
        let service = format!("{:?}", opcode.service()).to_uppercase();
        let role = match (opcode.is_request(), opcode.is_response()) {
            (true, false) => "req",
            (false, true) => "resp",
            _ => "cnp",
        };
        let position = opcode.position();
        let [start, middle, end] =
            [position.is_start(), position == Position::Middle, position.is_end()].map(u8::from);
        let payload = match opcode.payload_rule() {
            PayloadRule::None => "none",
            PayloadRule::Full => "=PMTU",
            PayloadRule::Some => "1..PMTU",
            PayloadRule::Any if opcode.service() == Service::Ud => "0..port MTU",
            PayloadRule::Any => "0..PMTU",
            PayloadRule::Eight => "=8",
        };
        let (code, len) = (opcode.code(), opcode.header_len());
        format!("0x{code:02X},{service},{opcode},{role},{start},{middle},{end},{len},{payload}")
    }

    #[test]
    fn table_is_the_reference_line_by_line() {
        let csv = std::fs::read_to_string(CSV)
            .unwrap_or_else(|error| panic!("the reference table {CSV} cannot be read: {error}"));
        let want: Vec<_> = csv.lines().skip(1).map(columns).collect();
        let have: Vec<_> = (0..=255).filter_map(Opcode::parse).map(line).collect();
        assert_eq!(have.len(), 89);
        assert_eq!(have, want);
    }

    /// All columns but the names of the headers and what follows the payload.
    fn columns(line: &str) -> String {
        let columns: Vec<_> = line.split(',').collect();
        [&columns[..7], &columns[8..10]].concat().join(",").to_string()
    }

    #[test]
    fn there_are_89() {
        assert_eq!((0..=255).filter(|&code| Opcode::parse(code).is_some()).count(), 89);
        assert_eq!(ROWS.len(), 89);
    }

    #[test]
    fn codes_round_trip_and_gaps_are_no_opcodes() {
        for row in ROWS {
            assert_eq!(Opcode::parse(row.opcode.code()), Some(row.opcode));
            assert_eq!(row.opcode.name(), row.name);
        }
        for code in [0x15, 0x18, 0x1e, 0x1f, 0x2c, 0x56, 0x60, 0x66, 0x80, 0x82, 0xb5, 0xc0, 0xff] {
            assert_eq!(Opcode::parse(code), None, "{code:#x}");
        }
    }

    #[test]
    fn payload_is_barred_exactly_where_the_table_says() {
        for row in ROWS {
            assert_eq!(row.opcode.carries_payload(), row.payload != PayloadRule::None, "{}", row.name);
        }
    }
}
