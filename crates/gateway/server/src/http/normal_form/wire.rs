//! Checks the bytes of HTTP/1.1 heads for faults that the HTTP library removes or corrects: a
//! second equal length, a length beside a transfer coding, a fragment, line feeds without carriage
//! return.
//!
//! The inspector follows the framing, so that body bytes are never taken for a head. It is as
//! strict as the library or stricter: where it loses the framing, every later head is refused.

/// Stored bytes of a line. A longer line with a length or coding is refused.
const KEPT: usize = 64;

/// Why a head has no normal form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireFault {
    /// A line ends without a carriage return.
    BareLineFeed,
    /// A line starts with white space and continues the one before.
    FoldedLine,
    /// The target has a fragment.
    Fragment,
    /// The head has two lengths, even equal ones, or one that is not a number.
    Lengths,
    /// The head has a transfer coding other than `chunked`.
    Coding,
    /// The body before it does not follow its framing.
    LostFraming,
}

/// Inspects the bytes of one connection, split into any pieces.
#[derive(Debug, Default)]
pub struct WireInspector {
    state: State,
    line: Line,
    head: Head,
    /// Heads that are complete.
    heads: u64,
    first_fault: Option<(u64, WireFault)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Before a request line, where empty lines are skipped.
    #[default]
    Start,
    Headers,
    /// The remaining bytes of a body with a length.
    Body(u64),
    /// In the line with the size of a chunk.
    Size(Size),
    Chunk(u64),
    /// The line break after a chunk.
    ChunkCr,
    ChunkLf,
    /// The start of a line after the last chunk.
    TrailerStart,
    Trailer,
    TrailerLf,
    EndLf,
    /// All later bytes are ignored.
    Lost,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    bytes: u64,
    part: SizePart,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SizePart {
    #[default]
    First,
    Digits,
    Space,
    Extension,
    Lf,
}

/// The beginning of a line, and its end.
#[derive(Debug)]
struct Line {
    start: [u8; KEPT],
    length: usize,
    last: u8,
    has_fragment: bool,
}

impl Default for Line {
    fn default() -> Self {
        Self { start: [0; KEPT], length: 0, last: 0, has_fragment: false }
    }
}

/// The framing of the body according to the head so far.
#[derive(Debug, Default)]
struct Head {
    length: Option<u64>,
    lengths: u32,
    codings: u32,
    fault: Option<WireFault>,
}

impl WireInspector {
    /// The first faulty head, counted from 1, and its fault. All later heads count as faulty.
    pub const fn first_fault(&self) -> Option<(u64, WireFault)> {
        self.first_fault
    }

    /// Takes the next bytes of the connection.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.state != State::Lost {
            let taken = match self.state {
                State::Start | State::Headers => self.take_line(bytes),
                State::Body(left) => self.skip(bytes, left, State::Body, State::Start),
                State::Chunk(left) => self.skip(bytes, left, State::Chunk, State::ChunkCr),
                _ => {
                    self.state = self.next(bytes[0]);
                    1
                }
            };
            bytes = bytes.get(taken..).unwrap_or_default();
        }
    }

    /// Skips a part of a body. Returns the number of bytes taken.
    fn skip(&mut self, bytes: &[u8], left: u64, within: fn(u64) -> State, after: State) -> usize {
        let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let left = left - taken as u64;
        self.state = if left == 0 { after } else { within(left) };
        taken
    }

    /// Takes a line of a head, or the available part of it. Returns the number of bytes taken.
    fn take_line(&mut self, bytes: &[u8]) -> usize {
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            self.line.keep(bytes, self.state);
            return bytes.len();
        };
        self.line.keep(&bytes[..end], self.state);
        self.end_line();
        self.line.length = 0;
        self.line.last = 0;
        self.line.has_fragment = false;
        end + 1
    }

    fn end_line(&mut self) {
        let line = &self.line;
        let is_empty = line.length == 0 || line.start[..line.length] == *b"\r";
        match self.state {
            State::Start if is_empty => return,
            State::Start => self.state = State::Headers,
            _ => {}
        }
        if line.last != b'\r' {
            self.head.fail(WireFault::BareLineFeed);
        }
        if line.has_fragment {
            self.head.fail(WireFault::Fragment);
        }
        if is_empty {
            self.end_head();
        } else {
            self.head.read(&line.start[..line.length]);
        }
    }

    fn end_head(&mut self) {
        let head = std::mem::take(&mut self.head);
        self.heads += 1;
        self.state = match (head.verdict(), head.codings, head.length) {
            (Some(fault), ..) => {
                self.first_fault = Some((self.heads, fault));
                State::Lost
            }
            (None, 1.., _) => State::Size(Size::default()),
            (None, 0, Some(length)) if length > 0 => State::Body(length),
            _ => State::Start,
        };
    }

    /// The state after a byte of the framing of chunks: the grammar of the HTTP library.
    fn next(&mut self, byte: u8) -> State {
        let state = match (self.state, byte) {
            (State::Size(size), _) => size.next(byte),
            (State::ChunkCr, b'\r') => Some(State::ChunkLf),
            (State::ChunkLf, b'\n') => Some(State::Size(Size::default())),
            (State::TrailerStart, b'\r') => Some(State::EndLf),
            (State::Trailer, b'\r') => Some(State::TrailerLf),
            // A continuation line, or a byte that does not end a line for all servers.
            (State::TrailerStart, b' ' | b'\t') => None,
            (State::TrailerStart | State::Trailer, _) if is_control(byte) => None,
            (State::TrailerStart | State::Trailer, _) => Some(State::Trailer),
            (State::TrailerLf, b'\n') => Some(State::TrailerStart),
            (State::EndLf, b'\n') => Some(State::Start),
            _ => None,
        };
        state.unwrap_or_else(|| {
            // The library closes the connection here; if it did not, the next head is refused.
            self.first_fault = Some((self.heads + 1, WireFault::LostFraming));
            State::Lost
        })
    }
}

