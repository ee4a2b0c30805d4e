//! Appends text, numbers and tool arguments to a byte buffer.

/// The creation time of every response: a constant, so that the same request always gives the same
/// bytes.
pub(super) const CREATED: &str = "1735689600";

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
        self.extend(
            (0..16).rev().map(|place| b"0123456789abcdef"[((number >> (4 * place)) & 15) as usize]),
        );
        self
    }
}

/// Writes JSON into a JSON string: its quotes and backslashes are escaped. Words need no escapes.
pub(super) fn put_escaped(json: &[u8], out: &mut Vec<u8>) {
    for &byte in json {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
}
