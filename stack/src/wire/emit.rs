//! Writing a frame.

use super::bytes::Writer;
use super::payload::pad_for;
use super::template::{MAX_LEN, Prefix};
use super::{AtomicEth, Bth, Class, Opcode, Operation, Template};
use crate::memory::Crc;

/// The most that headers, pad bytes and ICRC take of a frame, in bytes: a frame of this and the path MTU
/// holds any packet.
pub const MAX_HEADER: usize = MAX_LEN + MAX_TRANSPORT + MAX_PAD + ICRC_LEN;

/// Transport headers of the XRC COMPARE SWAP: BTH, XRCETH, AtomicETH.
pub(super) const MAX_TRANSPORT: usize = Bth::LEN + 4 + AtomicEth::LEN;
const MAX_PAD: usize = 3;
pub(super) const ICRC_LEN: usize = 4;

/// How many bytes of a frame are not payload, pad bytes left out.
pub fn overhead(template: &Template, opcode: Opcode) -> usize {
    template.len() + opcode.header_len() + ICRC_LEN
}

/// Writes one frame: the headers, the payload, pad bytes, the ICRC. Returns its length in bytes.
///
/// `fill` writes exactly `payload_len` bytes into the slice it is given and runs the CRC on over them.
/// `opcode` is that of `operation` in `class`.
///
/// # Errors
///
/// What `fill` returns; the frame is then half written and worthless.
///
/// # Panics
///
/// When `frame` is shorter than the frame; [`MAX_HEADER`] and the path MTU are always enough.
#[expect(clippy::too_many_arguments, reason = "the parts of a frame; bundling them would copy them")]
#[inline]
pub fn emit<E>(
    frame: &mut [u8],
    template: &Template,
    ident: u16,
    bth: &Bth,
    opcode: Opcode,
    class: &Class,
    operation: &Operation,
    payload_len: usize,
    fill: impl FnOnce(&mut [u8], Crc) -> Result<Crc, E>,
) -> Result<usize, E> {
    let pad = &[0; MAX_PAD][..pad_for(payload_len)];
    let transport = Transport { bth, opcode, class, operation, pad };
    emit_padded(frame, template, ident, &transport, payload_len, fill)
}

/// All that a packet holds behind IP and UDP but its payload and its ICRC.
pub(super) struct Transport<'a> {
    pub(super) bth: &'a Bth,
    pub(super) opcode: Opcode,
    pub(super) class: &'a Class,
    pub(super) operation: &'a Operation,
    /// Of any length up to three, and of any value.
    pub(super) pad: &'a [u8],
}

/// As [`emit`], with any pad bytes.
#[inline(always)]
pub(super) fn emit_padded<E>(
    frame: &mut [u8],
    template: &Template,
    ident: u16,
    transport: &Transport<'_>,
    payload_len: usize,
    fill: impl FnOnce(&mut [u8], Crc) -> Result<Crc, E>,
) -> Result<usize, E> {
    let headers_end = template.len() + transport.opcode.header_len();
    let payload_end = headers_end + payload_len;
    let icrc_at = payload_end + transport.pad.len();
    let end = icrc_at + ICRC_LEN;
    assert!(frame.len() >= end, "a frame of {end} bytes does not fit into {}", frame.len());

    let prefix = template.emit(frame, ident, end - template.len());
    let crc = transport.emit(&mut frame[template.len()..headers_end], &prefix);
    let mut crc = fill(&mut frame[headers_end..payload_end], crc)?;
    if !transport.pad.is_empty() {
        frame[payload_end..icrc_at].copy_from_slice(transport.pad);
        crc = crc.update(transport.pad);
    }
    frame[icrc_at..end].copy_from_slice(&crc.finish().to_le_bytes());
    Ok(end)
}

impl Transport<'_> {
    /// Writes the headers into `out`, which they fill, and returns the CRC behind them.
    #[inline(always)]
    fn emit(&self, out: &mut [u8], prefix: &Prefix) -> Crc {
        let Self { bth, opcode, class, operation, pad } = self;
        debug_assert_eq!(operation.opcode(class.service()), Some(*opcode), "{operation:?} of {class:?}");
        let words = bth.words(*opcode, pad.len());
        let mut writer = Writer::new(out);
        writer.put_masked(&words.bytes(), &words.masked(prefix.flip).bytes());
        class.emit(&mut writer);
        operation.emit(&mut writer);
        debug_assert_eq!(writer.copy().len(), opcode.header_len(), "{opcode}");
        prefix.crc.update(writer.copy())
    }
}
