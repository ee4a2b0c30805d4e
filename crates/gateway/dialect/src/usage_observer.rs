//! Observes a response as it passes, without changing it: usage, content events, completeness.

use memchr::memmem::Finder;
use serde::Deserialize;

use crate::answer;
use crate::dialect::Endpoint;
use crate::sse::{EventSplitter, MAX_EVENT_BYTES, SseEvent};
use crate::usage::Usage;
use crate::wire::{anthropic, openai};

/// Whether a response is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamStatus {
    /// The last event, or the end of the JSON body, has arrived.
    Finished,
    /// The stream contained an error event.
    Failed,
    /// The last event has not arrived.
    #[default]
    Truncated,
}

/// The bytes that a stream may have before its first content.
const UNDERSTOOD: u64 = 2 << 10;

/// Reads usage, content events and completeness from a response as it passes. Feed it the relayed
/// chunks.
///
/// In a stream only events that contain `"usage"` with a value are parsed; the others are searched
/// for a few literals. An event within one chunk is not copied. A whole body is buffered to its
/// end, up to 4 MiB; a longer body or event is not observed.
#[derive(Debug)]
pub struct UsageObserver {
    source: Source,
    observed: Observed,
}

/// The form of the response.
#[derive(Debug)]
enum Source {
    Stream(Box<StreamSource>),
    Body {
        endpoint: Endpoint,
        buffered: Vec<u8>,
    },
    /// A body or an event exceeded the limit.
    TooLong,
}

#[derive(Debug)]
struct StreamSource {
    splitter: EventSplitter,
    matcher: EventMatcher,
}

/// The results so far.
#[derive(Clone, Copy, Debug, Default)]
struct Observed {
    usage: Option<Usage>,
    content_events: u64,
    /// Bytes that passed.
    bytes: u64,
    /// Bytes of text in content events, as they are escaped in JSON.
    content_bytes: u64,
    status: StreamStatus,
    /// A complete and good answer, see [`UsageObserver::is_answer`].
    is_answer: bool,
    /// Whether an event gave a finish reason, and whether all of them are good.
    reason: Reason,
}

/// The finish reasons of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reason {
    #[default]
    Missing,
    Good,
    /// An error, or a filter that cut the answer.
    Bad,
}

impl UsageObserver {
    /// Observes a stream of events.
    pub fn stream(endpoint: Endpoint) -> Self {
        let source = StreamSource {
            splitter: EventSplitter::default(),
            matcher: EventMatcher::new(endpoint),
        };
        Self { source: Source::Stream(Box::new(source)), observed: Observed::default() }
    }

    /// Observes a whole JSON response.
    pub fn body(endpoint: Endpoint) -> Self {
        let source = Source::Body { endpoint, buffered: Vec::new() };
        Self { source, observed: Observed::default() }
    }

    /// Observes the next bytes; returns the number of content events that ended in them.
    pub fn feed(&mut self, chunk: &[u8]) -> u64 {
        let before = self.observed.content_events;
        self.observed.bytes += chunk.len() as u64;
        let too_long = match &mut self.source {
            Source::Stream(source) => source.feed(chunk, &mut self.observed),
            Source::Body { buffered, .. } if buffered.len() + chunk.len() <= MAX_EVENT_BYTES => {
                buffered.extend_from_slice(chunk);
                false
            }
            Source::Body { .. } => true,
            Source::TooLong => false,
        };
        if too_long {
            self.source = Source::TooLong;
        }
        self.observed.content_events - before
    }

    /// Ends the response and returns its final status. A whole body is parsed now.
    pub fn finish(&mut self) -> StreamStatus {
        if let Source::Stream(source) = &mut self.source {
            source.finish(&mut self.observed);
        }
        if let Source::Body { endpoint, buffered } = &self.source
            && let Ok(usage) = Usage::from_body(*endpoint, buffered)
        {
            let content_bytes = 4 * answer::estimated_tokens(usage, buffered);
            self.observed = Observed {
                usage,
                content_events: 1,
                bytes: buffered.len() as u64,
                content_bytes,
                status: StreamStatus::Finished,
                reason: Reason::Missing,
                is_answer: answer::is_answer(*endpoint, buffered),
            };
        }
        self.observed.status
    }

