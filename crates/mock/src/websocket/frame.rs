//! Frames: reads the client's, writes the server's.

/// Larger messages are refused.
pub(super) const MESSAGE_LIMIT: usize = 1024 * 1024;

/// Close codes.
pub(super) const NORMAL: u16 = 1000;
const PROTOCOL_ERROR: u16 = 1002;
const WRONG_TYPE: u16 = 1003;
const NOT_UTF8: u16 = 1007;
/// More messages than the mock queues.
pub(super) const TOO_MANY: u16 = 1008;
const TOO_LARGE: u16 = 1009;

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// A frame or message of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    Text(String),
    Ping(Vec<u8>),
    Pong,
    /// With its code, if present.
    Close(Option<u16>),
}

/// The client violated the protocol: the code for the close frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Violation(pub(super) u16);

/// Unread bytes of a client.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    /// The fragments so far of an unfinished text.
    text: Option<Vec<u8>>,
    /// Whether the client violated the protocol: no more is read.
    broken: bool,
}

/// The header of a client's frame.
struct Header {
    fin: bool,
    opcode: u8,
    mask: [u8; 4],
    /// Start and length of the payload.
    start: usize,
    length: usize,
}

impl Inbox {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if !self.broken {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Whether no byte is left, and no fragment either.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.text.is_none()
    }

    /// The next message or control frame, if it is complete.
    pub(super) fn next(&mut self) -> Result<Option<Incoming>, Violation> {
        let next = self.read();
        if next.is_err() {
            *self = Self { broken: true, ..Self::default() };
        }
        next
    }

    fn read(&mut self) -> Result<Option<Incoming>, Violation> {
        loop {
            let Some(header) = header(&self.bytes)? else { return Ok(None) };
            let text = self.text.as_ref().map_or(0, Vec::len);
            if header.opcode < CLOSE && header.length > MESSAGE_LIMIT.saturating_sub(text) {
                return Err(Violation(TOO_LARGE));
            }
            let end = header.start + header.length;
            if self.bytes.len() < end {
                return Ok(None);
            }
            let mut payload: Vec<u8> = self.bytes.drain(..end).skip(header.start).collect();
            for (place, byte) in payload.iter_mut().enumerate() {
                *byte ^= header.mask[place % 4];
            }
            if let Some(incoming) = self.frame(header.fin, header.opcode, payload)? {
                return Ok(Some(incoming));
            }
        }
    }

    /// The message or control frame that a frame completes.
    fn frame(
        &mut self,
        fin: bool,
        opcode: u8,
        payload: Vec<u8>,
    ) -> Result<Option<Incoming>, Violation> {
        let text = match (opcode, self.text.take()) {
            (TEXT, None) => payload,
            (CONTINUATION, Some(text)) => [text, payload].concat(),
            (BINARY, None) => return Err(Violation(WRONG_TYPE)),
            (CONTINUATION | TEXT | BINARY, _) => return Err(Violation(PROTOCOL_ERROR)),
            (_, unfinished) => {
                self.text = unfinished;
                return control(opcode, payload).map(Some);
            }
        };
        if !fin {
            self.text = Some(text);
            return Ok(None);
        }
        let text = String::from_utf8(text).map_err(|_| Violation(NOT_UTF8))?;
        Ok(Some(Incoming::Text(text)))
    }
}

/// The header at the front of these bytes, if it is complete.
fn header(bytes: &[u8]) -> Result<Option<Header>, Violation> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    let (fin, opcode) = (first & 0x80 != 0, first & 0x0f);
    let short = second & 0x7f;
    let reserved = first & 0x70 != 0 || !matches!(opcode, 0..=2 | 8..=10);
    let bad_control = opcode >= CLOSE && (!fin || short > 125);
    if reserved || second & 0x80 == 0 || bad_control {
        return Err(Violation(PROTOCOL_ERROR));
    }
    let (length_bytes, least) = match short {
        126 => (2, 126),
        127 => (8, 0x1_0000),
        _ => (0, 0),
    };
    let Some((length, rest)) = rest.split_at_checked(length_bytes) else { return Ok(None) };
    let long = length.iter().fold(0u64, |length, byte| length << 8 | u64::from(*byte));
    let length = if length_bytes == 0 { u64::from(short) } else { long };
    if length < least {
        return Err(Violation(PROTOCOL_ERROR));
    }
    let Some((mask, rest)) = rest.split_first_chunk() else { return Ok(None) };
    let length = usize::try_from(length).map_err(|_| Violation(TOO_LARGE))?;
    let start = bytes.len() - rest.len();
    Ok(Some(Header { fin, opcode, mask: *mask, start, length }))
}

fn control(opcode: u8, payload: Vec<u8>) -> Result<Incoming, Violation> {
    match (opcode, payload.as_slice()) {
        (PING, _) => Ok(Incoming::Ping(payload)),
        (PONG, _) => Ok(Incoming::Pong),
        (_, []) => Ok(Incoming::Close(None)),
        (_, [high, low, reason @ ..]) => {
            let code = u16::from_be_bytes([*high, *low]);
            let is_sent = matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999);
            match std::str::from_utf8(reason) {
                Ok(_) if is_sent => Ok(Incoming::Close(Some(code))),
                Ok(_) => Err(Violation(PROTOCOL_ERROR)),
                Err(_) => Err(Violation(NOT_UTF8)),
            }
        }
        _ => Err(Violation(PROTOCOL_ERROR)),
    }
}

