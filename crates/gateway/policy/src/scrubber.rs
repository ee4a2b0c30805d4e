//! Redacts personal data in a stream.
//!
//! A byte is held back only while it may still become part of a match: a word until its end,
//! because it may become an e-mail address; a number until the next word shows that it has ended.
//! White space after a word, quotes, colons, braces, line breaks and non-ASCII characters end a
//! word, and everything before them is released at once. So each frame of an SSE stream leaves with
//! the chunk that completes it.
//!
//! The bytes between two such ends are a segment, and the last one is open until its end is seen.
//! Where a segment ends depends only on the bytes, never on the chunks, and so does the output.

mod plain;
mod segmenter;
mod text_scanner;

use std::sync::Arc;

use crate::policy::Policy;
pub use text_scanner::{Redaction, TextScanner};

/// Redacts personal data in a stream of bytes, such as the body of a response.
///
/// Bytes that are not UTF-8 pass unchanged. The text is read as a [`TextScanner`] reads JSON: a
/// backslash starts an escape, a bare JSON number is replaced by `0`, so that JSON stays valid, and
/// anything else is replaced by [`MASK`](crate::MASK).
///
/// # What is caught
/// Values within one JSON string or one frame that match a rule with `stream: true`.
///
/// Not caught: a value that is split over several frames (use a [`TextScanner`] for the texts
/// inside them); street addresses and dates with the month in words, because ordinary words would
/// have to be held back; a value whose name is more than 64 bytes before it; and a value across a
/// cut in a run of numbers of more than 256 bytes.
#[derive(Clone, Debug)]
pub struct Scrubber {
    scanner: TextScanner,
    /// The input that has not been passed on.
    held: Vec<u8>,
    /// The length of the input that has been passed on.
    passed: u64,
}

impl Scrubber {
    /// A scrubber at the start of a stream.
    pub fn new(policy: Arc<Policy>) -> Self {
        Self { scanner: TextScanner::new(policy, true), held: Vec::new(), passed: 0 }
    }

    /// Takes a chunk and returns the bytes to pass on.
    pub fn feed(&mut self, chunk: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(chunk);
        let mut found = Vec::new();
        let input = self.held.get(self.place(self.scanner.fed())..).unwrap_or_default();
        let last = input.utf8_chunks().last().map_or(&[][..], |part| part.invalid());
        let is_open = str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
        self.scan(self.held.len() - if is_open { last.len() } else { 0 }, &mut found);
        self.pass(self.scanner.decided(), &found)
    }

    /// The bytes that are held back now.
    pub const fn buffered(&self) -> usize {
        self.held.len()
    }

    /// Ends the stream and returns what was held back.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut found = Vec::new();
        self.scan(self.held.len(), &mut found);
        self.scanner.finish(&mut found);
        self.pass(self.scanner.fed(), &found)
    }

    /// Scans what has not been scanned, up to a place in `held`. Bytes that are not UTF-8 count as
    /// control characters.
    fn scan(&mut self, end: usize, found: &mut Vec<Redaction>) {
        let from = self.place(self.scanner.fed());
        for part in self.held.get(from..end).unwrap_or_default().utf8_chunks() {
            self.scanner.feed(part.valid(), found);
            self.scanner.feed(&"\0".repeat(part.invalid().len()), found);
        }
    }

    /// The place in `held` of a position in the input.
    fn place(&self, at: u64) -> usize {
        usize::try_from(at - self.passed).unwrap_or(usize::MAX)
    }

    /// Passes on the input up to `end`, redacted.
    fn pass(&mut self, end: u64, found: &[Redaction]) -> Vec<u8> {
        let mut redacted = Vec::new();
        let mut copied = self.passed;
        for Redaction { range, mask } in found.iter().filter(|found| !found.range.is_empty()) {
            let before = self.place(copied)..self.place(range.start.max(copied));
            redacted.extend_from_slice(self.held.get(before).unwrap_or_default());
            redacted.extend_from_slice(mask.as_bytes());
            copied = copied.max(range.end);
        }
        let rest = self.place(copied)..self.place(end);
        redacted.extend_from_slice(self.held.get(rest).unwrap_or_default());
        self.held.drain(..self.place(end));
        self.passed = end;
        redacted
    }
}
