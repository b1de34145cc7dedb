//! What a packet asks or answers.

use super::bytes::{Reader, Writer};
use super::{Aeth, AtomicEth, Feth, Opcode, Position, Reth, Service};

/// What the packet asks or answers, with the headers it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Data for a receive buffer.
    Send {
        /// Where in the message.
        position: Position,
        /// The four bytes read big-endian; only on the last packet.
        immediate: Option<u32>,
        /// Remote key to invalidate; only on the last packet, and never with an immediate.
        invalidate: Option<u32>,
    },
    /// Data for memory.
    Write {
        /// Where in the message.
        position: Position,
        /// On the first packet of a message.
        reth: Option<Reth>,
        /// The four bytes read big-endian; only on the last packet.
        immediate: Option<u32>,
    },
    /// Data wanted from memory.
    ReadRequest(Reth),
    /// Data from memory.
    ReadResponse {
        /// Where in the response.
        position: Position,
        /// On all but middle packets.
        aeth: Option<Aeth>,
    },
    /// Accepted, refused, or not now.
    Acknowledge(Aeth),
    /// The answer to an atomic.
    AtomicAcknowledge {
        /// As in [`Operation::Acknowledge`].
        aeth: Aeth,
        /// What the word held before.
        original: u64,
    },
    /// Replace a word if it holds a value.
    CompareSwap(AtomicEth),
    /// Add to a word.
    FetchAdd(AtomicEth),
    /// Make earlier writes durable or visible.
    Flush {
        /// How.
        feth: Feth,
        /// Where.
        reth: Reth,
    },
    /// Eight bytes for memory, written at once.
    AtomicWrite(Reth),
    /// Congestion on the way; carries nothing but reserved bytes.
    Cnp,
}

impl Operation {
    /// The opcode of this operation in `service`, or `None` when the service has none, or when the headers it
    /// holds do not fit its position.
    pub fn opcode(&self, service: Service) -> Option<Opcode> {
        use Position::{First, Last, Middle, Only};
        let operation = match *self {
            Self::Send { position: First, immediate: None, invalidate: None } => 0x00,
            Self::Send { position: Middle, immediate: None, invalidate: None } => 0x01,
            Self::Send { position: Last, immediate: None, invalidate: None } => 0x02,
            Self::Send { position: Last, immediate: Some(_), invalidate: None } => 0x03,
            Self::Send { position: Only, immediate: None, invalidate: None } => 0x04,
            Self::Send { position: Only, immediate: Some(_), invalidate: None } => 0x05,
            Self::Send { position: Last, immediate: None, invalidate: Some(_) } => 0x16,
            Self::Send { position: Only, immediate: None, invalidate: Some(_) } => 0x17,
            Self::Write { position: First, reth: Some(_), immediate: None } => 0x06,
            Self::Write { position: Middle, reth: None, immediate: None } => 0x07,
            Self::Write { position: Last, reth: None, immediate: None } => 0x08,
            Self::Write { position: Last, reth: None, immediate: Some(_) } => 0x09,
            Self::Write { position: Only, reth: Some(_), immediate: None } => 0x0a,
            Self::Write { position: Only, reth: Some(_), immediate: Some(_) } => 0x0b,
            Self::ReadRequest(_) => 0x0c,
            Self::ReadResponse { position: First, aeth: Some(_) } => 0x0d,
            Self::ReadResponse { position: Middle, aeth: None } => 0x0e,
            Self::ReadResponse { position: Last, aeth: Some(_) } => 0x0f,
            Self::ReadResponse { position: Only, aeth: Some(_) } => 0x10,
            Self::Acknowledge(_) => 0x11,
            Self::AtomicAcknowledge { .. } => 0x12,
            Self::CompareSwap(_) => 0x13,
            Self::FetchAdd(_) => 0x14,
            Self::Flush { .. } => 0x1c,
            Self::AtomicWrite(_) => 0x1d,
            Self::Cnp => return (service == Service::Cnp).then_some(Opcode::CNP),
            Self::Send { .. } | Self::Write { .. } | Self::ReadResponse { .. } => return None,
        };
        Opcode::parse(base(service)? | operation)
    }

    /// Reads the extended headers of `opcode` off `reader`, which stands behind those of the service.
    #[inline(always)]
    pub(super) fn parse(opcode: Opcode, reader: &mut Reader<'_>) -> Option<Self> {
        let position = opcode.position();
        Some(match opcode.operation() {
            _ if opcode == Opcode::CNP => Self::Cnp,
            0x00 | 0x01 | 0x02 | 0x04 => Self::Send { position, immediate: None, invalidate: None },
            0x03 | 0x05 => Self::Send { position, immediate: Some(word(reader)?), invalidate: None },
            0x16 | 0x17 => Self::Send { position, immediate: None, invalidate: Some(word(reader)?) },
            0x07 | 0x08 => Self::Write { position, reth: None, immediate: None },
            0x06 | 0x0a => Self::Write { position, reth: Some(reth(reader)?), immediate: None },
            0x09 => Self::Write { position, reth: None, immediate: Some(word(reader)?) },
            0x0b => Self::Write { position, reth: Some(reth(reader)?), immediate: Some(word(reader)?) },
            0x0c => Self::ReadRequest(reth(reader)?),
            0x0e => Self::ReadResponse { position, aeth: None },
            0x0d | 0x0f | 0x10 => Self::ReadResponse { position, aeth: Some(aeth(reader)?) },
            0x11 => Self::Acknowledge(aeth(reader)?),
            0x12 => {
                Self::AtomicAcknowledge { aeth: aeth(reader)?, original: u64::from_be_bytes(*reader.take()?) }
            }
            0x13 => Self::CompareSwap(AtomicEth::parse(reader.take()?)),
            0x14 => Self::FetchAdd(AtomicEth::parse(reader.take()?)),
            0x1c => Self::Flush { feth: Feth::parse(reader.take()?), reth: reth(reader)? },
            0x1d => Self::AtomicWrite(reth(reader)?),
            _ => return None,
        })
    }