/// Writes a text message.
pub(crate) fn put_text(text: &[u8], out: &mut Vec<u8>) {
    put(TEXT, text, out);
}

/// The answer to a ping.
pub(super) fn pong(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put(PONG, payload, &mut out);
    out
}

/// A close frame.
pub(super) fn close(code: u16) -> Vec<u8> {
    let mut out = Vec::new();
    put(CLOSE, &code.to_be_bytes(), &mut out);
    out
}

/// Writes a frame with a whole message. Servers do not mask.
fn put(opcode: u8, payload: &[u8], out: &mut Vec<u8>) {
    out.push(0x80 | opcode);
    match payload.len() {
        length @ 0..=125 => out.extend(u8::try_from(length)),
        length @ 126..=0xffff => {
            out.push(126);
            out.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
        }
        length => {
            out.push(127);
            out.extend((length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frame of a client.
    fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        put(first & 0x0f, payload, &mut frame);
        let start = frame.len() - payload.len();
        (frame[0], frame[1]) = (first, frame[1] | 0x80);
        let key = [9, 8, 7, 6];
        for (place, byte) in frame[start..].iter_mut().enumerate() {
            *byte ^= key[place % 4];
        }
        frame.splice(start..start, key);
        frame
    }

    /// The result of bytes that arrive in pieces.
    fn read(bytes: &[u8], size: usize) -> (Vec<Incoming>, Option<u16>) {
        let (mut inbox, mut found) = (Inbox::default(), Vec::new());
        for piece in bytes.chunks(size) {
            inbox.push(piece);
            loop {
                match inbox.next() {
                    Ok(Some(incoming)) => found.push(incoming),
                    Ok(None) => break,
                    Err(Violation(code)) => return (found, Some(code)),
                }
            }
        }
        (found, None)
    }

    #[test]
    fn the_frames_of_the_rfc_are_read_and_written() {
        // Section 5.7: "Hello" masked, and not masked.
        let hello = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(read(&hello, 3), (vec![Incoming::Text("Hello".to_owned())], None));
        let mut out = Vec::new();
        put_text(b"Hello", &mut out);
        assert_eq!(out, [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f]);
        for (length, header) in [(126, &[0x81, 126, 0, 126][..]), (65_536, &[0x81, 127, 0, 0, 0])] {
            let mut out = Vec::new();
            put_text(&vec![7; length], &mut out);
            assert!(out.starts_with(header), "{length}");
        }
        assert_eq!(close(1000), [0x88, 2, 3, 0xe8]);
        assert_eq!(pong(b"x"), [0x8a, 1, b'x']);
    }

    #[test]
    fn messages_are_joined_in_any_split() {
        let long = "b".repeat(70_000);
        let bytes = [
            masked(0x01, "\u{e4}".as_bytes().split_at(1).0),
            masked(0x89, b"ping"),
            masked(0x00, b""),
            masked(0x80, &"\u{e4}".as_bytes()[1..]),
            masked(0x81, long.as_bytes()),
            masked(0x8a, b""),
            masked(0x88, b"\x03\xe8bye"),
        ]
        .concat();
        let expected = vec![
            Incoming::Ping(b"ping".to_vec()),
            Incoming::Text("\u{e4}".to_owned()),
            Incoming::Text(long),
            Incoming::Pong,
            Incoming::Close(Some(1000)),
        ];
        for size in [1, 7, 4_096, bytes.len()] {
            assert_eq!(read(&bytes, size), (expected.clone(), None), "{size}");
        }
    }

    #[test]
    fn violations_have_their_code() {
        let not_masked = vec![0x81, 0x01, b'a'];
        let huge = [&[0x81, 0xff][..], &(1u64 << 40).to_be_bytes(), &[0; 4]].concat();
        for (sentence, bytes, code) in [
            ("not masked", not_masked, 1002),
            ("reserved bit", masked(0xc1, b"a"), 1002),
            ("reserved opcode", masked(0x83, b"a"), 1002),
            ("a ping in fragments", masked(0x09, b""), 1002),
            ("a ping that is too long", masked(0x89, &[0; 126]), 1002),
            ("nothing to continue", masked(0x80, b"a"), 1002),
            ("two at once", [masked(0x01, b"a"), masked(0x81, b"b")].concat(), 1002),
            ("half a code", masked(0x88, b"\x03"), 1002),
            ("a code of nobody", masked(0x88, b"\x03\xed"), 1002),
            ("a length that is too long", vec![0x81, 0xfe, 0, 5], 1002),
            ("binary", masked(0x82, b"a"), 1003),
            ("not UTF-8", masked(0x81, b"\xff"), 1007),
            ("too large", huge, 1009),
        ] {
            assert_eq!(read(&bytes, 1), (vec![], Some(code)), "{sentence}");
        }
        // A limit on the whole message, not on a frame.
        let half = vec![b'a'; MESSAGE_LIMIT / 2 + 1];
        let both = [masked(0x01, &half), masked(0x80, &half)].concat();
        assert_eq!(read(&both, 65_536), (vec![], Some(1009)));
    }
}
