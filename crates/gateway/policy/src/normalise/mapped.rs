//! A text that remembers where each of its bytes came from.

use std::ops::Range;

/// A text made from another one, with the range of original bytes behind each byte.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mapped {
    text: String,
    /// As long as `text`: begin and end in the original. Neither ever decreases.
    origins: Vec<(usize, usize)>,
}

impl Mapped {
    /// The original itself.
    pub(crate) fn of(text: &str) -> Self {
        let mut mapped = Self::with_capacity(text.len());
        for (at, character) in text.char_indices() {
            mapped.push(character, (at, at + character.len_utf8()));
        }
        mapped
    }

    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), origins: Vec::with_capacity(bytes) }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Appends a character that was made from `origin`.
    pub(crate) fn push(&mut self, character: char, origin: (usize, usize)) {
        self.text.push(character);
        self.origins.resize(self.text.len(), origin);
    }

    /// Appends a part of another text unchanged. The range must be on character boundaries.
    pub(crate) fn copy(&mut self, from: &Self, range: Range<usize>) {
        self.text.push_str(from.text.get(range.clone()).unwrap_or_default());
        self.origins.extend_from_slice(from.origins.get(range).unwrap_or_default());
    }

    /// The range in the original behind a range of this text: what has the same outer bounds.
    pub(crate) fn origin(&self, range: &Range<usize>) -> Range<usize> {
        let span = self.origins.get(range.clone()).unwrap_or_default();
        match (span.first(), span.last()) {
            (Some(first), Some(last)) => first.0..last.1,
            _ => 0..0,
        }
    }

    /// As [`Self::origin`], in the form that [`Self::push`] takes.
    pub(crate) fn span(&self, range: &Range<usize>) -> (usize, usize) {
        let origin = self.origin(range);
        (origin.start, origin.end)
    }
}
