//! What every prompt is made of.

use std::sync::Arc;

use plimsoll_measure::{Rng, Seed};
use plimsoll_protocol::Text;

use crate::gauge::Gauge;
use crate::id::ConversationId;
use crate::lexicon::{CACHE_BLOCK, Lexicon, WORD_BYTES};

/// Bytes of the marker that makes a prompt unique: `[`, a UUID, `]` and two blanks, which is 10 tokens
/// by the estimate of four bytes per token.
const MARKER: usize = 40;

/// Words, a way to count their tokens, and a seed.
#[derive(Debug)]
pub(crate) struct Materials {
    lexicon: Lexicon,
    gauge: Gauge,
    seed: Seed,
}

/// What stands before the first text of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    /// A prefix that other conversations share, with its length in tokens. It comes first of all, so
    /// that the sharing stays visible.
    pub(crate) prefix: Option<(Rng, u32)>,
    /// The id that makes the rest unique.
    pub(crate) marker: Option<ConversationId>,
}

/// One text of a prompt.
#[derive(Debug)]
pub(crate) enum Speech<'a> {
    /// As it is written.
    Text(&'a Arc<str>),
    /// Synthetic text of so many tokens, the marker included.
    Words(Rng, u32),
    /// Synthetic text of so many tokens, made of cached blocks.
    Blocks(&'a [u64], u32),
}

impl Materials {
    pub(crate) fn new(words: &[&'static str], gauge: Gauge, seed: Seed) -> Self {
        Self { lexicon: Lexicon::new(words, seed), gauge, seed }
    }

    /// Puts a text together: prefix, marker, speech.
    pub(crate) fn say(&self, opening: &Opening, speech: &Speech<'_>) -> Text {
        let mut text = Text::new();
        if let Some((draw, tokens)) = &opening.prefix {
            self.lexicon.push(draw.clone(), *tokens as usize, &mut text);
        }
        let mark = opening.marker.as_ref();
        match speech {
            Speech::Text(line) => {
                if let Some(id) = mark {
                    push_marker(id, MARKER, text.end());
                }
                text.share(Arc::clone(line));
            }
            Speech::Words(draw, tokens) => {
                let tokens = *tokens as usize;
                text.end().reserve(MARKER + Lexicon::fresh_bytes(tokens));
                let spent = mark.map_or(0, |id| self.mark(id, tokens, &mut text));
                let least = usize::from(text.is_empty() && tokens > 0);
                let words = self.gauge.words(tokens - spent).max(least);
                self.lexicon.push(draw.clone(), words, &mut text);
            }
            Speech::Blocks(ids, tokens) => self.blocks(ids, *tokens as usize, &mut text),
        }
        text
    }

    /// Adds the longest marker that fits into a budget of tokens, and tells its tokens.
    fn mark(&self, id: &ConversationId, budget: usize, text: &mut Text) -> usize {
        let end = text.end();
        let start = end.len();
        for length in (WORD_BYTES..=MARKER).rev().step_by(WORD_BYTES) {
            push_marker(id, length, end);
            let tokens = self.gauge.beginning(&end[start..]);
            if tokens <= budget {
                return tokens;
            }
            end.truncate(start);
        }
        0
    }

    /// Equal ids give equal text.
    fn blocks(&self, ids: &[u64], tokens: usize, text: &mut Text) {
        let mut left = self.gauge.words(tokens);
        for id in ids {
            let count = left.min(CACHE_BLOCK);
            self.lexicon.push_cache_block(self.seed.rng("cached block", *id), count, text);
            left -= count;
        }
    }
}

/// The id in brackets where there is room for it, else as many of its digits as fit, and a blank.
fn push_marker(id: &ConversationId, length: usize, text: &mut String) {
    let parts = match length {
        MARKER => ["[", id.as_str(), "]  "],
        short => ["", &id.as_str()[..short - 1], " "],
    };
    for part in parts {
        text.push_str(part);
    }
}
