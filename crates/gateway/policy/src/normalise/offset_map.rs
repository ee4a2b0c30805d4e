//! Text that maps each of its bytes to a range of the original.

use std::ops::Range;

/// A transformed text and, for each byte, the range of original bytes behind it.
#[derive(Clone, Debug, Default)]
pub(crate) struct MappedText {
    text: String,
    /// For each byte of `text`: start and end in the original. Both are ascending.
    origins: Vec<(usize, usize)>,
}

impl MappedText {
    /// The original itself.
    pub(crate) fn new(text: &str) -> Self {
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

    /// Appends a character that replaces `origin`.
    pub(crate) fn push(&mut self, character: char, origin: (usize, usize)) {
        self.text.push(character);
        self.origins.resize(self.text.len(), origin);
    }

    /// Appends a part of another text unchanged. The range must be on character boundaries.
    pub(crate) fn copy(&mut self, from: &Self, range: Range<usize>) {
        self.text.push_str(from.text.get(range.clone()).unwrap_or_default());
        self.origins.extend_from_slice(from.origins.get(range).unwrap_or_default());
    }

    /// The range of the original behind a range of this text.
    pub(crate) fn origin(&self, range: &Range<usize>) -> Range<usize> {
        let span = self.origins.get(range.clone()).unwrap_or_default();
        match (span.first(), span.last()) {
            (Some(first), Some(last)) => first.0..last.1,
            _ => 0..0,
        }
    }

    /// Like [`Self::origin`], as [`Self::push`] takes it.
    pub(crate) fn span(&self, range: &Range<usize>) -> (usize, usize) {
        let origin = self.origin(range);
        (origin.start, origin.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_map_back_to_the_original() {
        // "a%41b" with the escape decoded.
        let original = MappedText::new("a%41b");
        let mut decoded = MappedText::with_capacity(3);
        decoded.copy(&original, 0..1);
        decoded.push('A', original.span(&(1..4)));
        decoded.copy(&original, 4..5);
        assert_eq!(decoded.text(), "aAb");
        assert_eq!(decoded.origin(&(0..1)), 0..1);
        assert_eq!(decoded.origin(&(1..2)), 1..4);
        assert_eq!(decoded.origin(&(1..3)), 1..5);
        assert_eq!(decoded.origin(&(3..3)), 0..0, "an empty range has no origin");
        assert_eq!(decoded.origin(&(2..9)), 0..0, "neither has one beyond the end");
    }

    #[test]
    fn every_byte_of_a_character_maps_to_the_whole_character() {
        let text = MappedText::new("xé");
        assert_eq!(text.origin(&(1..2)), 1..3);
        assert_eq!(text.origin(&(2..3)), 1..3);
    }
}
