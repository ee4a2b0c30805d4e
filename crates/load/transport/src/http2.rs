//! HTTP/2 (RFC 9113): many streams on one connection.
//!
//! - [`Session`]: the connection as a state machine without I/O, so that it can be tested and
//!   fuzzed alone
//! - [`hpack`]: header compression (RFC 7541), also without I/O
//! - `Driver`: the task that owns a connection's socket. One read serves all its streams, and
//!   frames that are queued in one turn of the worker's event loop leave in one write
//! - `StreamExchange`: the exchange of one request. It queues frames, and reads the events that the
//!   driver put into the stream's inbox
//!
//! ADR 0038 explains why we do not use the `h2` crate.

mod connection_state;
mod exchange;
mod frame;
mod frame_reader;
pub mod hpack;
mod session;
mod shared_connection;
mod stream_table;

use std::fmt;
use std::sync::Arc;

pub(crate) use exchange::StreamExchange;
use httparse::{EMPTY_HEADER, Header};
use plimsoll_measure::ErrorClass;
pub use session::{Event, NewRequest, Session};
pub(crate) use shared_connection::{SharedConnection, StreamSlot};
pub use stream_table::StreamKey;

use crate::failure::Failure;
use crate::http2::hpack::{Encoder, HeaderField, Indexing, literal};
use crate::message::{RequestHead, ResponseHead};

/// Error code of a stream or connection. Undefined codes are kept unchanged.
///
/// RFC 9113, sections 5.4 and 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// Not an error.
    pub const NO_ERROR: Self = Self(0x0);
    /// A rule without a specific code was violated.
    pub const PROTOCOL_ERROR: Self = Self(0x1);
    /// A flow-control window was exceeded or overflows.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x3);
    /// A frame arrived for a closed stream.
    pub const STREAM_CLOSED: Self = Self(0x5);
    /// A frame has an invalid length.
    pub const FRAME_SIZE_ERROR: Self = Self(0x6);
    /// The stream was refused without any processing.
    pub const REFUSED_STREAM: Self = Self(0x7);
    /// The stream was cancelled.
    pub const CANCEL: Self = Self(0x8);
    /// A header block cannot be decompressed.
    pub const COMPRESSION_ERROR: Self = Self(0x9);
    /// The peer causes excessive load.
    pub const ENHANCE_YOUR_CALM: Self = Self(0xb);
}

/// Names of the codes, from 0.
const NAMES: &str = include_str!("http2/error_codes.txt");

/// Formats the name, or the number if it has none.
impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match usize::try_from(self.0).ok().and_then(|index| NAMES.lines().nth(index)) {
            Some(name) => f.write_str(name),
            None => write!(f, "error {:#x}", self.0),
        }
    }
}

/// A rule that the target violated, which ends the connection (RFC 9113, section 5.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionError {
    /// The code that is sent to the target.
    pub code: ErrorCode,
    /// The violated rule.
    pub detail: &'static str,
}

impl ConnectionError {
    const fn new(code: ErrorCode, detail: &'static str) -> Self {
        Self { code, detail }
    }

    const fn protocol(detail: &'static str) -> Self {
        Self::new(ErrorCode::PROTOCOL_ERROR, detail)
    }
}

/// Why a stream ended early (RFC 9113, section 5.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// The target reset it.
    Reset(ErrorCode),
    /// The target announced that it will not process it.
    GoAway(ErrorCode),
    /// The response is not valid HTTP.
    Malformed(&'static str),
    /// The head exceeds the limit.
    HeadTooLarge,
    /// The body is this many bytes shorter than announced.
    BodyTruncated(u64),
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Reset(code) => {
                let detail = format!("the target reset the stream: {code}");
                // A refused stream was not processed (RFC 9113, section 8.7).
                let is_unprocessed = code == ErrorCode::REFUSED_STREAM;
                Self { is_unprocessed, ..Self::new(ErrorClass::Reset, detail) }
            }
            StreamError::GoAway(code) => Self::unprocessed(
                ErrorClass::ClosedEarly,
                format!("the target closes the connection without processing the request: {code}"),
            ),
            StreamError::Malformed(detail) => Self::new(ErrorClass::MalformedHead, detail),
            StreamError::HeadTooLarge => {
                Self::new(ErrorClass::HeadTooLarge, "more than 64 KiB or 100 headers")
            }
            StreamError::BodyTruncated(missing) => Self::new(
                ErrorClass::BodyTruncated,
                format!("{missing} bytes of the body are missing"),
            ),
        }
    }
}

