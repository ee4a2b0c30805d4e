//! An incremental parser of responses.

use std::mem::MaybeUninit;

use httparse::{ParserConfig, Status};
use plimsoll_measure::ErrorClass;

use super::{BodyFraming, ChunkedDecoder, MessageFraming};
use crate::failure::Failure;
use crate::message::ResponseHead;

/// Largest accepted head. The defaults of nginx and Node are 8 and 16 KiB.
const MAX_HEAD: usize = 64 * 1024;
/// Maximum number of header lines.
const MAX_HEADERS: usize = 100;

/// A part of a response.
#[derive(Debug)]
pub enum ResponsePart<'a> {
    /// The final head (interim 1xx responses are skipped).
    Head(ResponseHead<'a>),
    /// Bytes of the body, without the transfer coding.
    Body(&'a [u8]),
}

/// The progress of the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    Partial,
    /// The response is complete.
    Complete {
        /// Whether the connection can be used for another request.
        reusable: bool,
    },
}

#[derive(Debug)]
enum ParserState {
    Head,
    Length(u64),
    Chunked(ChunkedDecoder),
    UntilClose,
    Complete,
}

/// Parses the responses of one connection, one after another.
#[derive(Debug)]
pub struct ResponseParser {
    state: ParserState,
    to_head: bool,
    keep_alive: bool,
    /// The start of a head that arrives in several reads.
    partial_head: Vec<u8>,
    any_byte: bool,
}

impl Default for ResponseParser {
    fn default() -> Self {
        Self::new()
    }
}

impl ResponseParser {
    /// Creates a parser at the start of a response.
    pub const fn new() -> Self {
        Self {
            state: ParserState::Head,
            to_head: false,
            keep_alive: true,
            partial_head: Vec::new(),
            any_byte: false,
        }
    }

    /// Prepares for the response to the next request. `to_head`: the request is a `HEAD`.
    pub fn start(&mut self, to_head: bool) {
        self.state = ParserState::Head;
        self.to_head = to_head;
        self.any_byte = false;
        self.partial_head = Vec::new();
    }

    /// Parses the next bytes of the connection and passes the parts they contain to `on`.
    ///
    /// # Errors
    /// A [`Failure`] of the target's side; the connection must not be used again.
    pub fn feed(
        &mut self,
        mut input: &[u8],
        on: &mut impl FnMut(ResponsePart<'_>),
    ) -> Result<Progress, Failure> {
        self.any_byte |= !input.is_empty();
        while let ParserState::Head = self.state {
            match self.feed_head(input, on)? {
                Some(rest) => input = rest,
                None => return Ok(Progress::Partial),
            }
        }
        self.feed_body(input, on)
    }

    /// Handles the end of the connection.
    ///
    /// # Errors
    /// A [`Failure`] unless the close is the end of a complete response.
    pub fn close(&mut self) -> Result<Progress, Failure> {
        match self.state {
            ParserState::UntilClose | ParserState::Complete => {
                self.state = ParserState::Complete;
                Ok(Progress::Complete { reusable: false })
            }
            ParserState::Head if self.any_byte => Err(Failure::new(
                ErrorClass::ClosedEarly,
                "connection closed inside the response head",
            )),
            ParserState::Head => {
                Err(Failure::new(ErrorClass::ClosedEarly, "connection closed before any response"))
            }
            ParserState::Length(missing) => Err(Failure::new(
                ErrorClass::BodyTruncated,
                format!("{missing} bytes of the body are missing"),
            )),
            ParserState::Chunked(_) => {
                Err(Failure::new(ErrorClass::BodyTruncated, "the last chunk is missing"))
            }
        }
    }

    /// Parses a head. `Some` is the input after it; `None` means that the head is not complete.
    fn feed_head<'i>(
        &mut self,
        input: &'i [u8],
        on: &mut impl FnMut(ResponsePart<'_>),
    ) -> Result<Option<&'i [u8]>, Failure> {
        if self.partial_head.is_empty() {
            let used = self.parse_head(input, on)?;
            if used.is_none() {
                self.partial_head.extend_from_slice(input);
            }
            return Ok(used.map(|used| &input[used..]));
        }
        let mut whole = std::mem::take(&mut self.partial_head);
        let before = whole.len();
        whole.extend_from_slice(input);
        let used = self.parse_head(&whole, on)?;
        if used.is_none() {
            self.partial_head = whole;
        }
        // The buffered bytes had no complete head, so the head ends in the new input.
        Ok(used.map(|used| &input[used.saturating_sub(before)..]))
    }

