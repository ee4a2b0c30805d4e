//! Builds prompts from a shared prefix, a unique marker and a text.

use std::path::Path;
use std::sync::Arc;

use plimsoll_measure::{Rng, Seed};
use plimsoll_protocol::Text;
use tokenizers::Tokenizer;

use crate::error::WorkloadError;
use crate::id::ConversationId;
use crate::synthetic_text::{CACHE_BLOCK, MARKER_END, TextGenerator, WORD_BYTES, all_words};

/// Words of the marker that makes a prompt unique. They encode 40 bits of an id in one token each.
const MARKER_WORDS: usize = 5;

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
    /// The id at the start of shared text. It is the same in the whole run, so conversations share
    /// the text only within the run.
    pub(crate) run_marker: Option<ConversationId>,
    /// The id that makes the rest unique.
    pub(crate) marker: Option<ConversationId>,
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
            let spent = self.push_marker(preamble.run_marker.as_ref(), tokens, &mut text);
            self.generator.push(rng.clone(), tokens - spent, &mut text);
        }
        let marker = preamble.marker.as_ref();
        match part {
            PromptPart::Text(line) => {
                self.push_marker(marker, usize::MAX, &mut text);
                text.share(Arc::clone(line));
            }
            PromptPart::Words(rng, tokens) => {
                let tokens = *tokens as usize;
                text.plain_end().reserve(TextGenerator::fresh_bytes(tokens));
                let spent = self.push_marker(marker, tokens, &mut text);
                let min_words = usize::from(text.is_empty() && tokens > 0);
                match self.counter.words_for(tokens - spent).max(min_words).checked_sub(1) {
                    Some(before) => {
                        self.generator.push(rng.clone(), before, &mut text);
                        self.generator.push_last(rng.clone(), &mut text);
                    }
                    // The space after the marker.
                    None => drop(text.plain_end().pop()),
                }
            }
            PromptPart::Blocks(ids, sizes) => {
                self.push_blocks(preamble.run_marker.as_ref(), ids, *sizes, &mut text);
            }
        }
        text
    }

    /// Appends a marker, if there is one, or as many of its words as the tokens allow, and returns
    /// its tokens.
    fn push_marker(
        &self,
        marker: Option<&ConversationId>,
        budget: usize,
        text: &mut Text,
    ) -> usize {
        let Some(id) = marker else { return 0 };
        let end_tokens = self.counter.marker_end_tokens();
        let words = MARKER_WORDS.min(budget);
        self.generator.push_chosen(id.numbers().take(words), text.plain_end());
        if MARKER_WORDS + end_tokens > budget {
            return words;
        }
        text.plain_end().push_str(MARKER_END);
        MARKER_WORDS + end_tokens
    }

    /// Appends cached blocks. Equal ids give equal text. The marker takes words of the first block.
    fn push_blocks(
        &self,
        marker: Option<&ConversationId>,
        ids: &[u64],
        sizes: BlockSizes,
        text: &mut Text,
    ) {
        let (tokens, block) = (sizes.tokens as usize, (sizes.block as usize).min(CACHE_BLOCK));
        let spent = self.push_marker(marker, tokens.min(block), text);
        let mut left = self.counter.words_for(tokens - spent);
        let mut room = block - spent;
        for id in ids {
            let count = left.min(std::mem::replace(&mut room, block));
            let is_end = count == left;
            let rng = self.seed.rng("cached block", *id);
            self.generator.push_cache_block(rng, count, is_end, text);
            left -= count;
            if is_end {
                break;
            }
        }
    }
}
/// The beginning of the id of the conversation whose marker is the last one in a text:
/// `01234567-89`.
pub fn marked_id(text: &str) -> Option<String> {
    let words: Vec<&str> = all_words().collect();
    let markers = text.match_indices(MARKER_END).filter_map(|(end, _)| {
        let from = end.checked_sub(MARKER_WORDS * WORD_BYTES)?;
        let marker = text.get(from..end)?.as_bytes().chunks(WORD_BYTES);
        let bytes = marker.map(|word| words.iter().position(|known| known.as_bytes() == word));
        let digits: String =
            bytes.map(|byte| Some(format!("{:02x}", byte?))).collect::<Option<_>>()?;
        let (group, rest) = digits.split_at(8);
        Some(format!("{group}-{rest}"))
    });
    markers.last()
}

// Counts the tokens of prompts: a word each, or with a tokenizer file.