    /// Whether the response was understood. A long or ended stream without known content was not,
    /// and neither was one with an event beyond the limit.
    pub const fn is_understood(&self, has_ended: bool) -> bool {
        let most = if has_ended { 0 } else { UNDERSTOOD };
        let is_foreign = self.observed.content_events == 0
            && matches!(self.observed.status, StreamStatus::Truncated)
            && self.observed.bytes > most;
        !is_foreign && !matches!(self.source, Source::TooLong)
    }

    /// Whether the ended response is a complete and good answer that may be cached: of the
    /// endpoint's form, with content, without an error, and with nothing after its end.
    pub const fn is_answer(&self) -> bool {
        self.observed.is_answer
    }

    /// An estimate of the completion tokens, for a response that reports none: a quarter of the
    /// bytes of its texts, and at least one for each event with content.
    pub const fn estimated_tokens(&self) -> u64 {
        let (events, quarter) = (self.observed.content_events, self.observed.content_bytes / 4);
        if quarter > events { quarter } else { events }
    }

    /// The bytes that are buffered.
    pub fn buffered(&self) -> usize {
        match &self.source {
            Source::Stream(source) => source.splitter.incomplete().len(),
            Source::Body { buffered, .. } => buffered.capacity(),
            Source::TooLong => 0,
        }
    }

    /// The latest usage. A stream of messages reports the prompt tokens in its first event.
    pub const fn usage(&self) -> Option<Usage> {
        self.observed.usage
    }

    /// The number of events with text, reasoning or part of a tool call. A whole body counts as
    /// one, when it ends.
    pub const fn content_events(&self) -> u64 {
        self.observed.content_events
    }
}

impl Observed {
    /// Takes a finish reason: the value of a member, as JSON.
    fn stopped_by(&mut self, value: &[u8]) {
        let [b'"', reason @ ..] = value else { return };
        let reason = &reason[..memchr::memchr(b'"', reason).unwrap_or(reason.len())];
        let is_good = answer::is_good_reason(reason) && self.reason != Reason::Bad;
        self.reason = if is_good { Reason::Good } else { Reason::Bad };
    }

    /// Counts an event with content.
    const fn content(&mut self, bytes: usize) {
        self.content_events += 1;
        self.content_bytes += bytes as u64;
    }

    /// Takes the status from an event. A failure stays a failure, even if the stream continues; so
    /// does data after the end.
    fn end_with(&mut self, status: StreamStatus) {
        self.status = match self.status {
            StreamStatus::Truncated => status,
            StreamStatus::Finished | StreamStatus::Failed => StreamStatus::Failed,
        };
        self.is_answer = self.status == StreamStatus::Finished
            && self.content_events > 0
            && self.reason == Reason::Good;
    }
}

impl StreamSource {
    /// Returns whether an event was too long.
    fn feed(&mut self, chunk: &[u8], observed: &mut Observed) -> bool {
        let Self { splitter, matcher } = self;
        splitter
            .feed(chunk, |event| {
                matcher.observe(event, observed);
                Ok(())
            })
            .is_err()
    }

    /// Observes a last event that lacks its empty line.
    fn finish(&mut self, observed: &mut Observed) {
        let Self { splitter, matcher } = self;
        // A stream that ends within an event stays truncated.
        let _ = splitter.finish(|event| {
            matcher.observe(event, observed);
            Ok(())
        });
    }
}