    fn parse_head(
        &mut self,
        bytes: &[u8],
        on: &mut impl FnMut(ResponsePart<'_>),
    ) -> Result<Option<usize>, Failure> {
        let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut []);
        let parsed = ParserConfig::default().parse_response_with_uninit_headers(
            &mut response,
            bytes,
            &mut headers,
        );
        let used = match parsed {
            Ok(Status::Complete(used)) if used <= MAX_HEAD => used,
            Ok(Status::Partial) if bytes.len() <= MAX_HEAD => return Ok(None),
            Ok(_) => {
                return Err(Failure::new(
                    ErrorClass::HeadTooLarge,
                    format!("more than {MAX_HEAD} bytes"),
                ));
            }
            Err(httparse::Error::TooManyHeaders) => {
                return Err(Failure::new(
                    ErrorClass::HeadTooLarge,
                    format!("more than {MAX_HEADERS} headers"),
                ));
            }
            Err(error) => return Err(Failure::new(ErrorClass::MalformedHead, error.to_string())),
        };
        let (status, minor) = (response.code.unwrap_or(0), response.version.unwrap_or(0));
        let head = ResponseHead { status, headers: response.headers };
        let framing =
            MessageFraming::new(status, minor, head.headers, self.to_head).map_err(|_| {
                Failure::new(
                    ErrorClass::MalformedHead,
                    "the content-length headers are not a single number",
                )
            })?;
        self.begin(head, framing, on);
        Ok(Some(used))
    }

