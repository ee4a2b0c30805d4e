//! From the bytes of an answer to events.

mod answer;
mod anthropic;
mod chat;
mod detail;
mod embeddings;
mod json;
mod media;
mod responses;
mod usage;

use plimsoll_measure::{ErrorClass, Outcome, Usage};

use crate::dialect::DONE;
use crate::sse::Parser;
use crate::{Dialect, sse};
use answer::{Answer, Fault, Reading, Sink};
pub use detail::ErrorDetail;
use media::Media;

/// Capacity that is kept between answers; what one huge body needed beyond it is given back.
const KEPT: usize = 64 * 1024;

/// What a content-bearing part of a stream holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeltaKind {
    /// Text for the reader, refusals included.
    Text,
    /// The model's reasoning.
    Reasoning,
    /// Name or arguments of a tool call.
    ToolCall,
}

/// What an answer says, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireEvent<'a> {
    /// A content-bearing part of a stream; never empty. Answers that are not streamed have none.
    Delta {
        /// What it holds.
        kind: DeltaKind,
        /// The part itself.
        text: &'a str,
    },
    /// All that the target has reported about tokens up to now; a later report replaces it.
    Usage(Usage),
    /// The target's word for why the model stopped.
    Finish {
        /// As the target says it.
        reason: &'a str,
    },
    /// The answer has failed: the last event, and the only one of its kind.
    Error {
        /// The class of the failure.
        class: ErrorClass,
        /// What the target says about it, else what we found; as in [`ErrorDetail`].
        message: &'a str,
    },
}

/// How answers are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderOptions {
    /// Is the assistant's text kept, for the next turn?
    pub keep_text: bool,
    /// Longest line and most data of one event of a stream, in bytes.
    pub max_event_bytes: usize,
    /// Largest body, streamed or not, in bytes.
    pub max_body_bytes: u64,
}

/// No text kept, events up to 1 MiB, bodies up to 64 MiB.
impl Default for DecoderOptions {
    fn default() -> Self {
        Self { keep_text: false, max_event_bytes: 1 << 20, max_body_bytes: 64 << 20 }
    }
}

/// How the body of the present answer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    /// There is no head yet.
    Awaited,
    /// A stream of events.
    Events,
    /// One JSON object.
    Json,
    /// Anything, of a success of plain HTTP.
    Bytes,
    /// Of a success, but not of the type that was asked for.
    Foreign,
    /// Of an answer with this status, which is not a success.
    Refusal(u16),
}

/// Reads the answers to one kind of request, one after another; its buffers are used again.
///
/// For each answer: [`head`](Self::head), [`feed`](Self::feed) for every piece of the body,
/// [`finish`](Self::finish). Any split of the body gives the same events. An answer ends in
/// [`Outcome::Failed`] exactly if there was one [`WireEvent::Error`], which has the same class.
/// Memory is bounded by the limits of [`DecoderOptions`], whatever the target sends.
#[derive(Debug)]
pub struct Decoder {
    dialect: Dialect,
    stream: bool,
    options: DecoderOptions,
    body: Body,
    received: u64,
    parser: Parser,
    kept: Vec<u8>,
    answer: Answer,
}

impl Decoder {
    /// A decoder for answers in `dialect`; `stream`: were they asked for as streams?
    pub const fn new(dialect: Dialect, stream: bool, options: DecoderOptions) -> Self {
        Self {
            dialect,
            stream: stream && dialect.terminator().is_some(),
            options,
            body: Body::Awaited,
            received: 0,
            parser: Parser::new(options.max_event_bytes),
            kept: Vec::new(),
            answer: Answer::new(options.keep_text),
        }
    }

    /// Forgets the present answer.
    pub fn reset(&mut self) {
        self.body = Body::Awaited;
        self.received = 0;
        self.parser.reset();
        self.kept.clear();
        self.kept.shrink_to(KEPT);
        self.answer.reset();
    }

    /// Begins a new answer with what its head says.
    ///
    /// A success must have the content type that was asked for: `text/event-stream` for a stream,
    /// `application/json` (or `...+json`) for the rest, anything for plain HTTP. Another one is
    /// [`ErrorClass::ContentType`] at the end of the body, even JSON where a stream was asked for:
    /// a target that does not stream would be measured as a very slow one. JSON with an error object
    /// in it is [`ErrorClass::StreamError`] instead. A missing content type claims nothing, and
    /// the body is read as what was asked for.
    pub fn head(&mut self, status: u16, content_type: Option<&str>) {
        self.reset();
        let asked = if self.stream { Media::Events } else { Media::Json };
        self.body = match (self.dialect, content_type.map_or(asked, Media::of)) {
            _ if !(200..300).contains(&status) => Body::Refusal(status),
            (Dialect::Http, _) => Body::Bytes,
            (_, media) if media != asked => Body::Foreign,
            (_, Media::Events) => Body::Events,
            (..) => Body::Json,
        };
    }

