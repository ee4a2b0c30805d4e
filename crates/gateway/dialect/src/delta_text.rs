//! Changing the text of a passing stream, as the scrubbing of personal data does.

use std::borrow::Cow;

use crate::dialect::Dialect;
use crate::error::DialectError;
use crate::sse::{Event, Splitter};
use crate::wire::write_json;

mod anthropic;
mod openai;

/// What the caller of [`DeltaText`] is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'t> {
    /// The next piece of a text. The answer takes its place; it may be shorter, where some is held
    /// back, or longer, where held-back text is let go.
    Delta {
        /// Which text: the choice (OpenAI) or the content block (Anthropic). Texts of different lanes
        /// have nothing to do with each other.
        lane: u64,
        /// The piece.
        text: &'t str,
    },
    /// The text ends here. The answer is what was held back and is sent as one more delta, before the
    /// event that ends the text.
    End {
        /// Which text.
        lane: u64,
    },
}

impl Piece<'_> {
    /// Which text it belongs to.
    pub const fn lane(&self) -> u64 {
        match self {
            Self::Delta { lane, .. } | Self::End { lane } => *lane,
        }
    }
}

/// Rewrites the content deltas of a passing stream of chat completions or messages.
///
/// An event whose text does not change passes byte for byte; of others only the JSON string of the text
/// is replaced. Tool-call arguments, reasoning and streams of the Responses API pass unchanged. Events
/// that are not understood pass unchanged too: they are not ours to judge.
#[derive(Debug)]
pub struct DeltaText {
    splitter: Splitter,
    lanes: Lanes,
}

#[derive(Debug)]
enum Lanes {
    OpenAi(openai::Lanes),
    Anthropic(anthropic::Lanes),
}

impl DeltaText {
    /// For a stream of that dialect.
    pub fn new(dialect: Dialect) -> Self {
        let lanes = match dialect {
            Dialect::OpenAi => Lanes::OpenAi(openai::Lanes::default()),
            Dialect::Anthropic => Lanes::Anthropic(anthropic::Lanes::default()),
        };
        Self { splitter: Splitter::default(), lanes }
    }

    /// Takes the next bytes and appends to `out` the events that are complete now.
    ///
    /// # Errors
    /// [`DialectError::EventTooLong`]; the stream cannot go on then.
    pub fn feed(
        &mut self,
        chunk: &[u8],
        out: &mut Vec<u8>,
        mut change: impl FnMut(Piece<'_>) -> Cow<'_, str>,
    ) -> Result<(), DialectError> {
        let Self { splitter, lanes } = self;
        splitter.feed(chunk, |event| {
            let data = Event::read(event).map(|event| event.data);
            // Several data lines cannot be patched in place; no provider writes them.
            let Some(Cow::Borrowed(data)) = data else {
                out.extend_from_slice(event);
                return Ok(());
            };
            match lanes {
                Lanes::OpenAi(lanes) => lanes.event(event, data, out, &mut change),
                Lanes::Anthropic(lanes) => lanes.event(event, data, out, &mut change),
            }
        })
    }

    /// No more bytes will come. Lets go of what is still held back, which happens only where the stream
    /// was cut short, and then of the bytes of an unfinished event: they are dropped, as they may hold
    /// text that nobody looked at.
    ///
    /// # Errors
    /// [`DialectError::Truncated`] where an unfinished event was dropped.
    pub fn finish(
        &mut self,
        out: &mut Vec<u8>,
        mut change: impl FnMut(Piece<'_>) -> Cow<'_, str>,
    ) -> Result<(), DialectError> {
        match &mut self.lanes {
            Lanes::OpenAi(lanes) => lanes.end_all(out, &mut change)?,
            Lanes::Anthropic(lanes) => lanes.end_all(out, &mut change)?,
        }
        if self.splitter.rest().is_empty() { Ok(()) } else { Err(DialectError::Truncated) }
    }
}

/// The change, as the lanes are handed it.
type Change<'c> = dyn FnMut(Piece<'_>) -> Cow<'_, str> + 'c;

fn end(change: &mut Change<'_>, lane: u64) -> String {
    change(Piece::End { lane }).into_owned()
}

#[cfg(test)]
mod tests;
