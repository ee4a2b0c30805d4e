//! Decodes response bodies incrementally.

mod anthropic;
mod chat;
mod content_encoding;
mod error_detail;
mod json_reader;
mod plain_answer;
mod response_state;
mod responses;
mod rpc_answer;
mod rpc_message;
mod sent;
mod shape;
mod usage;
mod websocket;

use content_encoding::{ContentDecoder, ContentType};
pub use error_detail::{ErrorDetail, PlainAnswer, PlainReading};
use plimsoll_measure::{AnswerContent, ErrorClass, Outcome, Usage};
pub use response_state::MAX_TOOL_CALLS;
use response_state::{DecodeError, DecodeResult, KEPT_CAPACITY, ResponseState};
use rpc_answer::RpcState;
use sent::OnDelta;
pub use sent::{Delta, DeltaKind};
use smart_default::SmartDefault;
use usage::UsageBounds;

use crate::Dialect;
use crate::dialect::DONE;
use crate::sse::{self, Parser};
use crate::turn::{Kept, ToolCall};

/// Number of bytes kept of a stream without content, to quote them in an error message.
const STREAM_START: usize = 512;

/// Options of a [`Decoder`].
#[derive(Clone, Copy, Debug, SmartDefault, PartialEq, Eq)]
pub struct DecoderOptions {
    /// Whether the assistant's text and tool calls are kept for the next turn.
    pub keep_text: bool,
    /// Largest line, and largest data of one event, in a stream, in bytes.
    #[default(1 << 20)]
    pub max_event_bytes: usize,
    /// Largest body in bytes, streamed or not.
    #[default(64 << 20)]
    pub max_body_bytes: u64,
    /// Content to extract from successful responses of plain HTTP or a tool server.
    pub reading: PlainReading,
}

/// No text is kept, events are limited to 1 MiB and bodies to 64 MiB, and nothing is extracted.
/// The interpretation of the current response's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyKind {
    /// The head has not arrived yet.
    AwaitingHead,
    /// A stream of events.
    Events,
    /// Messages of a WebSocket.
    Messages,
    /// One JSON object.
    Json,
    /// A JSON-RPC response.
    Rpc,
    /// Any bytes: a successful response of plain HTTP.
    Bytes,
    /// A successful response of plain HTTP that is parsed for an agent.
    Plain,
    /// A successful response with another content type than the requested one.
    WrongContentType,
    /// A successful response to a WebSocket handshake that opens no WebSocket.
    NoWebSocket,
    /// The body of an unsuccessful response with this status.
    Error(u16),
}

/// Decodes the responses to one kind of request, one after another, and reuses its buffers.
///
/// For each response: [`head`](Self::head), [`feed`](Self::feed) for every piece of the body (or
/// [`message`](Self::message) for every message), [`finish`](Self::finish).
///
/// Any split of the body gives the same deltas. Memory is bounded by the limits of
/// [`DecoderOptions`], whatever the target sends.
#[derive(Debug)]
pub struct Decoder {
    dialect: Dialect,
    stream: bool,
    options: DecoderOptions,
    body: BodyKind,
    /// Set if the body is compressed.
    encoding: Option<Box<ContentDecoder>>,
    received: u64,
    parser: Parser,
    /// The body so far if it is decoded as a whole, or the start of a stream without content.
    buffered: Vec<u8>,
    /// The content type, if it is not the requested one.
    wrong_type: Option<Box<str>>,
    state: ResponseState,
    /// Set for JSON-RPC.
    rpc: Option<Box<RpcState>>,
}

impl Decoder {
    /// Creates a decoder for responses in `dialect`. `stream`: whether streams were requested.
    pub fn new(dialect: Dialect, stream: bool, options: DecoderOptions) -> Self {
        Self {
            dialect,
            stream: stream && dialect.terminator().is_some(),
            options,
            body: BodyKind::AwaitingHead,
            encoding: None,
            received: 0,
            parser: Parser::new(options.max_event_bytes),
            buffered: Vec::new(),
            wrong_type: None,
            state: ResponseState::new(options.keep_text),
            rpc: dialect.is_rpc().then(|| Box::new(RpcState::new(options.reading))),
        }
    }

