//! HTTP/1.1: exchanges without I/O, which accept any split of their bytes, and over a socket.
//!
//! Rules and section numbers are from RFC 9112.

mod exchange;
mod response_parser;

pub use exchange::ExchangeState;
pub(crate) use exchange::Http1Connection;
use httparse::Header;
pub use response_parser::{Progress, ResponseParser, ResponsePart};

use crate::buffers::EncodedRequest;
use crate::message::is_named;

/// Most bytes of chunk extensions and trailers, which are skipped. More count as an error.
const MAX_OVERHEAD: usize = 16 * 1024;

/// The position in the coding.
///
/// RFC 9112, section 7.1, decoded incrementally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
    /// In the hexadecimal size, after `digits` digits.
    Size { digits: u8 },
    /// After the size: spaces or an extension, until CR.
    Extension,
    /// LF of the size line.
    SizeLf,
    /// In the data.
    Data,
    /// CR after the data.
    DataCr,
    /// LF after the data.
    DataLf,
    /// At the start of a trailer line.
    TrailerStart,
    /// In a trailer line, until LF.
    Trailer,
    /// LF of the final empty line.
    EndLf,
    /// The body is complete.
    Done,
}

/// An incremental decoder of chunked bodies.
#[derive(Clone, Debug)]
struct ChunkedDecoder {
    state: ChunkState,
    remaining: u64,
    overhead: usize,
}

/// The chunked coding is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MalformedChunk;

impl ChunkedDecoder {
    const fn new() -> Self {
        Self { state: ChunkState::Size { digits: 0 }, remaining: 0, overhead: 0 }
    }

    fn is_done(&self) -> bool {
        self.state == ChunkState::Done
    }

    /// Decodes `input`. Returns how many of its bytes belong to this body.
    fn feed(
        &mut self,
        input: &[u8],
        data: &mut impl FnMut(&[u8]),
    ) -> Result<usize, MalformedChunk> {
        let mut at = 0;
        while at < input.len() && self.state != ChunkState::Done {
            if self.state == ChunkState::Data {
                at += self.take_data(&input[at..], data);
            } else {
                self.take_byte(input[at])?;
                at += 1;
            }
        }
        Ok(at)
    }

    fn take_data(&mut self, input: &[u8], data: &mut impl FnMut(&[u8])) -> usize {
        let take = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(input.len());
        data(&input[..take]);
        self.remaining -= take as u64;
        if self.remaining == 0 {
            self.state = ChunkState::DataCr;
        }
        take
    }

    fn take_byte(&mut self, byte: u8) -> Result<(), MalformedChunk> {
        self.state = match (self.state, byte) {
            (ChunkState::Size { digits }, _) => self.parse_size(digits, byte)?,
            (ChunkState::Extension, b'\r') => ChunkState::SizeLf,
            (ChunkState::Extension, b'\n') => return Err(MalformedChunk),
            (ChunkState::Extension, _) => self.count_overhead(ChunkState::Extension)?,
            (ChunkState::SizeLf, b'\n') if self.remaining == 0 => ChunkState::TrailerStart,
            (ChunkState::SizeLf, b'\n') => ChunkState::Data,
            (ChunkState::DataCr, b'\r') => ChunkState::DataLf,
            (ChunkState::DataLf, b'\n') => ChunkState::Size { digits: 0 },
            (ChunkState::TrailerStart, b'\r') => ChunkState::EndLf,
            (ChunkState::TrailerStart | ChunkState::Trailer, b'\n') => {
                if self.state == ChunkState::TrailerStart {
                    return Err(MalformedChunk);
                }
                self.count_overhead(ChunkState::TrailerStart)?
            }
            (ChunkState::TrailerStart | ChunkState::Trailer, _) => {
                self.count_overhead(ChunkState::Trailer)?
            }
            (ChunkState::EndLf, b'\n') => ChunkState::Done,
            _ => return Err(MalformedChunk),
        };
        Ok(())
    }

