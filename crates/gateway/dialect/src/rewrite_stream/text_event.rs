//! The interface between the rewriter of a stream and its caller.

use std::borrow::Cow;

/// An event in a text of the stream, passed to the callback of
/// [`StreamRewriter`](crate::StreamRewriter).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextEvent<'t> {
    /// The next part of a text. The callback returns its replacement: shorter if it holds text
    /// back, longer if it releases text that it held back.
    Delta {
        /// The index of the choice (OpenAI) or content block (Anthropic). Texts with different
        /// indices are independent.
        index: u64,
        /// The part.
        text: &'t str,
    },
    /// The text ends. The callback returns the text that it still holds back; it is sent as one
    /// more delta, before the event that ends the text.
    End {
        /// The index of the text.
        index: u64,
    },
}

impl TextEvent<'_> {
    /// The index of the text.
    pub const fn index(&self) -> u64 {
        match self {
            Self::Delta { index, .. } | Self::End { index } => *index,
        }
    }
}

/// The caller's callback.
pub(super) type Rewrite<'c> = dyn FnMut(TextEvent<'_>) -> Cow<'_, str> + 'c;

/// Ends a text and returns what was held back.
pub(super) fn end_text(rewrite: &mut Rewrite<'_>, index: u64) -> String {
    rewrite(TextEvent::End { index }).into_owned()
}