    /// Discards the current response.
    pub fn reset(&mut self) {
        self.body = BodyKind::AwaitingHead;
        self.encoding = None;
        self.received = 0;
        self.parser.reset();
        self.buffered.clear();
        self.buffered.shrink_to(KEPT_CAPACITY);
        self.wrong_type = None;
        self.state.reset();
        if let Some(rpc) = &mut self.rpc {
            rpc.reset();
        }
    }

    /// Sets whether the next response is a stream, for requests that differ in this.
    pub fn expect_stream(&mut self, stream: bool) {
        self.stream = stream && self.dialect.terminator().is_some();
    }

    /// Whether it has decoded nothing since it was created or reset.
    const fn is_fresh(&self) -> bool {
        matches!(self.body, BodyKind::AwaitingHead) && self.received == 0 && !self.state.is_over()
    }

    /// Begins a new response with its status and content type.
    ///
    /// A successful response must have the requested content type: `text/event-stream` for a
    /// stream, `application/json` (or `...+json`) for the rest, and any type for plain HTTP. Any
    /// other type is [`ErrorClass::ContentType`] at the end of the body. This includes JSON instead
    /// of a requested stream: a target that does not stream would be measured as a very slow one.
    /// JSON with an error object is [`ErrorClass::StreamError`] instead. A stream whose first line
    /// belongs to an event stream is accepted whatever its type, because some servers label it
    /// `text/plain`. Without a content type, the body is decoded as the requested type.
    ///
    /// A WebSocket has the status 101 in every turn. Any other success is
    /// [`ErrorClass::WebsocketHandshake`].
    pub fn head(&mut self, status: u16, content_type: Option<&[u8]>) {
        if !self.is_fresh() {
            self.reset();
        }
        if (200..300).contains(&status) && self.rpc.is_some() {
            self.rpc_head(content_type);
            return;
        }
        let requested = if self.stream { ContentType::Events } else { ContentType::Json };
        // 304 is a successful response to a conditional request.
        let good = (200..300).contains(&status) || status == 304 && self.dialect == Dialect::Http;
        self.body = if self.dialect == Dialect::Websocket && matches!(status, 101 | 200..300) {
            if status == 101 { BodyKind::Messages } else { BodyKind::NoWebSocket }
        } else if !good {
            BodyKind::Error(status)
        } else if self.dialect == Dialect::Http {
            if self.reads_plain() { BodyKind::Plain } else { BodyKind::Bytes }
        } else if let Some(received) = content_type
            && ContentType::parse(received) != requested
        {
            self.wrong_type = Some(String::from_utf8_lossy(received).into());
            BodyKind::WrongContentType
        } else if self.stream {
            BodyKind::Events
        } else {
            BodyKind::Json
        };
    }

    /// Sets whether the profile expects the status of a plain request. It must follow the
    /// [`head`](Self::head). Any status can be declared a success, and 2xx a failure.
    pub fn status_is_expected(&mut self, status: u16, expected: bool) {
        if self.dialect == Dialect::Http {
            self.body = match (expected, self.reads_plain()) {
                (false, _) => BodyKind::Error(status),
                (true, true) => BodyKind::Plain,
                (true, false) => BodyKind::Bytes,
            };
        }
    }

    /// Sets the content encoding of the body. It must follow the [`head`](Self::head). The body is
    /// decoded as it arrives; the body limit and [`received`](Self::received) refer to decoded
    /// bytes. Bodies that are not parsed stay encoded.
    pub fn content_encoding(&mut self, name: Option<&str>) {
        if let Some(name) = name
            && self.body != BodyKind::Bytes
        {
            // One byte more than allowed, so that the check below detects an excess.
            let limit = self.options.max_body_bytes.saturating_add(1);
            self.encoding = ContentDecoder::new(name, limit).map(Box::new);
        }
    }

    const fn reads_plain(&self) -> bool {
        !matches!(self.options.reading, PlainReading::Nothing)
    }

    /// Takes the [extracted content](DecoderOptions::reading) of a successful response, after
    /// [`finish`](Self::finish).
    pub const fn take_plain_answer(&mut self) -> Option<Box<PlainAnswer>> {
        self.state.take_plain_answer()
    }

