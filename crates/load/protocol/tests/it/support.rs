//! Decodes responses into readable lines. The fuzz target `decoder` uses it too.

use plimsoll_measure::{Outcome, TokenCount, TokenSource, Usage};
use plimsoll_protocol::{Decoder, DecoderOptions, Delta, DeltaKind, Dialect, ErrorDetail};

pub(crate) const EVENTS: Option<&str> = Some("text/event-stream; charset=utf-8");
pub(crate) const JSON: Option<&str> = Some("application/json");

/// The complete result of decoding one response.
#[derive(Debug, PartialEq)]
pub(crate) struct Read {
    /// The deltas in order, followed by finish reason, reported usage and error, if any.
    pub(crate) events: Vec<String>,
    pub(crate) outcome: Outcome,
    pub(crate) text: String,
    pub(crate) usage: String,
    pub(crate) detail: Option<ErrorDetail>,
    pub(crate) received: u64,
}

/// A decoder with small limits that keeps the text.
pub(crate) fn decoder(dialect: Dialect, stream: bool) -> Decoder {
    let options = DecoderOptions {
        keep_text: true,
        max_event_bytes: 4_000,
        max_body_bytes: 20_000,
        ..DecoderOptions::default()
    };
    Decoder::new(dialect, stream, options)
}

/// Reads a body that arrives in the given pieces.
pub(crate) fn read<'a>(
    decoder: &mut Decoder,
    head: (u16, Option<&str>),
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Read {
    decoder.head(head.0, head.1.map(str::as_bytes));
    read_body(decoder, pieces)
}

/// Reads the body of a response whose head has been read.
pub(crate) fn read_body<'a>(
    decoder: &mut Decoder,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Read {
    let mut events = Vec::new();
    for piece in pieces {
        decoder.next_read();
        decoder.feed(piece, &mut |delta| events.push(line(delta)));
    }
    let outcome = decoder.finish();
    events.extend(decoder.finish_reason().map(|reason| format!("finish: {reason}")));
    events.extend(reported(decoder.usage()).map(|tokens| format!("usage: {}", usage(tokens))));
    events.extend(decoder.failure().map(|class| {
        let message = decoder.error_detail().map(|detail| detail.message.as_str());
        format!("error: {}: {}", class.name(), message.unwrap_or("no detail"))
    }));
    Read {
        events,
        outcome,
        text: decoder.text().to_owned(),
        usage: usage(decoder.usage()),
        detail: decoder.error_detail().cloned(),
        received: decoder.received(),
    }
}

fn line(delta: Delta<'_>) -> String {
    let kind = match delta.kind {
        DeltaKind::Text => "text",
        DeltaKind::Reasoning => "reasoning",
        DeltaKind::ToolCall => "tool",
    };
    format!("{kind}: {}", delta.text)
}

/// The usage, if the target has reported any part of it.
fn reported(usage: Usage) -> Option<Usage> {
    let counts = [usage.prompt, usage.completion];
    counts.iter().any(|count| count.source == TokenSource::Reported).then_some(usage)
}

/// Formats as `9 in, ~3 out, 4 cached, 1 reasoning`; `~` marks an estimate, `?` an unknown count.
pub(crate) fn usage(usage: Usage) -> String {
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
