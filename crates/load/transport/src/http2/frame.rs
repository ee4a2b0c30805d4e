//! Frames (RFC 9113, sections 4 and 6): their headers, and writing them.

use super::ErrorCode;

/// Length of a frame header.
pub(super) const HEADER_LEN: usize = 9;
/// The largest payload that we accept: the minimum of the standard, as we do not ask for more.
pub(super) const MAX_PAYLOAD: usize = 16_384;

pub(super) const DATA: u8 = 0x0;
pub(super) const HEADERS: u8 = 0x1;
pub(super) const PRIORITY: u8 = 0x2;
pub(super) const RST_STREAM: u8 = 0x3;
pub(super) const SETTINGS: u8 = 0x4;
pub(super) const PUSH_PROMISE: u8 = 0x5;
pub(super) const PING: u8 = 0x6;
pub(super) const GOAWAY: u8 = 0x7;
pub(super) const WINDOW_UPDATE: u8 = 0x8;
pub(super) const CONTINUATION: u8 = 0x9;

pub(super) const END_STREAM: u8 = 0x1;
pub(super) const ACK: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
pub(super) const PADDED: u8 = 0x8;
pub(super) const WITH_PRIORITY: u8 = 0x20;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl FrameHeader {
    /// Parses a header. The reserved bit is ignored.
    pub(super) fn parse(bytes: [u8; HEADER_LEN]) -> Self {
        let [a, b, c, kind, flags, rest @ ..] = bytes;
        let length = u32::from_be_bytes([0, a, b, c]);
        Self {
            length: usize::try_from(length).unwrap_or(usize::MAX),
            kind,
            flags,
            stream: u32::from_be_bytes(rest) & 0x7fff_ffff,
        }
    }

    pub(super) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Appends the header. Lengths have 24 bits.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }

    /// The encoded header.
    pub(super) fn bytes(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        let length = u32::try_from(self.length).unwrap_or(u32::MAX).to_be_bytes();
        bytes[..3].copy_from_slice(&length[1..]);
        (bytes[3], bytes[4]) = (self.kind, self.flags);
        bytes[5..].copy_from_slice(&self.stream.to_be_bytes());
        bytes
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    FrameHeader { length: payload.len(), kind, flags, stream }.write(out);
    out.extend_from_slice(payload);
}

/// Writes our settings (section 6.5): pairs of identifier and value.
pub(super) fn settings(pairs: &[(u16, u32)], out: &mut Vec<u8>) {
    FrameHeader { length: pairs.len() * 6, kind: SETTINGS, flags: 0, stream: 0 }.write(out);
    for (identifier, value) in pairs {
        out.extend_from_slice(&identifier.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Acknowledges the target's settings.
pub(super) fn settings_ack(out: &mut Vec<u8>) {
    frame(SETTINGS, ACK, 0, &[], out);
}

/// Acknowledges a `PING`.
pub(super) fn ping_ack(payload: &[u8], out: &mut Vec<u8>) {
    frame(PING, ACK, 0, payload, out);
}

/// Opens the window of a stream, or of the connection (0).
pub(super) fn window_update(stream: u32, by: u32, out: &mut Vec<u8>) {
    frame(WINDOW_UPDATE, 0, stream, &by.to_be_bytes(), out);
}

/// Resets a stream.
pub(super) fn reset(stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
    frame(RST_STREAM, 0, stream, &code.0.to_be_bytes(), out);
}

/// Ends the connection. The target opened no streams, so its last stream is 0.
pub(super) fn go_away(code: ErrorCode, out: &mut Vec<u8>) {
    let [a, b, c, d] = code.0.to_be_bytes();
    frame(GOAWAY, 0, 0, &[0, 0, 0, 0, a, b, c, d], out);
}

/// Completes the frames of a header block. The block is at the end of `out`, after space for one
/// frame header at `start` (sections 6.2 and 6.10).
pub(super) fn finish_headers(
    stream: u32,
    end_stream: bool,
    start: usize,
    max: usize,
    out: &mut Vec<u8>,
) {
    let length = out.len() - start - HEADER_LEN;
    let end = if end_stream { END_STREAM } else { 0 };
    if length <= max {
        let header = FrameHeader { length, kind: HEADERS, flags: end | END_HEADERS, stream };
        out[start..start + HEADER_LEN].copy_from_slice(&header.bytes());
        return;
    }
    let block = out.split_off(start + HEADER_LEN);
    out.truncate(start);
    let mut parts = block.chunks(max).enumerate().peekable();
    while let Some((index, part)) = parts.next() {
        let (kind, flags) = if index == 0 { (HEADERS, end) } else { (CONTINUATION, 0) };
        let flags = flags | if parts.peek().is_none() { END_HEADERS } else { 0 };
        frame(kind, flags, stream, part, out);
    }
}

/// The payload without its padding (sections 6.1 and 6.2); `None` if the padding is longer than the
/// payload.
pub(super) fn without_padding(header: FrameHeader, payload: &[u8]) -> Option<&[u8]> {
    if !header.has(PADDED) {
        return Some(payload);
    }
    let (&padding, rest) = payload.split_first()?;
    Some(&rest[..rest.len().checked_sub(usize::from(padding))?])
}

/// The first four bytes of a payload as a number.
pub(super) fn number(payload: &[u8]) -> u32 {
    payload.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_round_trip() {
        let header = FrameHeader {
            length: 0x01_02_03,
            kind: HEADERS,
            flags: END_HEADERS,
            stream: 0x7fff_fffd,
        };
        assert_eq!(header.bytes(), [1, 2, 3, 1, 4, 0x7f, 0xff, 0xff, 0xfd]);
        assert_eq!(FrameHeader::parse(header.bytes()), header);
        let reserved = [0, 0, 0, 0, 0, 0x80, 0, 0, 1];
        assert_eq!(FrameHeader::parse(reserved).stream, 1, "the reserved bit is ignored");
    }

    #[test]
    fn a_long_header_block_is_continued() {
        let mut out = b"before".to_vec();
        let start = out.len();
        out.extend_from_slice(&[0; HEADER_LEN]);
        out.extend_from_slice(b"abcdefgh");
        finish_headers(5, true, start, 3, &mut out);
        let mut expected = b"before".to_vec();
        for (kind, flags, part) in
            [(1, END_STREAM, &b"abc"[..]), (9, 0, b"def"), (9, END_HEADERS, b"gh")]
        {
            frame(kind, flags, 5, part, &mut expected);
        }
        assert_eq!(out, expected);
    }

    #[test]
    fn padding_is_removed_unless_it_is_too_long() {
        let padded = FrameHeader { length: 5, kind: HEADERS, flags: PADDED, stream: 1 };
        assert_eq!(without_padding(padded, &[2, b'a', b'b', 0, 0]), Some(&b"ab"[..]));
        assert_eq!(without_padding(padded, &[5, b'a', b'b', 0, 0]), None);
        assert_eq!(without_padding(padded, &[]), None);
    }
}