    /// Begins a read. The pieces of the body until the next one have the same time.
    pub const fn next_read(&mut self) {
        self.state.sent.next_read();
    }

    /// Decodes a piece of the body. Deltas come from streams only.
    pub fn feed(&mut self, bytes: &[u8], on_delta: &mut impl FnMut(Delta<'_>)) {
        let Some(encoding) = &mut self.encoding else { return self.feed_plain(bytes, on_delta) };
        // Decodes bytes after the end of a response too, so that their count does not depend on the
        // split.
        let (decoded, intact) = encoding.decode(bytes);
        self.feed_plain(&decoded, on_delta);
        if let Err(error) = intact
            && !self.state.is_over()
        {
            self.state.fail(error);
        }
    }

    fn feed_plain(&mut self, bytes: &[u8], on_delta: &mut impl FnMut(Delta<'_>)) {
        let room = self.options.max_body_bytes.saturating_sub(self.received);
        self.received = self.received.saturating_add(bytes.len() as u64);
        if self.state.is_over() {
            return;
        }
        // Decode exactly the bytes within the limit, so that a split does not change the deltas.
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let within = &bytes[..bytes.len().min(room)];
        match self.body {
            BodyKind::Events => self.feed_events(within, on_delta),
            BodyKind::Rpc => self.feed_rpc(within, on_delta),
            BodyKind::WrongContentType if self.stream => self.feed_odd_stream(within, on_delta),
            BodyKind::Json | BodyKind::WrongContentType | BodyKind::Error(_) | BodyKind::Plain => {
                self.buffered.extend_from_slice(within);
            }
            BodyKind::Bytes
            | BodyKind::Messages
            | BodyKind::NoWebSocket
            | BodyKind::AwaitingHead => {}
        }
        if bytes.len() > room && !self.state.is_over() {
            self.state.fail(ErrorClass::BodyTooLarge.into());
        }
    }

    /// Decodes a WebSocket message: its text, or `None` for a binary message.
    pub fn message(&mut self, text: Option<&str>, on_delta: &mut impl FnMut(Delta<'_>)) {
        let bytes = text.map_or(0, str::len);
        self.received = self.received.saturating_add(bytes as u64);
        if self.state.is_over() || self.body != BodyKind::Messages {
            return;
        }
        let read = if self.received > self.options.max_body_bytes {
            Err(ErrorClass::BodyTooLarge.into())
        } else {
            websocket::read_message(&mut self.state, text, on_delta)
        };
        if let Err(error) = read {
            self.state.fail(error);
        }
    }

    /// Whether the terminator or an error has been read, so that the rest is ignored.
    pub const fn is_over(&self) -> bool {
        self.state.is_over()
    }

    /// Ends the response after the whole body has been fed.
    ///
    /// 2xx is [`Outcome::Completed`] if the body matches the dialect, 4xx is [`Outcome::Rejected`],
    /// 5xx and 3xx are failures. A stream without its [terminator](Dialect::terminator) is
    /// [`ErrorClass::StreamTruncated`]. Chat streams may omit `[DONE]` after a finish reason, as
    /// some servers do, because the model had stopped and the body is complete.
    ///
    /// A response whose finish reason reports a failure is [`ErrorClass::StreamError`], and a
    /// stream without any content is [`ErrorClass::EmptyAnswer`].
    pub fn finish(&mut self) -> Outcome {
        if let Some(class) = self.state.failure() {
            return Outcome::Failed(class);
        }
        self.decode_rest().unwrap_or_else(|mut error| {
            let class = error.class;
            if let Some(encoding) = &self.encoding {
                error.detail.message.extend([" (it came as `", encoding.name(), "`)"]);
            }
            self.state.fail(error);
            Outcome::Failed(class)
        })
    }

    /// Class of the failure as soon as it is known. The rest is not decoded then.
    pub const fn failure(&self) -> Option<ErrorClass> {
        self.state.failure()
    }

    /// The assistant's text so far; empty unless it is kept.
    pub fn text(&self) -> &str {
        self.state.text()
    }

    /// The tool calls of the model; empty unless the text is kept.
    pub fn tool_calls(&self) -> &[ToolCall] {
        self.state.tool_calls()
    }

    /// The further parts of the message; `None` unless the text is kept.
    pub fn kept(&self) -> Option<&Kept> {
        self.state.kept()
    }

    /// The target's finish reason, truncated to 64 bytes.
    pub fn finish_reason(&self) -> Option<&str> {
        self.state.finish_reason()
    }

    /// Tokens so far. If the target does not report output tokens, they are estimated as the number
    /// of content events of the stream, and marked as an estimate.
    pub fn usage(&self) -> Usage {
        self.state.usage()
    }

    /// Counts that do not add up to the reported total.
    pub fn contradiction(&self) -> Option<String> {
        self.state.counts.contradiction()
    }

    /// The total reported by the target. It may exceed input plus output, because a server's own
    /// tools use tokens that no other count includes.
    pub const fn reported_total(&self) -> Option<u32> {
        self.state.counts.total()
    }

    /// Bytes of content so far by kind. The body of plain HTTP counts as text.
    pub fn content(&self) -> AnswerContent {
        match self.body {
            BodyKind::Bytes | BodyKind::Plain => {
                let text = u32::try_from(self.received).unwrap_or(u32::MAX);
                AnswerContent { text, ..AnswerContent::default() }
            }
            _ => self.state.content(),
        }
    }

    /// Whether this response is a stream of events or messages.
    pub fn is_stream(&self) -> bool {
        match (self.body, &self.rpc) {
            (BodyKind::Rpc, Some(rpc)) => rpc.is_stream(),
            (body, _) => matches!(body, BodyKind::Events | BodyKind::Messages),
        }
    }

    /// Whether complete streams of this dialect may have a finish reason.
    pub const fn gives_finish_reasons(&self) -> bool {
        self.dialect.has_model()
    }

    /// Whether the bytes so far end with a complete event with content.
    pub fn ends_with_content(&self) -> bool {
        let after_content = match &self.rpc {
            Some(rpc) => rpc.after_content,
            None => self.state.after_content,
        };
        after_content && !self.parser.is_within_event()
    }

    /// Whether the bytes so far end within an event.
    pub const fn is_within_event(&self) -> bool {
        self.parser.is_within_event()
    }

    /// Removes implausible counts, given the size of the request's body and the requested limit of
    /// output tokens. They count as not reported.
    pub fn check_usage(&mut self, request_bytes: u64, asked_output: Option<u32>) {
        let response_bytes = self.received;
        self.state.check_usage(UsageBounds { request_bytes, asked_output, response_bytes });
    }

    /// The first reported count that is not an integer, or that [`check_usage`](Self::check_usage)
    /// removed, such as `completion_tokens -5`.
    pub fn refused_usage(&self) -> Option<&str> {
        self.state.refused_usage()
    }

    /// The error reported by the target or found by the decoder; `None` for a success.
    pub fn error_detail(&self) -> Option<&ErrorDetail> {
        self.state.detail()
    }

    /// Bytes of the body so far.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Decoded size of the body so far, if it is compressed.
    pub fn decoded_bytes(&self) -> Option<u64> {
        self.encoding.as_ref().map(|_| self.received)
    }

    /// Handles a stream with another content type, which is accepted if its first line looks like
    /// one.
    fn feed_odd_stream(&mut self, bytes: &[u8], on_delta: OnDelta<'_>) {
        self.buffered.extend_from_slice(bytes);
        if sse::is_start(&self.buffered) {
            self.body = BodyKind::Events;
            let start = std::mem::take(&mut self.buffered);
            self.feed_events(&start, on_delta);
        }
    }

    fn feed_events(&mut self, bytes: &[u8], on_delta: OnDelta<'_>) {
        self.parse_events(bytes, on_delta);
        let left = STREAM_START.saturating_sub(self.buffered.len());
        if left > 0 && self.state.is_silent() {
            self.buffered.extend_from_slice(&bytes[..bytes.len().min(left)]);
        }
    }

    fn parse_events(&mut self, bytes: &[u8], on_delta: OnDelta<'_>) {
        let Self { dialect, parser, state, .. } = self;
        let fed = parser.feed(bytes, |event| {
            if !state.is_over()
                && let Err(error) = read_event(*dialect, state, &event, on_delta)
            {
                state.fail(error);
            }
        });
        if let Err(class) = fed
            && !state.is_over()
        {
            state.fail(class.into());
        }
    }

    /// Decodes a buffered body, and determines the outcome.
    fn decode_rest(&mut self) -> Result<Outcome, DecodeError> {
        match self.body {
            BodyKind::AwaitingHead => Err(ErrorClass::ClosedEarly.into()),
            BodyKind::Bytes => Ok(Outcome::Completed),
            BodyKind::Plain => {
                let answer = plain_answer::read(self.options.reading, &self.buffered)?;
                self.state.set_plain_answer(answer);
                Ok(Outcome::Completed)
            }
            BodyKind::Rpc => self.finish_rpc(),
            BodyKind::Events => self.finish_events(),
            BodyKind::Messages if self.state.is_over() => Ok(Outcome::Completed),
            BodyKind::Messages => Err(self.truncated()),
            BodyKind::NoWebSocket => Err(DecodeError::new(
                ErrorClass::WebsocketHandshake,
                "the target answered the handshake with a success, but did not open a WebSocket",
            )),
            BodyKind::Json => {
                let text = simdutf8::basic::from_utf8(&self.buffered)
                    .map_err(|_| DecodeError::no_text(&self.buffered))?;
                // Some servers begin with a byte order mark, which RFC 8259 allows parsers to
                // ignore.
                let text = text.strip_prefix(sse::BYTE_ORDER_MARK).unwrap_or(text);
                self.state.note_model(text);
                read_whole(self.dialect, &mut self.state, text)?;
                let failed = self.state.hidden_failure();
                // A complete response proves by its members that it is one, even without content.
                match failed.filter(|error| error.class != ErrorClass::EmptyAnswer) {
                    Some(error) => Err(error),
                    None => Ok(Outcome::Completed),
                }
            }
            BodyKind::WrongContentType => Err(self.wrong_content_type()),
            BodyKind::Error(status) => self.error_response(status),
        }
    }

    /// Ends a stream of events. Its last event counts even without the final blank line.
    fn finish_events(&mut self) -> Result<Outcome, DecodeError> {
        let Self { dialect, parser, state, .. } = self;
        let mut last = Ok(());
        // A line that is not valid UTF-8 was truncated, like a part of an event.
        let is_cut = parser.is_within_line();
        if !state.is_over() {
            let _ = parser.finish(|event| last = read_event(*dialect, state, &event, &mut |_| {}));
        }
        if let Err(error) = last
            && !(is_cut && error.class == ErrorClass::MalformedBody)
        {
            return Err(error);
        }
        let stopped = dialect.ends_with_done() && state.finish_reason().is_some();
        if !state.is_over() && !stopped {
            return Err(self.truncated());
        }
        state.hidden_failure().map_or(Ok(Outcome::Completed), Err)
    }

    /// The error for a stream without an end. If it had no content, it may be something else, such
    /// as a text, so its start is quoted.
    fn truncated(&self) -> DecodeError {
        let end = self.dialect.terminator().unwrap_or_default();
        let mut message = format!("the stream ended without `{end}`");
        if self.state.is_silent() && !self.buffered.is_empty() {
            if let Some(detail) = ErrorDetail::in_place_of_stream(&self.buffered) {
                return DecodeError { class: ErrorClass::StreamError, detail };
            }
            if !sse::is_start(&self.buffered) {
                let message = format!("not an event stream; it begins with {}", self.quoted());
                return DecodeError::new(ErrorClass::MalformedBody, &message);
            }
            message.extend([" and without content; it began with ", &self.quoted()]);
        } else if self.received == 0 && self.body == BodyKind::Events {
            message += ": it is empty";
        }
        DecodeError::new(ErrorClass::StreamTruncated, &message)
    }

    fn wrong_content_type(&self) -> DecodeError {
        let requested = if self.stream { "an event stream" } else { "JSON" };
        ErrorDetail::in_place_of_stream(&self.buffered).map_or_else(
            || {
                let received = error_detail::quote(self.wrong_type.as_deref().unwrap_or_default());
                let begin = if self.buffered.is_empty() { "and empty" } else { &self.quoted() };
                let message = format!("the response is {received}, not {requested}: {begin}");
                DecodeError::new(ErrorClass::ContentType, &message)
            },
            |detail| DecodeError { class: ErrorClass::StreamError, detail },
        )
    }

    /// Quotes the start of the received bytes.
    fn quoted(&self) -> String {
        error_detail::quote(&String::from_utf8_lossy(&self.buffered))
    }

    fn error_response(&mut self, status: u16) -> Result<Outcome, DecodeError> {
        let detail = ErrorDetail::from_body(&self.buffered);
        let class = match status {
            200..300 => ErrorClass::UnexpectedStatus,
            400..500 => {
                self.state.set_detail(detail);
                return Ok(Outcome::Rejected(status));
            }
            300..400 => ErrorClass::Redirect,
            // Codes from 600 on are read like 5xx (RFC 9110, section 15).
            500.. => ErrorClass::ServerError,
            _ => ErrorClass::MalformedHead,
        };
        Err(detail.map_or_else(|| class.into(), |detail| DecodeError { class, detail }))
    }
}

fn read_event(
    dialect: Dialect,
    state: &mut ResponseState,
    event: &sse::Event<'_>,
    on_delta: OnDelta<'_>,
) -> DecodeResult {
    state.begin_event();
    if event.name == "error" {
        return Err(DecodeError::from_error_event(event.data));
    }
    if event.data.trim() == DONE {
        // Some gateways end the streams of all dialects with it.
        if dialect.ends_with_done() {
            state.end();
        }
        return Ok(());
    }
    if is_keep_alive(event) {
        return Ok(());
    }
    state.note_model(event.data);
    let kind = shape::Kind { dialect, event: Some(event.name) };
    if shape::read(kind, event.data, state, on_delta) {
        return Ok(());
    }
    parse_event(dialect, state, event, on_delta)?;
    shape::learn(kind, event.data, |data, state, on_delta| {
        parse_event(dialect, state, &sse::Event { data, ..*event }, on_delta)
    });
    Ok(())
}

fn parse_event(
    dialect: Dialect,
    state: &mut ResponseState,
    event: &sse::Event<'_>,
    on_delta: OnDelta<'_>,
) -> DecodeResult {
    match dialect {
        Dialect::OpenaiChat | Dialect::OpenaiCompletions => {
            chat::read_event(state, event, on_delta)
        }
        Dialect::OpenaiResponses => responses::read_event(state, event, on_delta),
        Dialect::AnthropicMessages => anthropic::read_event(state, event, on_delta),
        Dialect::OpenaiEmbeddings
        | Dialect::Mcp
        | Dialect::A2a
        | Dialect::Websocket
        | Dialect::Http => Ok(()),
    }
}

/// Whether an event is a keep-alive: it has no data, or it has a name and its data are not an
/// object. All events of the dialects are objects.
fn is_keep_alive(event: &sse::Event<'_>) -> bool {
    let first = event.data.as_bytes().first();
    first != Some(&b'{') && {
        let data = event.data.trim_start();
        data.is_empty() || (!event.name.is_empty() && !data.starts_with('{'))
    }
}

fn read_whole(dialect: Dialect, state: &mut ResponseState, body: &str) -> DecodeResult {
    let kind = shape::Kind { dialect, event: None };
    if shape::read(kind, body, state, &mut |_| {}) {
        return Ok(());
    }
    parse_whole(dialect, state, body)?;
    shape::learn(kind, body, |body, state, _| parse_whole(dialect, state, body));
    Ok(())
}

fn parse_whole(dialect: Dialect, state: &mut ResponseState, body: &str) -> DecodeResult {
    match dialect {
        Dialect::OpenaiChat | Dialect::OpenaiCompletions => chat::read_whole(state, body),
        Dialect::OpenaiResponses => responses::read_whole(state, body),
        Dialect::OpenaiEmbeddings => chat::read_embeddings(state, body),
        Dialect::AnthropicMessages => anthropic::read_whole(state, body),
        Dialect::Mcp | Dialect::A2a | Dialect::Websocket | Dialect::Http => Ok(()),
    }
}