    /// Reads a piece of the body.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(WireEvent<'_>)) {
        let room = self.options.max_body_bytes.saturating_sub(self.received);
        self.received = self.received.saturating_add(bytes.len() as u64);
        if self.answer.is_over() {
            return;
        }
        // Exactly the bytes within the limit are read, so that a split does not change the events.
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let within = &bytes[..bytes.len().min(room)];
        match self.body {
            Body::Events => self.feed_events(within, sink),
            Body::Json | Body::Foreign | Body::Refusal(_) => self.kept.extend_from_slice(within),
            Body::Bytes | Body::Awaited => {}
        }
        if bytes.len() > room && !self.answer.is_over() {
            self.answer.fail(ErrorClass::BodyTooLarge.into(), sink);
        }
    }

    /// Ends the answer: the whole body has been fed.
    ///
    /// 2xx is [`Outcome::Completed`] if the body is what the dialect promises, 4xx is
    /// [`Outcome::Rejected`], 5xx and 3xx are failures. A stream must have had its
    /// [terminator](Dialect::terminator), or it is [`ErrorClass::StreamTruncated`]: also for servers
    /// that leave out `[DONE]` after a finish reason, because nothing else tells their end from a cut.
    pub fn finish(&mut self, sink: &mut impl FnMut(WireEvent<'_>)) -> Outcome {
        if let Some(class) = self.answer.failure() {
            return Outcome::Failed(class);
        }
        self.conclude(sink).unwrap_or_else(|fault| {
            let class = fault.class;
            self.answer.fail(fault, sink);
            Outcome::Failed(class)
        })
    }

    /// The class of the failure, as soon as there is one: nothing further will be read.
    pub const fn failure(&self) -> Option<ErrorClass> {
        self.answer.failure()
    }

    /// The assistant's text up to now; empty unless it is kept.
    pub fn text(&self) -> &str {
        self.answer.text()
    }

    /// Tokens up to now. Where the target reports no output tokens, the content events of a stream
    /// stand for them, labelled as an estimate.
    pub fn usage(&self) -> Usage {
        self.answer.usage()
    }

    /// What an answer that is not a success says about the reason, or what we found wrong with it.
    pub const fn error_detail(&self) -> Option<&ErrorDetail> {
        self.answer.detail()
    }

    /// Bytes of the body up to now.
    pub const fn received(&self) -> u64 {
        self.received
    }

    fn feed_events(&mut self, bytes: &[u8], sink: Sink<'_>) {
        let Self { dialect, parser, answer, .. } = self;
        let fed = parser.feed(bytes, |event| {
            if !answer.is_over()
                && let Err(fault) = read_event(*dialect, answer, &event, sink)
            {
                answer.fail(fault, sink);
            }
        });
        if let Err(class) = fed
            && !answer.is_over()
        {
            answer.fail(class.into(), sink);
        }
    }

    fn conclude(&mut self, sink: Sink<'_>) -> Result<Outcome, Fault> {
        match self.body {
            Body::Awaited => Err(ErrorClass::ClosedEarly.into()),
            Body::Bytes => Ok(Outcome::Completed),
            Body::Events if self.answer.is_over() => Ok(Outcome::Completed),
            Body::Events => Err(self.truncated()),
            Body::Json => {
                let text = str::from_utf8(&self.kept).map_err(|_| ErrorClass::MalformedBody)?;
                read_whole(self.dialect, &mut self.answer, text, sink)?;
                Ok(Outcome::Completed)
            }
            Body::Foreign => Err(self.foreign()),
            Body::Refusal(status) => self.refusal(status),
        }
    }

    fn truncated(&self) -> Fault {
        let end = self.dialect.terminator().unwrap_or_default();
        Fault::found(ErrorClass::StreamTruncated, &format!("the stream ended without `{end}`"))
    }

    fn foreign(&self) -> Fault {
        let asked = if self.stream { "an event stream" } else { "JSON" };
        ErrorDetail::of_error_object(&self.kept).map_or_else(
            || Fault::found(ErrorClass::ContentType, &format!("the answer is not {asked}")),
            |detail| Fault { class: ErrorClass::StreamError, detail },
        )
    }

    fn refusal(&mut self, status: u16) -> Result<Outcome, Fault> {
        let detail = ErrorDetail::of_body(&self.kept);
        let class = match status {
            400..500 => {
                self.answer.explain(detail);
                return Ok(Outcome::Rejected(status));
            }
            300..400 => ErrorClass::Redirect,
            500..600 => ErrorClass::ServerError,
            _ => ErrorClass::MalformedHead,
        };
        Err(detail.map_or_else(|| class.into(), |detail| Fault { class, detail }))
    }
}

fn read_event(
    dialect: Dialect,
    answer: &mut Answer,
    event: &sse::Event<'_>,
    sink: Sink<'_>,
) -> Reading {
    if event.name == "error" {
        return Err(Fault::told(event.data));
    }
    if event.data == DONE {
        // Some gateways end the streams of all dialects with it; for the others it proves nothing.
        if dialect == Dialect::OpenaiChat {
            answer.end();
        }
        return Ok(());
    }
    match dialect {
        Dialect::OpenaiChat => chat::read_event(answer, event, sink),
        Dialect::OpenaiResponses => responses::read_event(answer, event, sink),
        Dialect::AnthropicMessages => anthropic::read_event(answer, event, sink),
        Dialect::OpenaiEmbeddings | Dialect::Http => Ok(()),
    }
}

fn read_whole(dialect: Dialect, answer: &mut Answer, body: &str, sink: Sink<'_>) -> Reading {
    match dialect {
        Dialect::OpenaiChat => chat::read_whole(answer, body, sink),
        Dialect::OpenaiResponses => responses::read_whole(answer, body, sink),
        Dialect::OpenaiEmbeddings => embeddings::read_whole(answer, body, sink),
        Dialect::AnthropicMessages => anthropic::read_whole(answer, body, sink),
        Dialect::Http => Ok(()),
    }
}
