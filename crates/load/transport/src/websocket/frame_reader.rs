//! Reads the frames of a server, with any split of their bytes, and joins them into messages.

use super::FrameError;

/// Maximum payload of a control frame (5.5).
const MAX_CONTROL: u64 = 125;
/// Maximum header length: two bytes and a length of eight.
const MAX_HEADER: usize = 10;
/// Buffer capacity that is kept between messages.
const KEPT_CAPACITY: usize = 64 * 1024;

/// A whole message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A text.
    Text(&'a str),
    /// Bytes.
    Binary(&'a [u8]),
}

/// The body of a close frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseFrame<'a> {
    /// Reason for closing (7.4).
    pub code: u16,
    /// Reason in words.
    pub reason: &'a str,
}

/// A received message or control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// A complete message.
    Message(Message<'a>),
    /// A ping with its payload, which a pong returns.
    Ping(&'a [u8]),
    /// A pong with its payload.
    Pong(&'a [u8]),
    /// The close frame, with or without a body.
    Close(Option<CloseFrame<'a>>),
}

/// The frame whose payload is being read.
#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: Opcode,
    fin: bool,
    /// Number of missing bytes of the payload.
    left: usize,
}

/// Reads the frames of one connection.
///
/// Memory is bounded by the limit on messages, whatever the target sends. After a close frame
/// everything is skipped (5.5.1).
#[derive(Debug)]
pub struct FrameReader {
    max_message: usize,
    header: [u8; MAX_HEADER],
    header_length: usize,
    frame: Option<Frame>,
    /// Whether the unfinished message is a text; `None` between messages.
    message: Option<bool>,
    /// Its payload so far.
    payload: Vec<u8>,
    /// The payload of a control frame so far.
    control: Vec<u8>,
    closed: bool,
}

impl FrameReader {
    /// Creates a reader at the first byte after the handshake, for messages of up to `max_message`
    /// bytes.
    pub const fn new(max_message: usize) -> Self {
        Self {
            max_message,
            header: [0; MAX_HEADER],
            header_length: 0,
            frame: None,
            message: None,
            payload: Vec::new(),
            control: Vec::new(),
            closed: false,
        }
    }

    /// Whether the bytes so far end within a frame or a message.
    pub const fn is_within_message(&self) -> bool {
        self.header_length > 0 || self.frame.is_some() || self.message.is_some()
    }

    /// Reads the next bytes and passes on completed messages.
    ///
    /// # Errors
    /// The first violation of the framing. The data after it cannot be read.
    pub fn feed(
        &mut self,
        mut bytes: &[u8],
        on: &mut impl FnMut(Incoming<'_>),
    ) -> Result<(), FrameError> {
        while !self.closed {
            bytes = match (self.frame, bytes) {
                (Some(frame), []) if frame.left > 0 => break,
                (Some(frame), _) => {
                    let (payload, rest) = bytes.split_at(frame.left.min(bytes.len()));
                    self.read_payload(frame, payload, on)?;
                    rest
                }
                (None, [byte, rest @ ..]) => {
                    self.read_header(*byte)?;
                    rest
                }
                (None, []) => break,
            };
        }
        Ok(())
    }

    /// Reads a byte of a header. The frame begins after its last byte.
    fn read_header(&mut self, byte: u8) -> Result<(), FrameError> {
        // A header has at most ten bytes, so there is room.
        self.header[self.header_length] = byte;
        self.header_length += 1;
        let [first, second, length @ ..] = self.header;
        let [a, b, ..] = length;
        match (self.header_length, second) {
            (1, _) => self.check_first(first),
            (2, 0x80..) => Err(FrameError::Masked),
            (2, short @ 0..126) => self.begin(u64::from(short)),
            (2, _) if is_control(first) => Err(FrameError::LongControl),
            (4, 126) => match u16::from_be_bytes([a, b]) {
                0..126 => Err(FrameError::LengthForm),
                medium => self.begin(u64::from(medium)),
            },
            (MAX_HEADER, _) => match u64::from_be_bytes(length) {
                long @ 0x1_0000..=0x7fff_ffff_ffff_ffff => self.begin(long),
                _ => Err(FrameError::LengthForm),
            },
            _ => Ok(()),
        }
    }

    fn check_first(&self, first: u8) -> Result<(), FrameError> {
        if first & 0x70 != 0 {
            return Err(FrameError::ReservedBit);
        }
        let opcode =
            Opcode::from_first_byte(first).ok_or(FrameError::ReservedOpcode(first & 0x0f))?;
        match (opcode, self.message) {
            (Opcode::Continuation, None) => Err(FrameError::NothingToContinue),
            (Opcode::Text | Opcode::Binary, Some(_)) => Err(FrameError::UnfinishedMessage),
            _ if opcode.is_control() && first & 0x80 == 0 => Err(FrameError::FragmentedControl),
            _ => Ok(()),
        }
    }

    /// Handles a complete header that announces a payload of `length` bytes.
    fn begin(&mut self, length: u64) -> Result<(), FrameError> {
        let first = self.header[0];
        let opcode =
            Opcode::from_first_byte(first).ok_or(FrameError::ReservedOpcode(first & 0x0f))?;
        let too_large = FrameError::TooLarge(self.max_message);
        let left = usize::try_from(length).map_err(|_| too_large)?;
        if opcode.is_control() {
            debug_assert!(length <= MAX_CONTROL, "longer ones are refused by their second byte");
        } else if left > self.max_message.saturating_sub(self.payload.len()) {
            return Err(too_large);
        }
        if matches!(opcode, Opcode::Text | Opcode::Binary) {
            self.message = Some(opcode == Opcode::Text);
        }
        self.header_length = 0;
        self.frame = Some(Frame { opcode, fin: first & 0x80 != 0, left });
        Ok(())
    }

    fn read_payload(
        &mut self,
        frame: Frame,
        payload: &[u8],
        on: &mut impl FnMut(Incoming<'_>),
    ) -> Result<(), FrameError> {
        let left = frame.left - payload.len();
        self.frame = (left > 0).then_some(Frame { left, ..frame });
        if !frame.opcode.is_control() {
            return self.read_message(payload, left == 0 && frame.fin, on);
        }
        if left == 0 && self.control.is_empty() {
            return self.read_control(frame.opcode, payload, on);
        }
        self.control.extend_from_slice(payload);
        if left > 0 {
            return Ok(());
        }
        let whole = std::mem::take(&mut self.control);
        self.read_control(frame.opcode, &whole, on)
    }

    /// Reads a part of a message; `last`: the part completes the frame.
    fn read_message(
        &mut self,
        part: &[u8],
        last: bool,
        on: &mut impl FnMut(Incoming<'_>),
    ) -> Result<(), FrameError> {
        let is_text = self.message == Some(true);
        if last && self.payload.is_empty() {
            self.message = None;
            return emit(is_text, part, on);
        }
        self.payload.extend_from_slice(part);
        if !last {
            return Ok(());
        }
        self.message = None;
        emit(is_text, &self.payload, on)?;
        self.payload.clear();
        self.payload.shrink_to(KEPT_CAPACITY);
        Ok(())
    }

    fn read_control(
        &mut self,
        opcode: Opcode,
        payload: &[u8],
        on: &mut impl FnMut(Incoming<'_>),
    ) -> Result<(), FrameError> {
        match opcode {
            Opcode::Ping => on(Incoming::Ping(payload)),
            Opcode::Pong => on(Incoming::Pong(payload)),
            _ => {
                let body = close_body(payload)?;
                self.closed = true;
                on(Incoming::Close(body));
            }
        }
        Ok(())
    }
}

/// Passes on a message.
fn emit(
    is_text: bool,
    payload: &[u8],
    on: &mut impl FnMut(Incoming<'_>),
) -> Result<(), FrameError> {
    on(Incoming::Message(if is_text {
        Message::Text(std::str::from_utf8(payload).map_err(|_| FrameError::NotUtf8)?)
    } else {
        Message::Binary(payload)
    }));
    Ok(())
}

const fn is_control(first: u8) -> bool {
    first & 0x08 != 0
}

fn close_body(payload: &[u8]) -> Result<Option<CloseFrame<'_>>, FrameError> {
    let [high, low, reason @ ..] = payload else {
        return if payload.is_empty() { Ok(None) } else { Err(FrameError::CloseLength) };
    };
    let code = u16::from_be_bytes([*high, *low]);
    // 1004 is reserved; 1005, 1006 and 1015 are never sent (7.4.1). 1012 to 1014 came later.
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(FrameError::CloseCode(code));
    }
    let reason = std::str::from_utf8(reason).map_err(|_| FrameError::NotUtf8)?;
    Ok(Some(CloseFrame { code, reason }))
}

// One frame: its opcode, its header and its mask (5.2, 5.3).

/// Maximum payload whose length fits in the second byte.
const SHORT: usize = 125;
/// The key of a mask.
const KEY_BYTES: usize = 4;

/// The meaning of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opcode {
    /// A further fragment of a message.
    Continuation,
    /// A text, or its first fragment.
    Text,
    /// Bytes, or their first fragment.
    Binary,
    /// The end of the connection.
    Close,
    /// Asks for a pong.
    Ping,
    /// Answers a ping.
    Pong,
}

impl Opcode {
    /// The opcode in the lower four bits of a frame's first byte; `None` for a reserved one.
    pub const fn from_first_byte(first: u8) -> Option<Self> {
        match first & 0x0f {
            0x0 => Some(Self::Continuation),
            0x1 => Some(Self::Text),
            0x2 => Some(Self::Binary),
            0x8 => Some(Self::Close),
            0x9 => Some(Self::Ping),
            0xa => Some(Self::Pong),
            _ => None,
        }
    }

    const fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0x0,
            Self::Text => 0x1,
            Self::Binary => 0x2,
            Self::Close => 0x8,
            Self::Ping => 0x9,
            Self::Pong => 0xa,
        }
    }

    /// Whether frames of this kind control the connection instead of transporting a message.
    pub const fn is_control(self) -> bool {
        self.bits() >= 0x8
    }
}

/// Appends the header of a client's frame, whose payload of `length` bytes is masked with `key`.
pub fn push_header(out: &mut Vec<u8>, opcode: Opcode, fin: bool, length: usize, key: [u8; 4]) {
    const MASKED: u8 = 0x80;
    out.push(opcode.bits() | if fin { 0x80 } else { 0 });
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if length <= SHORT => out.push(MASKED | short),
        (_, Ok(medium)) => {
            out.push(MASKED | 0x7e);
            out.extend_from_slice(&medium.to_be_bytes());
        }
        _ => {
            out.push(MASKED | 0x7f);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&key);
}

/// The bytes of a client's frame with a payload of `length` bytes.
pub const fn client_frame_len(length: usize) -> usize {
    let of_length = match length {
        0..=SHORT => 0,
        126..=0xffff => 2,
        _ => 8,
    };
    2 + of_length + KEY_BYTES + length
}

/// Masks a payload, or removes its mask: byte `i` is combined with byte `i mod 4` of the key.
pub fn mask(key: [u8; 4], payload: &mut [u8]) {
    let [a, b, c, d] = key;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (words, rest) = payload.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(key.iter().cycle()) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod frame_tests {
    use super::*;

    #[test]
    fn the_masked_text_of_the_rfc_is_written_as_there() {
        // Section 5.7: a single-frame masked text message, "Hello".
        let key = [0x37, 0xfa, 0x21, 0x3d];
        let (mut out, mut payload) = (Vec::new(), b"Hello".to_vec());
        push_header(&mut out, Opcode::Text, true, payload.len(), key);
        mask(key, &mut payload);
        out.extend(payload);
        assert_eq!(out, [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]);
    }

    #[test]
    fn lengths_take_the_fewest_bytes() {
        for (length, expected) in [
            (0, vec![0x82, 0x80]),
            (125, vec![0x82, 0xfd]),
            (126, vec![0x82, 0xfe, 0x00, 0x7e]),
            (0xffff, vec![0x82, 0xfe, 0xff, 0xff]),
            (0x1_0000, vec![0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let mut out = Vec::new();
            push_header(&mut out, Opcode::Binary, true, length, [1, 2, 3, 4]);
            assert_eq!(out.split_off(out.len() - 4), [1, 2, 3, 4]);
            assert_eq!(out, expected, "{length}");
            assert_eq!(client_frame_len(length), expected.len() + 4 + length);
        }
    }

    #[test]
    fn a_mask_goes_on_from_byte_to_byte_and_is_its_own_inverse() {
        let key = [1, 2, 4, 8];
        for length in 0..40 {
            let plain: Vec<u8> = (0..length).collect();
            let mut masked = plain.clone();
            mask(key, &mut masked);
            let slow: Vec<u8> =
                plain.iter().enumerate().map(|(i, byte)| byte ^ key[i % 4]).collect();
            assert_eq!(masked, slow);
            mask(key, &mut masked);
            assert_eq!(masked, plain);
        }
    }
}
