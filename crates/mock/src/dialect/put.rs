//! Writing bytes.

use super::Piece;

/// The creation time of every answer: a constant, so that the same request always gives the same bytes.
pub(super) const CREATED: &str = "1735689600";

/// The name of the tool that is called.
pub(super) const TOOL: &str = "lookup";

/// Appends text and numbers, in a chain.
pub(super) trait Put {
    fn put(&mut self, text: impl AsRef<[u8]>) -> &mut Self;
    fn number(&mut self, number: impl itoa::Integer) -> &mut Self;
    /// Sixteen hexadecimal digits.
    fn hex(&mut self, number: u64) -> &mut Self;
}

impl Put for Vec<u8> {
    fn put(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        self.extend_from_slice(text.as_ref());
        self
    }

    fn number(&mut self, number: impl itoa::Integer) -> &mut Self {
        self.put(itoa::Buffer::new().format(number))
    }

    fn hex(&mut self, number: u64) -> &mut Self {
        let digit = |shift: u32| b"0123456789abcdef"[(number >> shift & 15) as usize];
        self.extend((0..16).rev().map(|place| digit(4 * place)));
        self
    }
}

/// A tool's arguments are an object with one text. Around the words, as parts of a JSON string:
const ARGUMENTS_OPEN: &str = r#"{\"query\":\""#;
const ARGUMENTS_CLOSE: &str = r#"\"}"#;

/// All arguments, escaped for a JSON string.
pub(super) fn arguments(text: &[u8]) -> Vec<u8> {
    [ARGUMENTS_OPEN.as_bytes(), text, ARGUMENTS_CLOSE.as_bytes()].concat()
}

/// The part of the arguments that one content event brings.
pub(super) fn put_fragment(piece: Piece<'_>, out: &mut Vec<u8>) {
    if piece.first {
        out.put(ARGUMENTS_OPEN);
    }
    out.put(piece.text);
    if piece.last {
        out.put(ARGUMENTS_CLOSE);
    }
}
