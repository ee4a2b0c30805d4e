//! Frames (RFC 9113, sections 4 and 6): their heads, and those that we write.

use super::error::Code;

/// Bytes of a frame's head.
pub(super) const HEAD: usize = 9;
/// The largest payload that we accept: the one that every endpoint must, as we do not ask for more.
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

/// What stands before the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Head {
    /// Reads it; the reserved bit is ignored.
    pub(super) fn parse(bytes: [u8; HEAD]) -> Self {
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

    /// Appends it. Lengths have 24 bits.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }

    /// Its bytes, to be put where room was left for them.
    pub(super) fn bytes(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        let length = u32::try_from(self.length).unwrap_or(u32::MAX).to_be_bytes();
        bytes[..3].copy_from_slice(&length[1..]);
        (bytes[3], bytes[4]) = (self.kind, self.flags);
        bytes[5..].copy_from_slice(&self.stream.to_be_bytes());
        bytes
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    Head { length: payload.len(), kind, flags, stream }.write(out);
    out.extend_from_slice(payload);
}

/// Our settings (section 6.5): pairs of identifier and value.
pub(super) fn settings(pairs: &[(u16, u32)], out: &mut Vec<u8>) {
    Head { length: pairs.len() * 6, kind: SETTINGS, flags: 0, stream: 0 }.write(out);
    for (identifier, value) in pairs {
        out.extend_from_slice(&identifier.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// The target's settings were taken over.
pub(super) fn settings_ack(out: &mut Vec<u8>) {
    frame(SETTINGS, ACK, 0, &[], out);
}

/// The answer to a `PING`.
pub(super) fn ping_ack(payload: &[u8], out: &mut Vec<u8>) {
    frame(PING, ACK, 0, payload, out);
}

/// Room was made in a stream's window, or in the connection's (0).
pub(super) fn window_update(stream: u32, by: u32, out: &mut Vec<u8>) {
    frame(WINDOW_UPDATE, 0, stream, &by.to_be_bytes(), out);
}

/// A stream ends before its time.
pub(super) fn reset(stream: u32, code: Code, out: &mut Vec<u8>) {
    frame(RST_STREAM, 0, stream, &code.0.to_be_bytes(), out);
}

/// The connection ends. The target opened no streams, so that the last one of them is 0.
pub(super) fn go_away(code: Code, out: &mut Vec<u8>) {
    let [a, b, c, d] = code.0.to_be_bytes();
    frame(GOAWAY, 0, 0, &[0, 0, 0, 0, a, b, c, d], out);
}

/// Writes the frames of a field section whose block stands at the end of `out`, after room for one head that begins at
/// `start` (section 6.2 and 6.10).
pub(super) fn close_headers(
    stream: u32,
    end_stream: bool,
    (start, max): (usize, usize),
    out: &mut Vec<u8>,
) {
    let length = out.len() - start - HEAD;
    let end = if end_stream { END_STREAM } else { 0 };
    if length <= max {
        let head = Head { length, kind: HEADERS, flags: end | END_HEADERS, stream };
        out[start..start + HEAD].copy_from_slice(&head.bytes());
        return;
    }
    let block = out.split_off(start + HEAD);
    out.truncate(start);
    let mut parts = block.chunks(max).enumerate().peekable();
    while let Some((index, part)) = parts.next() {
        let (kind, flags) = if index == 0 { (HEADERS, end) } else { (CONTINUATION, 0) };
        let flags = flags | if parts.peek().is_none() { END_HEADERS } else { 0 };
        frame(kind, flags, stream, part, out);
    }
}

/// The payload without its padding (sections 6.1 and 6.2); `None` where the padding is longer than the payload.
pub(super) fn without_padding(head: Head, payload: &[u8]) -> Option<&[u8]> {
    if !head.has(PADDED) {
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
    fn heads_are_read_as_they_are_written() {
        let head =
            Head { length: 0x01_02_03, kind: HEADERS, flags: END_HEADERS, stream: 0x7fff_fffd };
        assert_eq!(head.bytes(), [1, 2, 3, 1, 4, 0x7f, 0xff, 0xff, 0xfd]);
        assert_eq!(Head::parse(head.bytes()), head);
        let reserved = [0, 0, 0, 0, 0, 0x80, 0, 0, 1];
        assert_eq!(Head::parse(reserved).stream, 1, "the reserved bit is ignored");
    }

    #[test]
    fn a_long_field_section_is_continued() {
        let mut out = b"before".to_vec();
        let start = out.len();
        out.extend_from_slice(&[0; HEAD]);
        out.extend_from_slice(b"abcdefgh");
        close_headers(5, true, (start, 3), &mut out);
        let mut expected = b"before".to_vec();
        for (kind, flags, part) in
            [(1, END_STREAM, &b"abc"[..]), (9, 0, b"def"), (9, END_HEADERS, b"gh")]
        {
            frame(kind, flags, 5, part, &mut expected);
        }
        assert_eq!(out, expected);
    }

    #[test]
    fn padding_is_taken_off_unless_it_is_too_long() {
        let padded = Head { length: 5, kind: HEADERS, flags: PADDED, stream: 1 };
        assert_eq!(without_padding(padded, &[2, b'a', b'b', 0, 0]), Some(&b"ab"[..]));
        assert_eq!(without_padding(padded, &[5, b'a', b'b', 0, 0]), None);
        assert_eq!(without_padding(padded, &[]), None);
    }
}