/// Classifies events by literals, without parsing them.
///
/// Quotes inside JSON strings are escaped, so a literal that includes its quotes matches a member's
/// name or a whole value, never part of the model's text.
#[derive(Debug)]
struct EventMatcher {
    endpoint: Endpoint,
    usage: Finder<'static>,
    content: Finder<'static>,
    other_content: [Finder<'static>; 4],
    error: Finder<'static>,
    /// The member with the finish reason.
    reason: Finder<'static>,
}

impl EventMatcher {
    fn new(endpoint: Endpoint) -> Self {
        let other = ["\"tool_calls\"", "\"reasoning_content\"", "\"reasoning\"", "\"refusal\""];
        Self {
            endpoint,
            usage: Finder::new("\"usage\""),
            content: Finder::new("\"content\""),
            other_content: other.map(Finder::new),
            error: Finder::new("\"error\""),
            reason: Finder::new(match endpoint {
                Endpoint::Messages => "\"stop_reason\"",
                Endpoint::Responses => "\"incomplete_details\"",
                Endpoint::Chat | Endpoint::Embeddings => "\"finish_reason\"",
            }),
        }
    }

    fn observe(&self, event: &[u8], observed: &mut Observed) {
        match self.endpoint {
            Endpoint::Messages => self.observe_message_event(event, observed),
            Endpoint::Responses => self.observe_response_event(event, observed),
            Endpoint::Chat | Endpoint::Embeddings => self.observe_chunk(event, observed),
        }
    }

    fn observe_chunk(&self, event: &[u8], observed: &mut Observed) {
        self.reasons(event).for_each(|value| observed.stopped_by(value));
        let is_error = event_name(event) == Some(b"error")
            || value_after(&self.error, event).is_some_and(|value| !value.starts_with(b"null"));
        if let Some(bytes) = self.content_bytes(event) {
            observed.content(bytes);
            if observed.status != StreamStatus::Truncated {
                observed.end_with(StreamStatus::Failed);
            }
        } else if is_done(event) {
            observed.end_with(StreamStatus::Finished);
        }
        if is_error {
            observed.end_with(StreamStatus::Failed);
        }
        if value_after(&self.usage, event).is_some_and(|value| value.starts_with(b"{")) {
            let chunk = parse::<OpenAiUsage>(event).and_then(|chunk| chunk.usage);
            observed.usage = chunk.map(Usage::from).or(observed.usage);
        }
    }

    /// The finish reasons of an event, as JSON: each choice has its own.
    fn reasons<'e>(&self, event: &'e [u8]) -> impl Iterator<Item = &'e [u8]> {
        let length = self.reason.needle().len();
        self.reason.find_iter(event).filter_map(move |at| value_at(event, at + length))
    }

    /// The bytes of the event's content; `None` if it has none.
    fn content_bytes(&self, event: &[u8]) -> Option<usize> {
        let found = value_after(&self.content, event).and_then(text_bytes);
        found.or_else(|| {
            let mut others = self.other_content.iter().filter_map(|name| value_after(name, event));
            others.find_map(|value| text_bytes(value).or_else(|| list_bytes(value)))
        })
    }

    fn observe_message_event(&self, event: &[u8], observed: &mut Observed) {
        self.reasons(event).for_each(|value| observed.stopped_by(value));
        match event_type(event) {
            b"content_block_delta" => observed.content(delta_bytes(event)),
            b"message_stop" => observed.end_with(StreamStatus::Finished),
            b"error" => observed.end_with(StreamStatus::Failed),
            _ if self.usage.find(event).is_some() => {
                let Some(event) = parse::<AnthropicUsage>(event) else { return };
                let initial = event.message.and_then(|message| message.usage);
                for usage in [initial, event.usage].into_iter().flatten() {
                    observed.usage.get_or_insert_default().update(usage);
                }
            }
            _ => {}
        }
    }

    fn observe_response_event(&self, event: &[u8], observed: &mut Observed) {
        match event_type(event) {
            b"response.completed" | b"response.incomplete" => {
                let details = value_after(&self.reason, event).unwrap_or_default();
                let reason = memchr::memmem::find(details, b"\"reason\"")
                    .filter(|_| details.starts_with(b"{"))
                    .and_then(|at| value_at(details, at + 8));
                observed.stopped_by(reason.unwrap_or(b"\"stop\""));
                observed.end_with(StreamStatus::Finished);
            }
            b"response.failed" | b"error" => observed.end_with(StreamStatus::Failed),
            delta if delta.ends_with(b".delta") => observed.content(delta_bytes(event)),
            _ => {}
        }
        if value_after(&self.usage, event).is_some_and(|value| value.starts_with(b"{")) {
            let usage = parse::<ResponsesUsage>(event).and_then(|event| event.response?.usage);
            observed.usage = usage.map(Usage::from).or(observed.usage);
        }
    }
}

