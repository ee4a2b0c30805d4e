//! Builds prompts from a shared prefix, a unique marker and a text.

use std::sync::Arc;

use plimsoll_measure::{Rng, Seed};
use plimsoll_protocol::Text;

use crate::id::ConversationId;
use crate::synthetic_text::{CACHE_BLOCK, TextGenerator, WORD_BYTES};
use crate::token_counter::TokenCounter;

/// Bytes of the marker that makes a prompt unique: `[`, a UUID, `]` and two spaces. That is 10
/// tokens by the estimate of four bytes per token.
const MARKER_BYTES: usize = 40;

/// Builds the prompts of all conversations.
#[derive(Debug)]
pub(crate) struct PromptBuilder {
    generator: TextGenerator,
    counter: TokenCounter,
    seed: Seed,
}

/// The text before the first prompt of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Preamble {
    /// A prefix that other conversations share, with its length in tokens. It comes first, so that
    /// caches can recognise it.
    pub(crate) prefix: Option<(Rng, u32)>,
    /// The id at the start of shared text, the same in the whole run: its conversations share the
    /// text with one another, and not with those of earlier runs.
    pub(crate) run_marker: Option<Marker>,
    /// The id that makes the rest unique.
    pub(crate) marker: Option<Marker>,
}

/// An id that makes a text unique.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marker {
    pub(crate) id: ConversationId,
    /// In a comparison: the id whose tokens are counted, so that the texts for all targets have the
    /// same length. Else its own are.
    pub(crate) counted: Option<ConversationId>,
}

/// The main text of a prompt.
#[derive(Debug)]
pub(crate) enum PromptPart<'a> {
    /// A given text.
    Text(&'a Arc<str>),
    /// Synthetic text of this many tokens, the marker included.
    Words(Rng, u32),
    /// Synthetic text of this many tokens, made of the cached blocks with these ids.
    Blocks(&'a [u64], BlockSizes),
}

/// The length of a text that is made of blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockSizes {
    /// All tokens.
    pub(crate) tokens: u32,
    /// Tokens of a block, at most [`CACHE_BLOCK`].
    pub(crate) block: u32,
}

impl PromptBuilder {
    pub(crate) fn new(words: &[&'static str], counter: TokenCounter, seed: Seed) -> Self {
        Self { generator: TextGenerator::new(words, seed), counter, seed }
    }

    /// Builds a text: prefix, marker, part.
    pub(crate) fn build(&self, preamble: &Preamble, part: &PromptPart<'_>) -> Text {
        let mut text = Text::new();
        if let Some((rng, tokens)) = &preamble.prefix {
            let tokens = *tokens as usize;
            let spent = self.push_marker_of(preamble.run_marker.as_ref(), tokens, &mut text);
            self.generator.push(rng.clone(), tokens - spent, &mut text);
        }
        let marker = preamble.marker.as_ref();
        match part {
            PromptPart::Text(line) => {
                if let Some(marker) = marker {
                    push_marker(&marker.id, MARKER_BYTES, text.plain_end());
                }
                text.share(Arc::clone(line));
            }
            PromptPart::Words(rng, tokens) => {
                let tokens = *tokens as usize;
                text.plain_end().reserve(MARKER_BYTES + TextGenerator::fresh_bytes(tokens));
                let spent = self.push_marker_of(marker, tokens, &mut text);
                let min_words = usize::from(text.is_empty() && tokens > 0);
                let words = self.counter.words_for(tokens - spent).max(min_words);
                self.generator.push(rng.clone(), words, &mut text);
            }
            PromptPart::Blocks(ids, sizes) => {
                self.push_blocks(preamble.run_marker.as_ref(), ids, *sizes, &mut text);
            }
        }
        text
    }

    /// Appends a marker, if there is one, and returns its tokens.
    fn push_marker_of(&self, marker: Option<&Marker>, budget: usize, text: &mut Text) -> usize {
        marker.map_or(0, |marker| self.push_fitting_marker(marker, budget, text))
    }

    /// Appends the longest marker that fits into a budget of tokens, and returns its tokens.
    fn push_fitting_marker(&self, marker: &Marker, budget: usize, text: &mut Text) -> usize {
        let end = text.plain_end();
        let start = end.len();
        let counted = marker.counted.as_ref().unwrap_or(&marker.id);
        for length in (WORD_BYTES..=MARKER_BYTES).rev().step_by(WORD_BYTES) {
            push_marker(counted, length, end);
            let tokens = self.counter.count_before_words(&end[start..]);
            let fits = tokens <= budget;
            if fits && marker.counted.is_none() {
                return tokens;
            }
            end.truncate(start);
            if fits {
                push_marker(&marker.id, length, end);
                return tokens;
            }
        }
        0
    }

    /// Appends cached blocks. Equal ids give equal text. The marker takes words of the first block.
    fn push_blocks(
        &self,
        marker: Option<&Marker>,
        ids: &[u64],
        sizes: BlockSizes,
        text: &mut Text,
    ) {
        let (tokens, block) = (sizes.tokens as usize, (sizes.block as usize).min(CACHE_BLOCK));
        let spent = self.push_marker_of(marker, tokens.min(block), text);
        let mut left = self.counter.words_for(tokens - spent);
        let mut room = block - spent;
        for id in ids {
            let count = left.min(std::mem::replace(&mut room, block));
            self.generator.push_cache_block(self.seed.rng("cached block", *id), count, text);
            left -= count;
        }
    }
}

/// Appends the id in brackets if there is room for it, else as many of its digits as fit and a
/// space.
fn push_marker(id: &ConversationId, length: usize, text: &mut String) {
    let parts = match length {
        MARKER_BYTES => ["[", id.as_str(), "]  "],
        short => ["", &id.as_str()[..short - 1], " "],
    };
    for part in parts {
        text.push_str(part);
    }
}
