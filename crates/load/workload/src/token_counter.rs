//! Counts the tokens of prompts: a word each, or with a tokenizer file.

use std::path::Path;

use plimsoll_measure::Seed;
use plimsoll_protocol::Text;
use tokenizers::Tokenizer;

use crate::error::WorkloadError;
use crate::synthetic_text::{MARKER_END, TextGenerator, all_words};

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
            Self::Tokenizer(tokenizer) => tokens.saturating_sub(tokenizer.trailing_tokens()),
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
            return Err("counts words inside a text differently than alone".to_owned());
        }
        Ok((Self { marker_end_tokens, trailing_tokens }, words))
    }

    pub(crate) const fn marker_end_tokens(&self) -> usize {
        self.marker_end_tokens
    }

    pub(crate) const fn trailing_tokens(&self) -> usize {
        self.trailing_tokens
    }
}

/// Tokens of a text. One that the tokenizer cannot encode counts as empty:
/// [`MeasuredTokenizer::measure`] rejects such tokenizers.
fn count(tokenizer: &Tokenizer, text: &str) -> usize {
    tokenizer.encode_fast(text, false).map_or(0, |encoding| encoding.len())
}