/// Whether this is `data: [DONE]`, the last event of a stream of chunks.
fn is_done(event: &[u8]) -> bool {
    SseEvent::parse(event).is_some_and(|event| event.data.trim_ascii() == b"[DONE]")
}

/// The type of an event: its name if the first line has one, else its first `type` member.
fn event_type(event: &[u8]) -> &[u8] {
    if let Some(name) = event_name(event) {
        return name;
    }
    let found = memchr::memmem::find(event, b"\"type\"").and_then(|at| value_at(event, at + 6));
    let Some([b'"', name @ ..]) = found else { return b"" };
    &name[..memchr::memchr(b'"', name).unwrap_or(name.len())]
}

/// The name of an event, if its first line has one.
fn event_name(event: &[u8]) -> Option<&[u8]> {
    let name = event.strip_prefix(b"event:")?;
    let end = memchr::memchr(b'\n', name).unwrap_or(name.len());
    Some(name[..end].trim_ascii())
}

/// The bytes of a text that is not empty.
fn text_bytes(value: &[u8]) -> Option<usize> {
    Some(string_bytes(value)).filter(|bytes| *bytes > 0)
}

/// The bytes of a list.
fn list_bytes(value: &[u8]) -> Option<usize> {
    value.starts_with(b"[").then_some(value.len())
}

/// The bytes of a JSON string, as it is escaped; 0 for any other value.
fn string_bytes(value: &[u8]) -> usize {
    let Some((b'"', text)) = value.split_first() else { return 0 };
    let end = memchr::memchr_iter(b'"', text).find(|end| {
        let escapes = text[..*end].iter().rev().take_while(|byte| **byte == b'\\').count();
        escapes % 2 == 0
    });
    end.unwrap_or(text.len())
}

/// The bytes of a delta: the size of the event, less the constant part of every event.
fn delta_bytes(event: &[u8]) -> usize {
    let texts = ["\"text\"", "\"delta\"", "\"partial_json\"", "\"thinking\""];
    let found = texts.iter().filter_map(|name| {
        let at = memchr::memmem::rfind(event, name.as_bytes())?;
        value_at(event, at + name.len()).map(string_bytes)
    });
    found.max().unwrap_or(0)
}

/// The bytes of an event from the value of the first member with that name.
fn value_after<'e>(name: &Finder<'_>, event: &'e [u8]) -> Option<&'e [u8]> {
    let at = name.find(event)?;
    value_at(event, at + name.needle().len())
}

fn value_at(event: &[u8], after_name: usize) -> Option<&[u8]> {
    let rest = event.get(after_name..)?.trim_ascii_start().strip_prefix(b":")?;
    Some(rest.trim_ascii_start())
}

fn parse<T: for<'de> Deserialize<'de>>(event: &[u8]) -> Option<T> {
    serde_json::from_slice(&SseEvent::parse(event)?.data).ok()
}

#[derive(Deserialize)]
struct OpenAiUsage {
    usage: Option<openai::Usage>,
}

#[derive(Deserialize)]
struct AnthropicUsage {
    message: Option<WithUsage<anthropic::Usage>>,
    usage: Option<anthropic::Usage>,
}

#[derive(Deserialize)]
struct ResponsesUsage {
    response: Option<WithUsage<openai::ResponsesUsage>>,
}

#[derive(Deserialize)]
struct WithUsage<U> {
    usage: Option<U>,
}

#[cfg(test)]
mod tests;
