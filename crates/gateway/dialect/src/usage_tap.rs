//! Watching an answer pass, without touching it.

use memchr::memmem::Finder;
use serde::Deserialize;

use crate::dialect::Endpoint;
use crate::sse::{Event, MAX_EVENT_BYTES, Splitter};
use crate::usage::Usage;
use crate::wire::{anthropic, openai};

/// How an answer stands, or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its last event, or the end of its JSON, has been seen.
    Finished,
    /// An error came in the place of an event.
    Failed,
    /// Its last event has not been seen. Where no more bytes will come, it was cut short.
    Truncated,
}

/// Reads usage, progress and the ending off a passing answer. The bytes go their way unchanged: feed
/// the tap the same chunks that are relayed.
///
/// Of streamed events only those that hold the word `"usage"` with a value are parsed; the others are
/// searched for a few literals. An event within one chunk is not copied. Whole bodies are kept until
/// the end, up to 4 MiB; of longer ones, and of longer events, nothing is known.
#[derive(Debug)]
pub struct UsageObserver {
    watch: Watch,
    seen: Seen,
}

#[derive(Debug)]
enum Watch {
    Stream(Box<StreamWatch>),
    Body {
        endpoint: Endpoint,
        kept: Vec<u8>,
    },
    /// Too long to watch.
    Blind,
}

#[derive(Debug)]
struct StreamWatch {
    splitter: Splitter,
    words: Words,
}

/// What has been seen so far.
#[derive(Clone, Copy, Debug)]
struct Seen {
    usage: Option<Usage>,
    contents: u64,
    ending: Ending,
}

impl UsageObserver {
    /// A tap on a stream of events.
    pub fn stream(endpoint: Endpoint) -> Self {
        let watch = StreamWatch { splitter: Splitter::default(), words: Words::of(endpoint) };
        Self { watch: Watch::Stream(Box::new(watch)), seen: Seen::nothing() }
    }

    /// A tap on a whole answer in JSON.
    pub fn body(endpoint: Endpoint) -> Self {
        Self { watch: Watch::Body { endpoint, kept: Vec::new() }, seen: Seen::nothing() }
    }

    /// Watches the next bytes; gives how many content events ended in them. The first content has come
    /// when [`UsageObserver::contents`] leaves zero.
    pub fn feed(&mut self, chunk: &[u8]) -> u64 {
        let before = self.seen.contents;
        let lost = match &mut self.watch {
            Watch::Stream(watch) => watch.feed(chunk, &mut self.seen),
            Watch::Body { kept, .. } if kept.len() + chunk.len() <= MAX_EVENT_BYTES => {
                kept.extend_from_slice(chunk);
                false
            }
            Watch::Body { .. } => true,
            Watch::Blind => false,
        };
        if lost {
            self.watch = Watch::Blind;
        }
        self.seen.contents - before
    }

    /// No more bytes will come. Says how the answer ended; a whole body is parsed now.
    pub fn finish(&mut self) -> Ending {
        if let Watch::Body { endpoint, kept } = &self.watch
            && let Ok(usage) = Usage::of_body(*endpoint, kept)
        {
            self.seen = Seen { usage, contents: 1, ending: Ending::Finished };
        }
        self.seen.ending
    }

    /// The usage said so far. In a stream of messages the prompt's tokens are known from the start.
    pub const fn usage(&self) -> Option<Usage> {
        self.seen.usage
    }

    /// Events that carried text, thinking or a piece of a tool call; of a whole body 1, at its end.
    pub const fn contents(&self) -> u64 {
        self.seen.contents
    }

    /// How the answer stands now.
    pub const fn ending(&self) -> Ending {
        self.seen.ending
    }
}

impl Seen {
    const fn nothing() -> Self {
        Self { usage: None, contents: 0, ending: Ending::Truncated }
    }
}

impl StreamWatch {
    /// True where an event was too long.
    fn feed(&mut self, chunk: &[u8], seen: &mut Seen) -> bool {
        let Self { splitter, words } = self;
        splitter
            .feed(chunk, |event| {
                words.note(event, seen);
                Ok(())
            })
            .is_err()
    }
}

/// The literals that tell events apart, ready to be searched for.
///
/// Inside a text every quote is escaped, so that a literal with its quotes can only be a name or a whole
/// value, never part of what the model says.
#[derive(Debug)]
struct Words {
    endpoint: Endpoint,
    usage: Finder<'static>,
    content: Finder<'static>,
    others: [Finder<'static>; 4],
    error: Finder<'static>,
}

impl Words {
    fn of(endpoint: Endpoint) -> Self {
        let others = ["\"tool_calls\"", "\"reasoning_content\"", "\"reasoning\"", "\"refusal\""];
        Self {
            endpoint,
            usage: Finder::new("\"usage\""),
            content: Finder::new("\"content\""),
            others: others.map(Finder::new),
            error: Finder::new("\"error\""),
        }
    }

