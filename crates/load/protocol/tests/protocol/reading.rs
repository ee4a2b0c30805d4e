//! Answers read into lines that a person can compare. The fuzz target `decoder` uses it too.

use plimsoll_measure::{Outcome, TokenCount, TokenSource, Usage};
use plimsoll_protocol::{Decoder, DecoderOptions, DeltaKind, Dialect, WireEvent};

pub(crate) const EVENTS: Option<&str> = Some("text/event-stream; charset=utf-8");
pub(crate) const JSON: Option<&str> = Some("application/json");

/// All that a decoder says about one answer.
#[derive(Debug, PartialEq)]
pub(crate) struct Read {
    pub(crate) events: Vec<String>,
    pub(crate) outcome: Outcome,
    pub(crate) text: String,
    pub(crate) usage: String,
    pub(crate) detail: Option<plimsoll_protocol::ErrorDetail>,
    pub(crate) received: u64,
}

/// A decoder with small limits that keeps the text.
pub(crate) fn decoder(dialect: Dialect, stream: bool) -> Decoder {
    let options =
        DecoderOptions { keep_text: true, max_event_bytes: 4_000, max_body_bytes: 20_000 };
    Decoder::new(dialect, stream, options)
}

/// Reads a body that comes in the given pieces.
pub(crate) fn read<'a>(
    decoder: &mut Decoder,
    head: (u16, Option<&str>),
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Read {
    let mut events = Vec::new();
    let mut sink = |event: WireEvent<'_>| events.push(line(event));
    decoder.head(head.0, head.1);
    for piece in pieces {
        decoder.feed(piece, &mut sink);
    }
    let outcome = decoder.finish(&mut sink);
    Read {
        events,
        outcome,
        text: decoder.text().to_owned(),
        usage: usage(decoder.usage()),
        detail: decoder.error_detail().cloned(),
        received: decoder.received(),
    }
}

fn line(event: WireEvent<'_>) -> String {
    match event {
        WireEvent::Delta { kind: DeltaKind::Text, text } => format!("text: {text}"),
        WireEvent::Delta { kind: DeltaKind::Reasoning, text } => format!("reasoning: {text}"),
        WireEvent::Delta { kind: DeltaKind::ToolCall, text } => format!("tool: {text}"),
        WireEvent::Usage(tokens) => format!("usage: {}", usage(tokens)),
        WireEvent::Finish { reason } => format!("finish: {reason}"),
        WireEvent::Error { class, message } => format!("error: {}: {message}", class.name()),
    }
}

/// Like `9 in, ~3 out, 4 cached, 1 reasoning`; `~` marks an estimate, `?` an unknown count.
fn usage(usage: Usage) -> String {
    format!(
        "{} in, {} out, {} cached, {} reasoning",
        count(usage.prompt),
        count(usage.completion),
        usage.cached,
        usage.reasoning
    )
}

fn count(tokens: TokenCount) -> String {
    match tokens.source {
        TokenSource::Unknown => "?".to_owned(),
        TokenSource::Reported => tokens.count.to_string(),
        TokenSource::Estimated => format!("~{}", tokens.count),
    }
}
