//! How many tokens a text has.

use std::path::Path;

use plimsoll_measure::Seed;
use plimsoll_protocol::Text;
use tokenizers::Tokenizer;

use crate::error::WorkloadError;
use crate::lexicon::{Lexicon, all};

/// With fewer words than this, prompts would hardly differ.
const FEWEST_WORDS: usize = 32;

/// Counts tokens: by the estimate of four bytes per token, or with a tokenizer.
///
/// No prompt is tokenized as a whole while a run is under way: that would take longer than sending it.
/// Instead, only words are used that are one token each whatever stands before them, which is
/// checked when the tokenizer is loaded; so the tokens of a text are those of its beginning, one for
/// each word, and a fixed number at the end (many tokenizers count the blank at the end as one more).
#[derive(Debug, Default)]
pub(crate) struct Gauge(Option<Measured>);

#[derive(Debug)]
struct Measured {
    tokenizer: Tokenizer,
    /// A word, to count beginnings in the place where they stand.
    probe: &'static str,
    /// Tokens at the end of a text beyond those of its words.
    tail: usize,
}

impl Gauge {
    /// Loads a tokenizer, and keeps of the vocabulary the words that are one token in it.
    ///
    /// # Errors
    /// The file cannot be read as a tokenizer, or does not count our words one by one.
    pub(crate) fn load(file: &Path) -> Result<(Self, Vec<&'static str>), WorkloadError> {
        let refuse = |cause: String| WorkloadError::Tokenizer { file: file.to_owned(), cause };
        let mut tokenizer =
            Tokenizer::from_file(file).map_err(|cause| refuse(cause.to_string()))?;
        // Both are settings for models, and would falsify every count.
        tokenizer.with_truncation(None).map_err(|cause| refuse(cause.to_string()))?;
        tokenizer.with_padding(None);
        Self::measure(tokenizer).map_err(refuse)
    }

    fn measure(tokenizer: Tokenizer) -> Result<(Self, Vec<&'static str>), String> {
        let count = |text: &str| count(&tokenizer, text);
        let few = || {
            format!(
                "counts fewer than {FEWEST_WORDS} of the words of synthetic text as one token each"
            )
        };
        // Most words agree on what a second one costs beside the first; the rest are left out.
        let tail = all().map(|word| count(word).saturating_sub(1)).min().ok_or_else(few)?;
        let single = |word: &&str| {
            count(word) == 1 + tail && count(&format!("{word}{word}{word}")) == 3 + tail
        };
        let words: Vec<_> = all().filter(single).collect();
        let probe =
            words.first().copied().filter(|_| words.len() >= FEWEST_WORDS).ok_or_else(few)?;
        let mut sample = Text::new();
        Lexicon::new(&words, Seed(0)).push(Seed(0).rng("sample", 0), 2_000, &mut sample);
        if count(&sample.to_string()) != 2_000 + tail {
            return Err("counts words in a text otherwise than alone".to_owned());
        }
        Ok((Self(Some(Measured { tokenizer, probe, tail })), words))
    }

    /// Tokens of a beginning that words follow.
    pub(crate) fn beginning(&self, text: &str) -> usize {
        self.0.as_ref().map_or_else(|| text.len().div_ceil(4), |measured| measured.beginning(text))
    }

    /// The number of words at the end of a text that make up `tokens`.
    pub(crate) fn words(&self, tokens: usize) -> usize {
        tokens.saturating_sub(self.0.as_ref().map_or(0, |measured| measured.tail))
    }
}

impl Measured {
    fn beginning(&self, text: &str) -> usize {
        let with = count(&self.tokenizer, &format!("{text}{}", self.probe));
        with.saturating_sub(1 + self.tail)
    }
}

/// A text that a tokenizer cannot encode counts as empty: [`Gauge::measure`] finds such tokenizers.
fn count(tokenizer: &Tokenizer, text: &str) -> usize {
    tokenizer.encode_fast(text, false).map_or(0, |encoding| encoding.len())
}