/// Our receive window for one stream: large enough that round trips do not throttle a response.
const STREAM_WINDOW: u32 = 4 << 20;
/// Our receive window for all streams of a connection.
const CONNECTION_WINDOW: u32 = 64 << 20;

/// The largest possible window.
const MAX_WINDOW: i64 = (1 << 31) - 1;
/// The initial window of a connection, and of a stream until the settings change it.
const INITIAL_WINDOW: i64 = 65_535;
/// Below this size of our window the target may be waiting: a typical frame no longer fits.
const LOW: i64 = 16_384;

/// A window became larger than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Overflow;

/// The target sent more than our window allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Overrun;

/// Bytes that we may send. Negative after the target has lowered its initial window (section
/// 6.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SendWindow(i64);

impl SendWindow {
    const fn new(size: i64) -> Self {
        Self(size)
    }

    /// Bytes that may be sent now.
    fn available(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// Records sent bytes, at most those available.
    fn sent(&mut self, bytes: usize) {
        self.0 -= i64::try_from(bytes).unwrap_or(MAX_WINDOW);
    }

    /// Changes the window: the target opened it, or changed its initial size.
    const fn change(&mut self, by: i64) -> Result<(), Overflow> {
        self.0 += by;
        if self.0 > MAX_WINDOW { Err(Overflow) } else { Ok(()) }
    }
}

/// Bytes that the target may send. Updates are sent lazily: when half of the window is free again.
///
/// RFC 9113, sections 5.2 and 6.9.
#[derive(Clone, Copy, Debug)]
struct ReceiveWindow {
    size: u32,
    available: i64,
    /// Consumed bytes that were not announced to the target yet.
    unannounced: u32,
}

impl ReceiveWindow {
    fn new(size: u32) -> Self {
        Self { size, available: i64::from(size), unannounced: 0 }
    }

    /// Records received bytes.
    fn receive(&mut self, bytes: usize) -> Result<(), Overrun> {
        self.available -= i64::try_from(bytes).unwrap_or(MAX_WINDOW);
        if self.available < 0 { Err(Overrun) } else { Ok(()) }
    }

    /// Records consumed bytes. Returns the window update to send, if one is due.
    fn consume(&mut self, bytes: usize) -> Option<u32> {
        self.unannounced += u32::try_from(bytes).unwrap_or(u32::MAX - self.unannounced);
        if self.unannounced < self.size / 2 {
            return None;
        }
        self.available += i64::from(self.unannounced);
        Some(std::mem::take(&mut self.unannounced))
    }