    fn parse_size(&mut self, digits: u8, byte: u8) -> Result<ChunkState, MalformedChunk> {
        if let Some(digit) = char::from(byte).to_digit(16) {
            // 15 digits are an exabyte. More would overflow.
            if digits >= 15 {
                return Err(MalformedChunk);
            }
            self.remaining = (self.remaining << 4) | u64::from(digit);
            return Ok(ChunkState::Size { digits: digits + 1 });
        }
        match byte {
            _ if digits == 0 => Err(MalformedChunk),
            b'\r' => Ok(ChunkState::SizeLf),
            b';' | b' ' | b'\t' => self.count_overhead(ChunkState::Extension),
            _ => Err(MalformedChunk),
        }
    }

    fn count_overhead(&mut self, next: ChunkState) -> Result<ChunkState, MalformedChunk> {
        self.overhead += 1;
        if self.overhead > MAX_OVERHEAD { Err(MalformedChunk) } else { Ok(next) }
    }
}

/// The delimitation of a response body.
///
/// RFC 9112, section 6.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyFraming {
    /// No body, whatever the headers say.
    Empty,
    /// Exactly this many bytes.
    Length(u64),
    /// Chunked coding.
    Chunked,
    /// Everything until the connection is closed.
    UntilClose,
}

/// The framing of a response and whether its connection stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MessageFraming {
    body: BodyFraming,
    keep_alive: bool,
}

/// The `content-length` headers are invalid or contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ConflictingLengths;

impl MessageFraming {
    /// Evaluates the head of an HTTP/1.`minor` response. `to_head`: the request was a `HEAD`.
    fn new(
        status: u16,
        minor: u8,
        headers: &[Header<'_>],
        to_head: bool,
    ) -> Result<Self, ConflictingLengths> {
        let mut keep_alive = minor >= 1;
        let mut length = None;
        let mut coding: Option<bool> = None;
        for header in headers {
            let (name, value) = (header.name, header.value);
            match name.len() {
                14 if is_named(name, b"content-length") => {
                    length = Some(merge_length(length, value)?);
                }
                17 if is_named(name, b"transfer-encoding") => coding = Some(last_is_chunked(value)),
                10 if is_named(name, b"connection") => {
                    keep_alive = connection_option(value).unwrap_or(keep_alive);
                }
                _ => {}
            }
        }
        let body = match (coding, length) {
            _ if to_head || matches!(status, 100..=199 | 204 | 304) => BodyFraming::Empty,
            (Some(true), _) => BodyFraming::Chunked,
            (Some(false), _) | (None, None) => BodyFraming::UntilClose,
            (None, Some(length)) => BodyFraming::Length(length),
        };
        // Having both headers can smuggle a response, so the connection is not reused.
        let suspicious = coding.is_some() && length.is_some();
        let switched = status == 101;
        let keep_alive = keep_alive && body != BodyFraming::UntilClose && !suspicious && !switched;
        Ok(Self { body, keep_alive })
    }
}

/// A repeated length is valid if all values are equal.
fn merge_length(earlier: Option<u64>, value: &[u8]) -> Result<u64, ConflictingLengths> {
    if let (None, Some(length)) = (earlier, digits(value)) {
        return Ok(length);
    }
    value
        .split(|&b| b == b',')
        .try_fold(earlier, |earlier, part| {
            let length = digits(part.trim_ascii()).ok_or(ConflictingLengths)?;
            if earlier.is_none_or(|e| e == length) {
                Ok(Some(length))
            } else {
                Err(ConflictingLengths)
            }
        })?
        .ok_or(ConflictingLengths)
}

/// A number that consists of digits only.
fn digits(text: &[u8]) -> Option<u64> {
    let (first, rest) = text.split_first()?;
    rest.iter()
        .try_fold(digit(*first)?, |number, byte| number.checked_mul(10)?.checked_add(digit(*byte)?))
}

fn digit(byte: u8) -> Option<u64> {
    byte.is_ascii_digit().then(|| u64::from(byte - b'0'))
}

fn last_is_chunked(value: &[u8]) -> bool {
    value
        .rsplit(|&b| b == b',')
        .next()
        .is_some_and(|last| last.trim_ascii().eq_ignore_ascii_case(b"chunked"))
}

fn connection_option(value: &[u8]) -> Option<bool> {
    if value == b"keep-alive" {
        return Some(true);
    }
    value.split(|&b| b == b',').find_map(|option| match option.trim_ascii() {
        close if close.eq_ignore_ascii_case(b"close") => Some(false),
        keep if keep.eq_ignore_ascii_case(b"keep-alive") => Some(true),
        _ => None,
    })
}

/// A request that is being written.
#[derive(Debug, Default)]
pub struct OutgoingRequest {
    request: EncodedRequest,
    /// Number of bytes written.
    sent: usize,
    /// Whether TLS has encrypted bytes that the kernel has not accepted yet.
    pub(crate) encrypted: bool,
}

impl OutgoingRequest {
    /// Creates a request without any bytes written.
    pub const fn new(request: EncodedRequest) -> Self {
        Self { request, sent: 0, encrypted: false }
    }

