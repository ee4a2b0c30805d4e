//! Rewrites the text of a stream as it passes, for example to redact personal data.

use std::borrow::Cow;

use crate::dialect::Dialect;
use crate::error::DialectError;
use crate::sse::{EventSplitter, SseEvent};

mod anthropic;
mod openai;
mod text_event;

pub use text_event::TextEvent;

/// Rewrites the content deltas of a stream of chat completions or messages.
///
/// An event whose text does not change passes byte for byte; in other events only the JSON string
/// of the text is replaced. Tool call arguments, reasoning, streams of the Responses API and
/// unknown events pass unchanged.
#[derive(Debug)]
pub struct StreamRewriter {
    splitter: EventSplitter,
    texts: OpenTexts,
}

/// The texts that have started and not ended.
#[derive(Debug)]
enum OpenTexts {
    OpenAi(openai::OpenTexts),
    Anthropic(anthropic::OpenTexts),
}

impl StreamRewriter {
    /// A rewriter for a stream of this dialect.
    pub fn new(dialect: Dialect) -> Self {
        let texts = match dialect {
            Dialect::OpenAi => OpenTexts::OpenAi(openai::OpenTexts::default()),
            Dialect::Anthropic => OpenTexts::Anthropic(anthropic::OpenTexts::default()),
        };
        Self { splitter: EventSplitter::default(), texts }
    }

    /// Takes the next bytes and appends the complete events to `out`.
    ///
    /// # Errors
    /// [`DialectError::EventTooLong`]; the stream cannot continue.
    pub fn feed(
        &mut self,
        chunk: &[u8],
        out: &mut Vec<u8>,
        mut rewrite: impl FnMut(TextEvent<'_>) -> Cow<'_, str>,
    ) -> Result<(), DialectError> {
        let Self { splitter, texts } = self;
        splitter.feed(chunk, |event| {
            let data = SseEvent::parse(event).map(|event| event.data);
            // Several data lines cannot be patched in place; no provider sends them.
            let Some(Cow::Borrowed(data)) = data else {
                out.extend_from_slice(event);
                return Ok(());
            };
            match texts {
                OpenTexts::OpenAi(texts) => texts.rewrite_event(event, data, out, &mut rewrite),
                OpenTexts::Anthropic(texts) => texts.rewrite_event(event, data, out, &mut rewrite),
            }
        })
    }

    /// Ends the stream. If it was cut short, this appends the text that is still held back. It
    /// drops the bytes of an incomplete event, because their text was not inspected.
    ///
    /// # Errors
    /// [`DialectError::Truncated`] if an incomplete event was dropped.
    pub fn finish(
        &mut self,
        out: &mut Vec<u8>,
        mut rewrite: impl FnMut(TextEvent<'_>) -> Cow<'_, str>,
    ) -> Result<(), DialectError> {
        match &mut self.texts {
            OpenTexts::OpenAi(texts) => texts.end_all(out, &mut rewrite)?,
            OpenTexts::Anthropic(texts) => texts.end_all(out, &mut rewrite)?,
        }
        if self.splitter.incomplete().is_empty() { Ok(()) } else { Err(DialectError::Truncated) }
    }
}

#[cfg(test)]
mod tests;