    /// Whether the target may be waiting for a window update.
    const fn is_low(&self) -> bool {
        self.available < LOW
    }
}

/// Kinds of requests whose encoded fields a connection keeps. A connection that serves more kinds
/// encodes some of them again.
const KEPT_KINDS: usize = 32;

/// The fields of a request head, in HTTP/2's terms.
///
/// The fields shared by all requests of one kind are encoded once per connection.
#[derive(Debug, PartialEq, Eq)]
struct HeaderTemplate(Vec<TemplateField>);

#[derive(Debug, PartialEq, Eq)]
struct TemplateField {
    name: Box<[u8]>,
    value: Box<[u8]>,
    indexing: Indexing,
}

impl HeaderTemplate {
    /// Translates a head: the request line becomes pseudo-headers, and `host` the authority. Fields
    /// of an HTTP/1.1 connection are omitted (RFC 9113, sections 8.2.2 and 8.3.1).
    fn new(head: &RequestHead) -> Self {
        let mut lines = head.shared().split(|&byte| byte == b'\n').map(without_cr);
        let mut words = lines.next().unwrap_or_default().split(|&byte| byte == b' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut authority = &b""[..];
        let mut others = Vec::new();
        for line in lines.filter(|line| !line.is_empty()) {
            let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
            let (name, value) = line.split_at(colon);
            let (name, value) = (name.to_ascii_lowercase(), value.get(1..).unwrap_or_default());
            match &name[..] {
                b"host" => authority = value.trim_ascii(),
                b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
                | b"upgrade" => {}
                _ => others.push((name, value.trim_ascii())),
            }
        }
        let mut template = Self(Vec::with_capacity(others.len() + 4));
        template.push(b":method", method);
        template.push(b":scheme", head.scheme().as_bytes());
        template.push(b":authority", authority);
        template.push(b":path", path);
        for (name, value) in others {
            template.push(&name, value);
        }
        template
    }

    fn push(&mut self, name: &[u8], value: &[u8]) {
        let indexing = match name {
            b":path" => Indexing::None,
            b"authorization" | b"cookie" | b"proxy-authorization" | b"x-api-key" | b"api-key" => {
                Indexing::Never
            }
            _ => Indexing::NameAndValue,
        };
        self.0.push(TemplateField { name: name.into(), value: value.into(), indexing });
    }
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Encodes the header blocks of a connection's requests.
///
/// The encoded form of shared fields stays valid as long as the HPACK table does not change. In the
/// steady state it does not, so the shared fields of a request cost one copy.
#[derive(Debug, Default)]
struct HeaderBlockEncoder {
    encoder: Encoder,
    kinds: Vec<EncodedKind>,
    /// Number of kinds ever kept: the next one replaces the oldest.
    kept: usize,
}

/// The encoded shared fields of one kind of request.
#[derive(Debug)]
struct EncodedKind {
    /// The bytes of the head identify the kind. They are kept, so that their address is not reused.
    head: Arc<[u8]>,
    /// [`Encoder::changes`] when the fields were encoded.
    changes: u64,
    bytes: Vec<u8>,
    /// Index of the name `x-request-id`.
    request_id_index: Option<usize>,
}

const REQUEST_ID: &[u8] = b"x-request-id";
/// Index of `content-length` in the static table.
const CONTENT_LENGTH_INDEX: usize = 28;

impl HeaderBlockEncoder {
    /// Sets the largest HPACK table that the target keeps.
    fn set_max_table_size(&mut self, size: usize) {
        self.encoder.set_max_table_size(size);
    }

    /// Appends the header block of one request.
    fn encode(
        &mut self,
        head: &RequestHead,
        request_id: Option<&[u8]>,
        content_length: Option<usize>,
        out: &mut Vec<u8>,
    ) {
        let changes = self.encoder.changes();
        let known = self
            .kinds
            .iter()
            .find(|kind| Arc::ptr_eq(&kind.head, head.shared()) && kind.changes == changes);
        let request_id_index = match known {
            Some(kind) => {
                out.extend_from_slice(&kind.bytes);
                kind.request_id_index
            }
            None => self.encode_shared(head, out),
        };
        if let Some(id) = request_id {
            match request_id_index {
                Some(index) => literal(index, id, out),
                None => self.encoder.field(REQUEST_ID, id, Indexing::NameOnly, out),
            }
        }
        if let Some(length) = content_length {
            let mut digits = itoa::Buffer::new();
            literal(CONTENT_LENGTH_INDEX, digits.format(length).as_bytes(), out);
        }
    }

    /// Appends and keeps the encoded shared fields. Returns the index of `x-request-id`.
    fn encode_shared(&mut self, head: &RequestHead, out: &mut Vec<u8>) -> Option<usize> {
        let before = self.encoder.changes();
        self.encoder.begin_block(out);
        let start = out.len();
        for TemplateField { name, value, indexing } in &HeaderTemplate::new(head).0 {
            self.encoder.field(name, value, *indexing, out);
        }
        let request_id_index = self.encoder.index_of(REQUEST_ID);
        let changes = self.encoder.changes();
        // A block that inserted entries into the table must not be sent a second time.
        if changes == before {
            let bytes = out[start..].to_vec();
            let head = Arc::clone(head.shared());
            let kind = EncodedKind { head, changes, bytes, request_id_index };
            match self.kinds.get_mut(self.kept % KEPT_KINDS) {
                Some(oldest) => *oldest = kind,
                None => self.kinds.push(kind),
            }
            self.kept += 1;
        }
        request_id_index
    }
}

/// Largest head, names and values together: the same limit as in HTTP/1.1.
const MAX_HEAD: usize = 64 * 1024;
/// Maximum number of fields of a head.
const MAX_FIELDS: usize = 100;
/// Size of the smaller of two arrays for fields.
const FEW_FIELDS: usize = 16;

/// Why a head is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadError {
    /// It violates a rule of HTTP.
    Malformed(&'static str),
    /// It exceeds the limit of bytes or fields.
    TooLarge,
}

/// A head, in reusable buffers.
#[derive(Debug, Default)]
pub struct DecodedHead {
    status: u16,
    text: Vec<u8>,
    /// End positions of each field's name and value in `text`.
    ends: Vec<(usize, usize)>,
    length: Option<u64>,
    error: Option<HeadError>,
}

impl DecodedHead {
    /// The status; 0 until it is decoded.
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Why it is invalid, if it is.
    pub const fn error(&self) -> Option<HeadError> {
        self.error
    }

    /// Its `content-length`.
    const fn length(&self) -> Option<u64> {
        self.length
    }

    /// Size of its fields in HTTP/1.1, without compression.
    fn size(&self) -> usize {
        self.text.len() + 4 * self.ends.len()
    }

    fn clear(&mut self) {
        self.status = 0;
        self.text.clear();
        self.ends.clear();
        self.length = None;
        self.error = None;
    }

    fn reject(&mut self, detail: &'static str) {
        self.error = self.error.or(Some(HeadError::Malformed(detail)));
    }

    /// Adds a field. After an error, fields are ignored.
    fn push(&mut self, field: HeaderField<'_>) {
        if self.error.is_some() {
            return;
        }
        if !field.valid {
            return self.reject("a field has characters that HTTP does not allow");
        }
        if field.name.first() == Some(&b':') {
            return self.pseudo(field);
        }
        if self.ends.len() >= MAX_FIELDS
            || self.text.len() + field.name.len() + field.value.len() > MAX_HEAD
        {
            self.error = Some(HeadError::TooLarge);
            return;
        }
        match field.name {
            b"content-length" => self.content_length(field.value),
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => self.reject("a field of HTTP/1.1 connections"),
            _ => {}
        }
        self.text.extend_from_slice(field.name);
        let name = self.text.len();
        self.text.extend_from_slice(field.value);
        self.ends.push((name, self.text.len()));
    }

    /// Handles a pseudo-header. Responses have only `:status`, before all other fields (RFC 9113,
    /// section 8.3.2).
    fn pseudo(&mut self, field: HeaderField<'_>) {
        if field.name != b":status" || self.status != 0 || !self.ends.is_empty() {
            return self.reject("a pseudo-header other than one `:status` before all headers");
        }
        let ([a @ b'1'..=b'9', b, c], true) =
            (field.value, field.value.iter().all(u8::is_ascii_digit))
        else {
            return self.reject("`:status` is not a number of three digits");
        };
        let [a, b, c] = [a, b, c].map(|byte| u16::from(byte - b'0'));
        self.status = a * 100 + b * 10 + c;
    }

    /// A repeated length is valid if all values are equal.
    fn content_length(&mut self, value: &[u8]) {
        let number = std::str::from_utf8(value)
            .ok()
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|text| text.parse().ok());
        match number {
            Some(number) if self.length.is_none_or(|length| length == number) => {
                self.length = Some(number);
            }
            _ => self.reject("the content-length headers are not a single number"),
        }
    }

    /// Calls `on` with the head in the form shared by both HTTP versions.
    pub fn with_response_head(&self, on: impl FnOnce(&ResponseHead<'_>)) {
        if self.ends.len() <= FEW_FIELDS {
            self.fill(&mut [EMPTY_HEADER; FEW_FIELDS], on);
        } else {
            self.fill(&mut [EMPTY_HEADER; MAX_FIELDS], on);
        }
    }

    fn fill<'a>(&'a self, headers: &mut [Header<'a>], on: impl FnOnce(&ResponseHead<'_>)) {
        let mut start = 0;
        for (header, &(name, value)) in headers.iter_mut().zip(&self.ends) {
            // Names were checked when they were decoded: they are ASCII.
            header.name = std::str::from_utf8(&self.text[start..name]).unwrap_or_default();
            header.value = &self.text[name..value];
            start = value;
        }
        on(&ResponseHead { status: self.status, headers: &headers[..self.ends.len()] });
    }
}

/// Maximum number of pending acknowledgements while the target does not read. A target that keeps
/// sending and never reads would otherwise exhaust our memory.
const MAX_PENDING_ACKS: usize = 10_000;
/// Capacity kept by an empty buffer.
const KEPT_CAPACITY: usize = 256 * 1024;

/// Queued frames of all streams, in order.
#[derive(Debug, Default)]
struct WriteBuffer {
    bytes: Vec<u8>,
    written: usize,
    pending_acks: usize,
    /// Number of bytes queued and written before those in `bytes`.
    flushed: u64,
}

impl WriteBuffer {
    /// Bytes to be written.
    fn pending(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// Records written bytes.
    fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written < self.bytes.len() {
            return;
        }
        self.flushed += self.bytes.len() as u64;
        (self.written, self.pending_acks) = (0, 0);
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_CAPACITY);
    }