    /// Whether the kernel has accepted everything.
    pub const fn is_done(&self) -> bool {
        self.sent >= self.request.len() && !self.encrypted
    }

    /// The unwritten rest of head and body.
    pub fn rest(&self) -> [&[u8]; 2] {
        let EncodedRequest { head, body } = &self.request;
        let head_sent = self.sent.min(head.len());
        [&head[head_sent..], &body[self.sent - head_sent..]]
    }

    /// Records that this many bytes of the rest were written.
    pub const fn wrote(&mut self, bytes: usize) {
        self.sent += bytes;
    }

    /// Sets whether TLS has encrypted bytes that the kernel has not accepted yet.
    pub(crate) const fn set_encrypted(&mut self, encrypted: bool) {
        self.encrypted = encrypted;
    }

    /// Whether it is partly written.
    pub(crate) const fn is_begun(&self) -> bool {
        !self.is_done() && (self.sent > 0 || self.encrypted)
    }

    /// Takes the buffers.
    pub(crate) fn take(&mut self) -> EncodedRequest {
        std::mem::take(self).request
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(parts: &[&[u8]]) -> Result<(Vec<u8>, usize, bool), MalformedChunk> {
        let (mut body, mut used) = (Vec::new(), 0);
        let mut decoder = ChunkedDecoder::new();
        for part in parts {
            used += decoder.feed(part, &mut |data| body.extend_from_slice(data))?;
        }
        Ok((body, used, decoder.is_done()))
    }

    #[test]
    fn bodies_are_decoded_exactly_to_their_end() {
        for (sentence, input, body, used, done) in [
            ("two chunks", &b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nrest"[..], &b"abcde"[..], 20, true),
            ("an extension", b"3;x=\"y\"\r\nabc\r\n0\r\n\r\n", b"abc", 19, true),
            ("a trailer", b"1\r\na\r\n0\r\nx: y\r\n\r\n", b"a", 17, true),
            (
                "upper case and leading zeros",
                b"00A\r\n0123456789\r\n0\r\n\r\n",
                b"0123456789",
                22,
                true,
            ),
            ("unfinished data", b"5\r\nab", b"ab", 5, false),
            ("no end yet", b"1\r\na\r\n0\r\n", b"a", 9, false),
        ] {
            assert_eq!(decode(&[input]), Ok((body.to_vec(), used, done)), "{sentence}");
        }
    }

    #[test]
    fn malformed_coding_is_rejected() {
        for input in [
            &b"\r\n"[..],
            b"x\r\n",
            b"3\nabc",
            b"3\r\nabcd",
            b"3\r\nabc\n",
            b"fffffffffffffffff\r\n",
            b"-1\r\n",
            b"0\r\n\n",
            b"3 \n",
        ] {
            assert_eq!(decode(&[input]), Err(MalformedChunk), "{input:?}");
        }
        let endless = [b"1;".as_slice(), &vec![b'x'; MAX_OVERHEAD + 1]].concat();
        assert_eq!(decode(&[&endless]), Err(MalformedChunk));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_body(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..8),
            cuts in prop::collection::vec(0usize..400, 0..8),
        ) {
            let mut wire: Vec<u8> = Vec::new();
            for chunk in &chunks {
                wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                wire.extend_from_slice(chunk);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(b"0\r\n\r\n");
            let mut cuts: Vec<_> = cuts.into_iter().map(|c| c % wire.len()).collect();
            cuts.extend([0, wire.len()]);
            cuts.sort_unstable();
            let parts: Vec<&[u8]> = cuts.windows(2).map(|w| &wire[w[0]..w[1]]).collect();
            prop_assert_eq!(decode(&parts), Ok((chunks.concat(), wire.len(), true)));
        }
    }

    fn framing(
        status: u16,
        to_head: bool,
        headers: &[(&str, &str)],
    ) -> Result<(BodyFraming, bool), ConflictingLengths> {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| Header { name, value: value.as_bytes() }).collect();
        MessageFraming::new(status, 1, &headers, to_head).map(|c| (c.body, c.keep_alive))
    }

    #[test]
    fn the_end_of_a_body_is_determined_as_in_the_rfc() {
        use BodyFraming::{Chunked, Empty, Length, UntilClose};
        let length = ("Content-Length", "5");
        let chunked = ("transfer-encoding", "gzip, Chunked");
        for (sentence, status, to_head, headers, expected) in [
            ("a length", 200, false, vec![length], (Length(5), true)),
            ("chunks", 200, false, vec![chunked], (Chunked, true)),
            (
                "chunks win over a length, and the connection ends",
                200,
                false,
                vec![length, chunked],
                (Chunked, false),
            ),
            ("a response to HEAD has no body", 200, true, vec![length], (Empty, true)),
            ("204 has no body", 204, false, vec![length], (Empty, true)),
            ("304 has no body", 304, false, vec![length], (Empty, true)),
            ("neither means until close", 200, false, vec![], (UntilClose, false)),
            (
                "another last coding means until close",
                200,
                false,
                vec![("transfer-encoding", "gzip")],
                (UntilClose, false),
            ),
            (
                "close is honoured",
                200,
                false,
                vec![length, ("connection", "Close")],
                (Length(5), false),
            ),
            (
                "the same length twice is one",
                200,
                false,
                vec![length, ("content-length", "5, 5")],
                (Length(5), true),
            ),
        ] {
            assert_eq!(framing(status, to_head, &headers), Ok(expected), "{sentence}");
        }
    }

    #[test]
    fn conflicting_and_invalid_lengths_are_rejected() {
        for value in ["5, 6", "", "-1", "+5", "5x", "0x5", "99999999999999999999"] {
            assert_eq!(
                framing(200, false, &[("content-length", value)]),
                Err(ConflictingLengths),
                "{value}"
            );
        }
        assert_eq!(
            framing(200, false, &[("content-length", "5"), ("content-length", "6")]),
            Err(ConflictingLengths)
        );
    }

    #[test]
    fn http_1_0_closes_unless_keep_alive_is_set() {
        let length = Header { name: "content-length", value: b"1" };
        let keep = Header { name: "connection", value: b"keep-alive" };
        let keeps = |headers: &[Header<'_>]| {
            MessageFraming::new(200, 0, headers, false).map(|c| c.keep_alive)
        };
        assert_eq!(keeps(&[length]), Ok(false));
        assert_eq!(keeps(&[length, keep]), Ok(true));
    }
}