impl Line {
    fn keep(&mut self, part: &[u8], state: State) {
        let taken = part.len().min(KEPT - self.length);
        self.start[self.length..self.length + taken].copy_from_slice(&part[..taken]);
        self.length += taken;
        self.last = part.last().copied().unwrap_or(self.last);
        if state == State::Start {
            self.has_fragment |= memchr::memchr(b'#', part).is_some();
        }
    }
}

impl Head {
    fn fail(&mut self, fault: WireFault) {
        self.fault.get_or_insert(fault);
    }

    /// Reads the beginning of a line of the head.
    fn read(&mut self, line: &[u8]) {
        match line {
            [b' ' | b'\t', ..] => self.fail(WireFault::FoldedLine),
            [b'c' | b'C', ..] => self.read_length(line),
            [b't' | b'T', ..] => self.read_coding(line),
            _ => {}
        }
    }

    fn read_length(&mut self, line: &[u8]) {
        let Some(value) = value_of(line, b"content-length:") else { return };
        self.lengths += 1;
        self.length = parse_length(value, line.len());
        if self.length.is_none() {
            self.fail(WireFault::Lengths);
        }
    }

    fn read_coding(&mut self, line: &[u8]) {
        let Some(value) = value_of(line, b"transfer-encoding:") else { return };
        self.codings += 1;
        if line.len() == KEPT || !value.eq_ignore_ascii_case(b"chunked") {
            self.fail(WireFault::Coding);
        }
    }

    fn verdict(&self) -> Option<WireFault> {
        let two = self.lengths + self.codings > 1;
        self.fault.or_else(|| two.then_some(WireFault::Lengths))
    }
}

/// A control character that does not end a line, including a line feed alone, where servers
/// disagree.
const fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\t'
}

/// The value of a header, where the line has this name.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

fn parse_length(value: &[u8], line: usize) -> Option<u64> {
    if line == KEPT || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

impl Size {
    fn next(self, byte: u8) -> Option<State> {
        let at = |part| Some(State::Size(Self { part, ..self }));
        let digit = char::from(byte).to_digit(16);
        match (self.part, byte) {
            (SizePart::First | SizePart::Digits, _) if digit.is_some() => {
                let bytes = self.bytes.checked_mul(16)?.checked_add(u64::from(digit?))?;
                Some(State::Size(Self { bytes, part: SizePart::Digits }))
            }
            (SizePart::Digits | SizePart::Space, b' ' | b'\t') => at(SizePart::Space),
            (SizePart::Digits | SizePart::Space | SizePart::Extension, b'\r') => at(SizePart::Lf),
            (SizePart::Extension, _) if is_control(byte) => None,
            (SizePart::Digits | SizePart::Space, b';') | (SizePart::Extension, _) => {
                at(SizePart::Extension)
            }
            (SizePart::Lf, b'\n') if self.bytes == 0 => Some(State::TrailerStart),
            (SizePart::Lf, b'\n') => Some(State::Chunk(self.bytes)),
            _ => None,
        }
    }
}