    /// All bytes queued since the connection's start.
    const fn total_queued(&self) -> u64 {
        self.flushed + self.bytes.len() as u64
    }

    /// All bytes written since the connection's start.
    const fn total_written(&self) -> u64 {
        self.flushed + self.written as u64
    }

    /// Queues an acknowledgement for the target.
    fn acknowledge(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), ConnectionError> {
        self.pending_acks += 1;
        if self.pending_acks > MAX_PENDING_ACKS {
            let detail = "it sends many frames to acknowledge, and reads no acknowledgements";
            return Err(ConnectionError::new(ErrorCode::ENHANCE_YOUR_CALM, detail));
        }
        write(&mut self.bytes);
        Ok(())
    }

    fn reset(&mut self, stream: u32, code: ErrorCode) {
        frame::reset(stream, code, &mut self.bytes);
    }

    /// Queues a window update, if one is due.
    fn window_update(&mut self, stream: u32, by: Option<u32>) {
        if let Some(by) = by {
            frame::window_update(stream, by, &mut self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::hpack::Decoder;

    #[test]
    fn a_window_lowered_below_the_sent_bytes_is_negative() {
        let mut window = SendWindow::new(INITIAL_WINDOW);
        window.sent(60_000);
        // RFC 9113, 6.9.2: from 64 KB to 16 KB after 60 KB were sent gives minus 44 KB.
        assert_eq!(window.change(16_384 - INITIAL_WINDOW), Ok(()));
        assert_eq!((window, window.available()), (SendWindow(-43_616), 0));
        assert_eq!(window.change(43_617), Ok(()));
        assert_eq!(window.available(), 1);
        assert_eq!(window.change(MAX_WINDOW), Err(Overflow));
    }

    #[test]
    fn an_update_is_due_when_half_of_the_window_is_free() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!((window.receive(60), window.consume(49)), (Ok(()), None));
        assert_eq!(window.consume(1), Some(50));
        assert_eq!((window.receive(90), window.receive(1)), (Ok(()), Err(Overrun)));
    }

    #[test]
    fn a_window_too_small_for_a_frame_is_low() {
        let mut window = ReceiveWindow::new(40_000);
        window.receive(23_000).unwrap();
        assert!(!window.is_low());
        window.receive(1_000).unwrap();
        assert!(window.is_low());
    }

    fn fields(head: &RequestHead) -> Vec<[String; 2]> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields = HeaderTemplate::new(head).0;
        fields.iter().map(|field| [text(&field.name), text(&field.value)]).collect()
    }

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        decoder
            .decode(block, &mut |field| {
                assert!(field.valid);
                lines.push(format!("{}: {}", text(field.name), text(field.value)));
            })
            .unwrap();
        lines
    }