    fn note(&self, event: &[u8], seen: &mut Seen) {
        match self.endpoint {
            Endpoint::Messages => self.note_message_event(event, seen),
            Endpoint::Responses => self.note_response_event(event, seen),
            Endpoint::Chat | Endpoint::Embeddings => self.note_chunk(event, seen),
        }
    }

    fn note_chunk(&self, event: &[u8], seen: &mut Seen) {
        if self.has_content(event) {
            seen.contents += 1;
        } else if is_done(event) {
            seen.ending = Ending::Finished;
        } else if value_after(&self.error, event).is_some_and(|value| value.starts_with(b"{")) {
            seen.ending = Ending::Failed;
        }
        if value_after(&self.usage, event).is_some_and(|value| value.starts_with(b"{")) {
            let chunk = parse::<OpenAiUsage>(event).and_then(|chunk| chunk.usage);
            seen.usage = chunk.map(Usage::from).or(seen.usage);
        }
    }

    fn has_content(&self, event: &[u8]) -> bool {
        let text = |value: &[u8]| matches!(value, [b'"', second, ..] if *second != b'"');
        let list = |value: &[u8]| value.starts_with(b"[");
        value_after(&self.content, event).is_some_and(text)
            || self
                .others
                .iter()
                .any(|word| value_after(word, event).is_some_and(|it| text(it) || list(it)))
    }

    fn note_message_event(&self, event: &[u8], seen: &mut Seen) {
        match kind(event) {
            b"content_block_delta" => seen.contents += 1,
            b"message_stop" => seen.ending = Ending::Finished,
            b"error" => seen.ending = Ending::Failed,
            _ if self.usage.find(event).is_some() => {
                let Some(event) = parse::<AnthropicUsage>(event) else { return };
                let inner = event.message.and_then(|message| message.usage);
                for usage in [inner, event.usage].into_iter().flatten() {
                    seen.usage.get_or_insert_default().update(usage);
                }
            }
            _ => {}
        }
    }

    fn note_response_event(&self, event: &[u8], seen: &mut Seen) {
        match kind(event) {
            b"response.completed" | b"response.incomplete" => seen.ending = Ending::Finished,
            b"response.failed" | b"error" => seen.ending = Ending::Failed,
            kind if kind.ends_with(b".delta") => seen.contents += 1,
            _ => {}
        }
        if value_after(&self.usage, event).is_some_and(|value| value.starts_with(b"{")) {
            let usage = parse::<ResponsesUsage>(event).and_then(|event| event.response?.usage);
            seen.usage = usage.map(Usage::from).or(seen.usage);
        }
    }
}

/// `data: [DONE]`, the last event of a stream of chunks.
fn is_done(event: &[u8]) -> bool {
    Event::read(event).is_some_and(|event| event.data.trim_ascii() == b"[DONE]")
}

/// The kind of a named event: from its first line, or else from `type`, which is the first member
/// wherever there are no names.
fn kind(event: &[u8]) -> &[u8] {
    if let Some(name) = event.strip_prefix(b"event:") {
        let end = memchr::memchr(b'\n', name).unwrap_or(name.len());
        return name[..end].trim_ascii();
    }
    let found = memchr::memmem::find(event, b"\"type\"").and_then(|at| value_at(event, at + 6));
    let Some([b'"', name @ ..]) = found else { return b"" };
    &name[..memchr::memchr(b'"', name).unwrap_or(name.len())]
}

/// The bytes from the value on of the first member of that name.
fn value_after<'e>(name: &Finder<'_>, event: &'e [u8]) -> Option<&'e [u8]> {
    let at = name.find(event)?;
    value_at(event, at + name.needle().len())
}

fn value_at(event: &[u8], after_name: usize) -> Option<&[u8]> {
    let rest = event.get(after_name..)?.trim_ascii_start().strip_prefix(b":")?;
    Some(rest.trim_ascii_start())
}

fn parse<T: for<'de> Deserialize<'de>>(event: &[u8]) -> Option<T> {
    serde_json::from_slice(&Event::read(event)?.data).ok()
}

#[derive(Deserialize)]
struct OpenAiUsage {
    usage: Option<openai::Usage>,
}

#[derive(Deserialize)]
struct AnthropicUsage {
    message: Option<Inner<anthropic::Usage>>,
    usage: Option<anthropic::Usage>,
}

#[derive(Deserialize)]
struct ResponsesUsage {
    response: Option<Inner<openai::ResponsesUsage>>,
}

#[derive(Deserialize)]
struct Inner<U> {
    usage: Option<U>,
}

#[cfg(test)]
mod tests;