    /// Writes the extended headers in the order of protocol section 2.3.
    #[inline(always)]
    pub(super) fn emit(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Send { immediate, invalidate, .. } => put_words(writer, [*immediate, *invalidate]),
            Self::Write { reth, immediate, .. } => {
                if let Some(reth) = reth {
                    writer.put(&reth.emit());
                }
                put_words(writer, [*immediate, None]);
            }
            Self::ReadRequest(reth) | Self::AtomicWrite(reth) => writer.put(&reth.emit()),
            Self::ReadResponse { aeth: Some(aeth), .. } | Self::Acknowledge(aeth) => writer.put(&aeth.emit()),
            Self::AtomicAcknowledge { aeth, original } => {
                writer.put(&aeth.emit());
                writer.put(&original.to_be_bytes());
            }
            Self::CompareSwap(header) | Self::FetchAdd(header) => writer.put(&header.emit()),
            Self::Flush { feth, reth } => {
                writer.put(&feth.emit());
                writer.put(&reth.emit());
            }
            Self::Cnp => writer.put(&[0; 16]),
            Self::ReadResponse { aeth: None, .. } => {}
        }
    }
}

/// The service bits of an opcode. Congestion notifications stand alone; reliable datagrams are not written.
fn base(service: Service) -> Option<u8> {
    match service {
        Service::Rc => Some(0x00),
        Service::Uc => Some(0x20),
        Service::Ud => Some(0x60),
        Service::Xrc => Some(0xa0),
        Service::Rd | Service::Cnp => None,
    }
}

fn word(reader: &mut Reader<'_>) -> Option<u32> {
    reader.take().map(|bytes| u32::from_be_bytes(*bytes))
}

fn reth(reader: &mut Reader<'_>) -> Option<Reth> {
    reader.take().map(Reth::parse)
}

fn aeth(reader: &mut Reader<'_>) -> Option<Aeth> {
    reader.take().map(Aeth::parse)
}

fn put_words(writer: &mut Writer<'_>, words: [Option<u32>; 2]) {
    for word in words.into_iter().flatten() {
        writer.put(&word.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::Class;
    use super::super::opcode_table::ROWS;
    use super::*;

    #[test]
    fn every_opcode_reads_and_writes_all_of_its_headers() {
        let bytes: [u8; 52] = core::array::from_fn(|i| i as u8 & 0x0f);
        for row in ROWS.iter().filter(|row| row.opcode.service() != Service::Rd) {
            let extended = &bytes[..row.opcode.header_len() - 12];
            let mut reader = Reader(extended);
            let class = Class::parse(row.opcode, &mut reader).unwrap();
            let operation = Operation::parse(row.opcode, &mut reader).unwrap();
            // Reserved bytes are skipped with the rest of a notification.
            assert_eq!(reader.0.len(), if row.opcode == Opcode::CNP { 16 } else { 0 }, "{}", row.name);
            assert_eq!(operation.opcode(class.service()), Some(row.opcode));
            assert_eq!(class.service(), row.opcode.service());

            let mut out = [0; 52];
            let mut writer = Writer::new(&mut out);
            class.emit(&mut writer);
            operation.emit(&mut writer);
            assert_eq!(writer.copy().len(), extended.len(), "{}", row.name);
            let mut again = Reader(&out);
            assert_eq!(Class::parse(row.opcode, &mut again), Some(class));
            assert_eq!(Operation::parse(row.opcode, &mut again), Some(operation));
        }
    }

    #[test]
    fn headers_that_do_not_fit_have_no_opcode() {
        let send = |position, immediate, invalidate| Operation::Send { position, immediate, invalidate };
        assert_eq!(send(Position::First, Some(1), None).opcode(Service::Rc), None);
        assert_eq!(send(Position::Only, Some(1), Some(2)).opcode(Service::Rc), None);
        assert_eq!(send(Position::Only, None, Some(2)).opcode(Service::Uc), None);
        assert_eq!(send(Position::Only, None, None).opcode(Service::Rd), None);
        assert_eq!(Operation::Cnp.opcode(Service::Rc), None);
        assert_eq!(Operation::Cnp.opcode(Service::Cnp), Some(Opcode::CNP));
        assert_eq!(send(Position::Only, None, None).opcode(Service::Cnp), None);
    }
}
