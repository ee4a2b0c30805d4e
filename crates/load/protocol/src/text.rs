//! Texts made of pieces.

use std::sync::Arc;

/// A text made of pieces, so that a piece shared by many prompts is stored once.
///
/// The text is the concatenation of its pieces.
#[derive(Clone, Debug, Default)]
pub struct Text {
    /// Shared pieces, each with the text before it.
    shared: Vec<(String, Arc<str>)>,
    /// The text after the shared pieces.
    end: String,
    /// Whether any part may need an escape in JSON.
    may_need_escape: bool,
}

impl Text {
    /// Creates an empty text.
    pub const fn new() -> Self {
        Self { shared: Vec::new(), end: String::new(), may_need_escape: false }
    }

    /// Appends a piece shared with other texts.
    pub fn share(&mut self, piece: Arc<str>) {
        self.may_need_escape = true;
        self.share_plain(piece);
    }

    /// The same for a piece that needs no escapes in JSON.
    pub fn share_plain(&mut self, piece: Arc<str>) {
        self.shared.push((std::mem::take(&mut self.end), piece));
    }

    /// The end of the text, for appending text that is not shared.
    pub const fn end(&mut self) -> &mut String {
        self.may_need_escape = true;
        &mut self.end
    }

    /// The same for text that needs no escapes in JSON.
    pub const fn plain_end(&mut self) -> &mut String {
        &mut self.end
    }

    /// Whether all parts were appended as text that needs no escapes in JSON.
    pub(crate) const fn is_plain(&self) -> bool {
        !self.may_need_escape
    }

    /// The pieces in order, without empty ones.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        let shared = self.shared.iter().flat_map(|(own, shared)| [own.as_str(), shared]);
        shared.chain([self.end.as_str()]).filter(|piece| !piece.is_empty())
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.pieces().map(str::len).sum()
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.pieces().next().is_none()
    }
}

/// Texts are equal if they consist of the same pieces.
impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        (&self.shared, &self.end) == (&other.shared, &other.end)
    }
}

impl Eq for Text {}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        let mut whole = Self::new();
        whole.end().push_str(text);
        whole
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pieces().try_for_each(|piece| f.write_str(piece))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_plain_until_something_else_joins_it() {
        let mut plain = Text::new();
        plain.plain_end().push_str("one ");
        plain.share_plain("two ".into());
        assert!(plain.is_plain());
        let (mut ended, mut shared) = (plain.clone(), plain);
        ended.end().push('"');
        shared.share("\"".into());
        assert!(!ended.is_plain() && !shared.is_plain() && !Text::from("").is_plain());
        assert_eq!(ended.to_string(), "one two \"");
    }
}
