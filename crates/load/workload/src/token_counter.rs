//! Counts the tokens of prompts: a word each, or with a tokenizer file.

mod measured;

use std::path::Path;

use measured::MeasuredTokenizer;

use crate::error::WorkloadError;

/// Counts tokens.
#[derive(Debug, Default)]
pub(crate) enum TokenCounter {
    /// One token for every word.
    #[default]
    Estimate,
    /// As a tokenizer counts.
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
