//! Appends text, numbers and tool arguments to a byte buffer.

use super::stream_encoder::Delta;

/// The creation time of every response: a constant, so that the same request always gives the same
/// bytes.
pub(super) const CREATED: &str = "1735689600";

/// The name of the called tool.
pub(super) const TOOL: &str = "lookup";

/// Chained appending of text and numbers.
pub(super) trait WriteExt {
    fn put(&mut self, text: impl AsRef<[u8]>) -> &mut Self;
    fn number(&mut self, number: impl itoa::Integer) -> &mut Self;
    /// Appends sixteen hexadecimal digits.
    fn hex(&mut self, number: u64) -> &mut Self;
}

impl WriteExt for Vec<u8> {
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

/// A tool's arguments are an object with one string. These enclose its words, escaped for a JSON
/// string.
const ARGUMENTS_OPEN: &str = r#"{\"query\":\""#;
const ARGUMENTS_CLOSE: &str = r#"\"}"#;

/// All arguments, escaped for a JSON string.
pub(super) fn arguments(text: &[u8]) -> Vec<u8> {
    [ARGUMENTS_OPEN.as_bytes(), text, ARGUMENTS_CLOSE.as_bytes()].concat()
}

/// Writes the part of the arguments that one delta carries.
pub(super) fn put_fragment(delta: Delta<'_>, out: &mut Vec<u8>) {
    if delta.first {
        out.put(ARGUMENTS_OPEN);
    }
    out.put(delta.text);
    if delta.last {
        out.put(ARGUMENTS_CLOSE);
    }
}
