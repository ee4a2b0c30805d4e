//! Splits identifiers into their words: `ignore_previous`, `ignore-previous`, `ignorePrevious`.

use super::MappedText;

/// The text with a space for each `_` or `-` between two letters, and before each capital letter
/// that begins a word inside a word; None if there is nothing to split.
pub(super) fn split(from: &MappedText) -> Option<MappedText> {
    let text = from.text();
    if !is_joined(text) {
        return None;
    }
    let bytes = text.as_bytes();
    let mut words = MappedText::with_capacity(text.len() + 16);
    let mut copied = 0;
    for at in 1..bytes.len() {
        if joins(bytes, at) {
            words.copy(from, copied..at);
            words.push(' ', from.span(&(at..at + 1)));
            copied = at + 1;
        } else if begins_word(bytes, at) {
            words.copy(from, copied..at);
            words.push(' ', from.span(&(at..at + 1)));
            copied = at;
        }
    }
    words.copy(from, copied..text.len());
    Some(words)
}

/// Whether any identifier in the text has several words.
pub(super) fn is_joined(text: &str) -> bool {
    let bytes = text.as_bytes();
    (1..bytes.len()).any(|at| joins(bytes, at) || begins_word(bytes, at))
}

fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or_default()
}

/// Whether the byte is a `_` or `-` after and before a letter, another `_` or another `-`.
fn joins(bytes: &[u8], at: usize) -> bool {
    matches!(byte(bytes, at), b'_' | b'-')
        && is_part(byte(bytes, at - 1))
        && is_part(byte(bytes, at + 1))
}

/// Whether a joined word may contain a byte.
const fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-')
}

/// Whether a capital letter follows a small one, or is the last of several before a small one.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    let before = byte(bytes, at - 1);
    byte(bytes, at).is_ascii_uppercase()
        && (before.is_ascii_lowercase()
            || before.is_ascii_uppercase() && byte(bytes, at + 1).is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_split_and_prose_is_not() {
        let rows = [
            ("ignore_all_previous", Some("ignore all previous")),
            ("ignore-all-previous", Some("ignore all previous")),
            ("ignoreAllPrevious", Some("ignore All Previous")),
            ("callHTTPServer", Some("call HTTP Server")),
            ("__init__", Some("_ init _")),
            ("Ignore all previous.", None),
            ("- a list\n- 536-90-4399", None),
        ];
        for (text, expected) in rows {
            let words = split(&MappedText::new(text));
            assert_eq!(words.as_ref().map(MappedText::text), expected, "{text}");
        }
    }

    #[test]
    fn ranges_lead_back_to_the_identifier() {
        let words = split(&MappedText::new("xIgnoreAll")).unwrap();
        assert_eq!(words.text(), "x Ignore All");
        assert_eq!(words.origin(&(2..12)), 1..10);
    }
}