/// Counts tokens.
#[derive(Debug, Default)]
pub(crate) enum TokenCounter {
    /// One token for every word.
    #[default]
    Estimate,
    /// The count of a tokenizer.
    Tokenizer(Box<MeasuredTokenizer>),
}

impl TokenCounter {
    /// Loads a tokenizer file. Also returns the words of synthetic text that are one token in it.
    ///
    /// # Errors
    /// The file cannot be read as a tokenizer, or does not count our words one by one.
    pub(crate) fn load(file: &Path) -> Result<(Self, Vec<&'static str>), WorkloadError> {
        let (tokenizer, words) = MeasuredTokenizer::load(file)?;
        Ok((Self::Tokenizer(Box::new(tokenizer)), words))
    }

    /// Tokens of [`crate::synthetic_text::MARKER_END`] between words.
    pub(crate) fn marker_end_tokens(&self) -> usize {
        match self {
            Self::Estimate => 1,
            Self::Tokenizer(tokenizer) => tokenizer.marker_end_tokens(),
        }
    }

    /// Number of words that make up `tokens` at the end of a text.
    pub(crate) fn words_for(&self, tokens: usize) -> usize {
        match self {
            Self::Estimate => tokens,
            Self::Tokenizer(tokenizer) => tokens.saturating_sub(tokenizer.trailing_tokens),
        }
    }
}

/// With fewer words than this, prompts would hardly differ.
const MIN_WORDS: usize = 32;

/// A tokenizer, and the words that are a single token in any context.
///
/// Tokenizing a whole prompt takes longer than sending it. Only such words are used instead, which
/// is checked when the tokenizer is loaded. The tokens of a text are then
/// one for each word, and a fixed number at the end, if the tokenizer adds any.
///
/// It is measured when it is loaded, so no prompt is tokenized during a run.
#[derive(Debug)]
pub(crate) struct MeasuredTokenizer {
    /// Tokens of the end of a marker.
    marker_end_tokens: usize,
    /// Additional tokens at the end of a text.
    trailing_tokens: usize,
}

impl MeasuredTokenizer {
    /// Loads a tokenizer file. Also returns the words of synthetic text that are one token in it.
    ///
    /// # Errors
    /// The file cannot be read as a tokenizer, or does not count our words one by one.
    pub(crate) fn load(file: &Path) -> Result<(Self, Vec<&'static str>), WorkloadError> {
        let error = |cause: String| WorkloadError::Tokenizer { file: file.to_owned(), cause };
        let mut tokenizer = Tokenizer::from_file(file).map_err(|cause| error(cause.to_string()))?;
        // Both are settings for models, and would falsify every count.
        tokenizer.with_truncation(None).map_err(|cause| error(cause.to_string()))?;
        tokenizer.with_padding(None);
        Self::measure(&tokenizer).map_err(error)
    }

    fn measure(tokenizer: &Tokenizer) -> Result<(Self, Vec<&'static str>), String> {
        let count = |text: &str| count(tokenizer, text.trim_end());
        let too_few = || {
            format!(
                "counts fewer than {MIN_WORDS} of the words of synthetic text as one token each"
            )
        };
        // Most words agree on the tokens beyond their own; the others are left out.
        let trailing_tokens =
            all_words().map(|word| count(word).saturating_sub(1)).min().ok_or_else(too_few)?;
        let words: Vec<_> = all_words()
            .filter(|word: &&str| {
                count(word) == 1 + trailing_tokens
                    && count(&format!("{word}{word}{word}")) == 3 + trailing_tokens
            })
            .collect();
        let first = words.first().filter(|_| words.len() >= MIN_WORDS).ok_or_else(too_few)?;
        let marked = count(&format!("{first}{MARKER_END}{first}"));
        let marker_end_tokens = marked.saturating_sub(2 + trailing_tokens);
        let mut sample = Text::new();
        TextGenerator::new(&words, Seed(0)).push(Seed(0).rng("sample", 0), 2_000, &mut sample);
        if count(&sample.to_string()) != 2_000 + trailing_tokens {
            return Err("counts words in a text differently from single words".to_owned());
        }
        Ok((Self { marker_end_tokens, trailing_tokens }, words))
    }

    pub(crate) const fn marker_end_tokens(&self) -> usize {
        self.marker_end_tokens
    }
}

/// Tokens of a text. One that the tokenizer cannot encode counts as empty:
/// [`MeasuredTokenizer::measure`] rejects such tokenizers.
fn count(tokenizer: &Tokenizer, text: &str) -> usize {
    tokenizer.encode_fast(text, false).map_or(0, |encoding| encoding.len())
}