    /// Begins the body of a final head; interim ones are skipped.
    fn begin(
        &mut self,
        head: ResponseHead<'_>,
        framing: MessageFraming,
        on: &mut impl FnMut(ResponsePart<'_>),
    ) {
        if !matches!(head.status, 100 | 102..=199) {
            self.begin_body(framing);
            on(ResponsePart::Head(head));
        }
    }

    const fn begin_body(&mut self, framing: MessageFraming) {
        self.keep_alive = framing.keep_alive;
        self.state = match framing.body {
            BodyFraming::Empty | BodyFraming::Length(0) => ParserState::Complete,
            BodyFraming::Length(length) => ParserState::Length(length),
            BodyFraming::Chunked => ParserState::Chunked(ChunkedDecoder::new()),
            BodyFraming::UntilClose => ParserState::UntilClose,
        };
    }

    fn feed_body(
        &mut self,
        input: &[u8],
        on: &mut impl FnMut(ResponsePart<'_>),
    ) -> Result<Progress, Failure> {
        let used = match &mut self.state {
            ParserState::Length(remaining) => {
                let take = usize::try_from(*remaining).unwrap_or(usize::MAX).min(input.len());
                *remaining -= take as u64;
                emit_body(&input[..take], on);
                if *remaining == 0 {
                    self.state = ParserState::Complete;
                }
                take
            }
            ParserState::Chunked(chunked) => {
                let used = chunked.feed(input, &mut |data| emit_body(data, on)).map_err(|_| {
                    Failure::new(ErrorClass::MalformedChunk, "the chunked coding is broken")
                })?;
                if chunked.is_done() {
                    self.state = ParserState::Complete;
                }
                used
            }
            ParserState::UntilClose => {
                emit_body(input, on);
                input.len()
            }
            ParserState::Head | ParserState::Complete => 0,
        };
        Ok(match self.state {
            // Bytes after the end belong to no request.
            ParserState::Complete => {
                Progress::Complete { reusable: self.keep_alive && used == input.len() }
            }
            _ => Progress::Partial,
        })
    }
}

fn emit_body(data: &[u8], on: &mut impl FnMut(ResponsePart<'_>)) {
    if !data.is_empty() {
        on(ResponsePart::Body(data));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, PartialEq)]
    struct Parsed {
        status: u16,
        body: Vec<u8>,
        end: Result<Progress, ErrorClass>,
    }

    fn parse(parts: &[&[u8]], close: bool) -> Parsed {
        let mut parser = ResponseParser::new();
        parser.start(false);
        let (mut status, mut body) = (0, Vec::new());
        let mut end = Ok(Progress::Partial);
        for part in parts {
            end = parser.feed(part, &mut |part| match part {
                ResponsePart::Head(head) => status = head.status,
                ResponsePart::Body(bytes) => body.extend_from_slice(bytes),
            });
            if end != Ok(Progress::Partial) {
                break;
            }
        }
        if close && end == Ok(Progress::Partial) {
            end = parser.close();
        }
        Parsed { status, body, end: end.map_err(|failure| failure.class) }
    }

    const REUSABLE: Result<Progress, ErrorClass> = Ok(Progress::Complete { reusable: true });
    const LAST: Result<Progress, ErrorClass> = Ok(Progress::Complete { reusable: false });

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn responses_are_parsed_to_their_end() {
        for (sentence, wire, status, body, end) in [
            ("a length", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", 200, "abc", REUSABLE),
            (
                "chunks",
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
                200,
                "ab",
                REUSABLE,
            ),
            ("until close", "HTTP/1.1 200 OK\r\n\r\nabc", 200, "abc", LAST),
            ("no reason phrase", "HTTP/1.1 404\r\ncontent-length: 0\r\n\r\n", 404, "", REUSABLE),
            (
                "interim responses are skipped",
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
                204,
                "",
                REUSABLE,
            ),
            ("surplus bytes", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nabc", 200, "a", LAST),
            (
                "close is honoured",
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\na",
                200,
                "a",
                LAST,
            ),
            (
                "a truncated body",
                "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc",
                200,
                "abc",
                Err(ErrorClass::BodyTruncated),
            ),
            (
                "a missing last chunk",
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n",
                200,
                "ab",
                Err(ErrorClass::BodyTruncated),
            ),
            (
                "a broken chunk",
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
                200,
                "",
                Err(ErrorClass::MalformedChunk),
            ),
            ("not HTTP", "SSH-2.0-OpenSSH_9.2\r\n", 0, "", Err(ErrorClass::MalformedHead)),
            ("half a head", "HTTP/1.1 200 OK\r\ncontent-le", 0, "", Err(ErrorClass::ClosedEarly)),
            ("nothing", "", 0, "", Err(ErrorClass::ClosedEarly)),
            (
                "two lengths",
                "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
                0,
                "",
                Err(ErrorClass::MalformedHead),
            ),
        ] {
            let whole = parse(&[wire.as_bytes()], true);
            let expected = Parsed { status, body: body.as_bytes().to_vec(), end };
            assert_eq!(whole, expected, "{sentence}");
            let bytes: Vec<&[u8]> = wire.as_bytes().chunks(1).collect();
            let mut by_byte = parse(&bytes, true);
            if sentence == "surplus bytes" {
                // Byte by byte, the surplus arrives after the end and is found on reuse.
                by_byte.end = LAST;
            }
            assert_eq!(by_byte, expected, "{sentence}, byte by byte");
        }
    }

    #[test]
    fn an_oversized_head_is_rejected() {
        let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(MAX_HEAD));
        assert_eq!(parse(&[long.as_bytes()], false).end, Err(ErrorClass::HeadTooLarge));
        let parts: Vec<&[u8]> = long.as_bytes().chunks(1000).collect();
        assert_eq!(parse(&parts, false).end, Err(ErrorClass::HeadTooLarge));
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(MAX_HEADERS + 1));
        assert_eq!(parse(&[many.as_bytes()], false).end, Err(ErrorClass::HeadTooLarge));
    }

    proptest! {
        #[test]
        fn any_split_of_any_bytes_gives_the_same_result(
            wire in prop::collection::vec(prop::sample::select(b"HTP/1. 20\r\n:contel-lgh3ax;".to_vec()), 0..120),
            cut in 0usize..120,
        ) {
            let wire = [b"HTTP/1.1 200 OK\r\n".as_slice(), &wire].concat();
            let cut = cut.min(wire.len());
            let (whole, split) = (parse(&[&wire], true), parse(&[&wire[..cut], &wire[cut..]], true));
            prop_assert_eq!(whole.status, split.status);
            prop_assert_eq!(whole.body, split.body);
            prop_assert_eq!(whole.end.is_ok(), split.end.is_ok());
        }
    }
}