    #[test]
    fn a_head_is_translated() {
        let expected = [
            [":method", "POST"],
            [":scheme", "https"],
            [":authority", "a:1"],
            [":path", "/v1/x?y=1"],
            ["accept", "text/plain"],
        ];
        let headers = [("Accept", "text/plain"), ("connection", "close")];
        let head = RequestHead::new("POST", "/v1/x?y=1", "https://a:1", headers).unwrap();
        assert_eq!(
            (fields(&head), head.content_length(12)),
            (expected.map(|field| field.map(str::to_owned)).to_vec(), Some(12))
        );
        assert!(Arc::ptr_eq(head.shared(), head.clone().shared()));
    }

    #[test]
    fn a_given_host_becomes_the_authority() {
        let headers = [("Accept", "text/plain"), ("Connection", "close"), ("Host", "b:2")];
        let head = RequestHead::new("GET", "/", "a:1", headers).unwrap();
        let expected = [
            [":method", "GET"],
            [":scheme", "http"],
            [":authority", "b:2"],
            [":path", "/"],
            ["accept", "text/plain"],
        ];
        assert_eq!(fields(&head), expected);
    }

    #[test]
    fn requests_of_several_kinds_keep_the_tables_in_step() {
        let new = |method, path, header| {
            let headers = [("user-agent", "plimsoll"), header];
            RequestHead::new(method, path, "https://h", headers).unwrap()
        };
        let kinds =
            [new("GET", "/a", ("authorization", "Bearer k")), new("POST", "/b", ("accept", "x/y"))];
        let (mut encoder, mut decoder) = (HeaderBlockEncoder::default(), Decoder::default());
        let mut lengths = Vec::new();
        for round in 0..12 {
            let (kind, id) = (&kinds[round / 2 % 2], format!("id-{round}"));
            let length = (round % 3 == 0).then_some(round * 1000);
            let mut block = Vec::new();
            encoder.encode(kind, Some(id.as_bytes()), length, &mut block);
            lengths.push(block.len() - length.map_or(0, |length| length.to_string().len() + 3));
            let mut expected: Vec<_> =
                fields(kind).iter().map(|[name, value]| format!("{name}: {value}")).collect();
            expected.push(format!("x-request-id: {id}"));
            expected.extend(length.map(|length| format!("content-length: {length}")));
            assert_eq!(decode(&mut decoder, &block), expected);
            if round == 7 {
                encoder.set_max_table_size(60);
            }
        }
        // The second request of a kind is much shorter: its fields are in the table.
        assert!(lengths[0] > 40 && lengths[4] < 35, "{lengths:?}");
    }

    #[test]
    fn a_block_that_inserts_nothing_is_kept() {
        let head = RequestHead::new("GET", "/", "https://h", []).unwrap();
        let mut encoder = HeaderBlockEncoder::default();
        let mut blocks = Vec::new();
        for _ in 0..5 {
            let mut block = Vec::new();
            encoder.encode(&head, Some(b"7"), None, &mut block);
            blocks.push(block);
        }
        assert_eq!(blocks[2], blocks[4]);
        assert_eq!(encoder.kinds.len(), 1);
    }

    fn head(lines: &[(&str, &str)]) -> DecodedHead {
        let mut head = DecodedHead::default();
        for (name, value) in lines {
            head.push(HeaderField { name: name.as_bytes(), value: value.as_bytes(), valid: true });
        }
        head
    }

    #[test]
    fn a_head_keeps_its_fields_in_order() {
        let head = head(&[(":status", "404"), ("a", "b"), ("content-length", "7"), ("a", "")]);
        assert_eq!((head.status(), head.length(), head.error()), (404, Some(7), None));
        assert_eq!(head.size(), "a: b\r\ncontent-length: 7\r\na: \r\n".len());
        let mut seen = Vec::new();
        head.with_response_head(|head| {
            seen.extend(
                head.headers.iter().map(|line| (line.name.to_owned(), line.value.to_vec())),
            );
        });
        let expected = [("a", "b"), ("content-length", "7"), ("a", "")];
        assert_eq!(
            seen,
            expected.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()))
        );
    }

    #[test]
    fn heads_that_break_a_rule_are_malformed() {
        for lines in [
            vec![(":status", "20")],
            vec![(":status", "2000")],
            vec![(":status", "2x0")],
            vec![(":status", "099")],
            vec![(":status", "200"), (":status", "200")],
            vec![(":path", "/")],
            vec![("a", "b"), (":status", "200")],
            vec![(":status", "200"), ("connection", "close")],
            vec![(":status", "200"), ("transfer-encoding", "chunked")],
            vec![(":status", "200"), ("content-length", "1"), ("content-length", "2")],
            vec![(":status", "200"), ("content-length", "+1")],
            vec![(":status", "200"), ("content-length", "")],
        ] {
            assert!(matches!(head(&lines).error(), Some(HeadError::Malformed(_))), "{lines:?}");
        }
    }

    #[test]
    fn a_head_over_the_limit_is_not_stored() {
        let value = "x".repeat(MAX_HEAD / 4);
        let large = head(&vec![("a", &value[..]); 1000]);
        assert_eq!(large.error(), Some(HeadError::TooLarge));
        assert!(large.text.capacity() <= 4 * MAX_HEAD);
        let many = head(&vec![("a", "b"); MAX_FIELDS + 1]);
        assert_eq!((many.error(), many.ends.len()), (Some(HeadError::TooLarge), MAX_FIELDS));
        let full = head(&vec![("a", "b"); MAX_FIELDS]);
        let mut count = 0;
        full.with_response_head(|head| count = head.headers.len());
        assert_eq!((full.error(), count), (None, MAX_FIELDS));
    }
}
