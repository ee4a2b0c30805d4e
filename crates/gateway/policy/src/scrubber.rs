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
mod redactor;
mod segmenter;
mod text_scanner;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::policy::Policy;
use redactor::Redactor;
use segmenter::{Segmenter, Step};
pub use text_scanner::{Redaction, TextScanner};

/// The number of bytes before a segment in which rules look for the name of its value, such as
/// `ssn`.
const CONTEXT: usize = 64;

/// Redacts personal data in a stream of bytes, such as the body of a response.
///
/// Bytes that are not UTF-8 pass unchanged. A bare JSON number is replaced by `0`, so that JSON
/// stays valid; anything else is replaced by [`MASK`](crate::MASK).
///
/// # What is caught
/// Values within one JSON string or one frame that match a rule with `stream: true`.
///
/// Not caught: a value that is split over several frames (use a [`TextScanner`] for the texts
/// inside them); values with escapes (`ann\u0040example.com`) or any other obfuscation; street
/// addresses and dates with the month in words, because ordinary words would have to be held back;
/// a value whose name is more than 64 bytes before it; and a value across a cut in a run of numbers
/// of more than 256 bytes.
#[derive(Clone, Debug)]
pub struct Scrubber {
    policy: Arc<Policy>,
    segmenter: Segmenter,
    /// The bytes of the open segment from earlier chunks.
    held: Vec<u8>,
    /// The last bytes of the input before the open segment.
    context: Vec<u8>,
}

impl Scrubber {
    /// For bytes that may be JSON or frames of JSON: a backslash starts an escape, which is not
    /// part of a word.
    pub fn new(policy: Arc<Policy>) -> Self {
        let segmenter = Segmenter::new(true);
        Self { policy, segmenter, held: Vec::new(), context: Vec::new() }
    }

    /// Takes a chunk and returns the bytes to pass on: a prefix of the chunk itself if nothing was
    /// held back and nothing redacted, so that the caller may reuse its buffer.
    pub fn feed<'c>(&mut self, chunk: &'c [u8]) -> Cow<'c, [u8]> {
        let mut window = Window::new(chunk, &self.held);
        for (at, byte) in chunk.iter().enumerate() {
            let step = self.segmenter.step(*byte);
            self.apply(step, at, &mut window);
        }
        let open = window.open_start(self.segmenter.open_length());
        let released = window.release(open);
        self.keep(window, open);
        released
    }

    /// The bytes that are held back now.
    pub const fn buffered(&self) -> usize {
        self.held.len()
    }

    /// Ends the stream and returns what was held back.
    pub fn finish(&mut self) -> Vec<u8> {
        let segment = std::mem::take(&mut self.held);
        let may_match = self.segmenter.finish();
        let redacted = may_match.then(|| self.redact(&segment, None)).flatten();
        self.context.clear();
        redacted.unwrap_or(segment)
    }

    /// Redacts the segment that ends with this step, if any. `at` is the index of the step's byte
    /// in the chunk.
    fn apply(&mut self, step: Step, at: usize, window: &mut Window<'_>) {
        let Step::EndSegment { length, distance, may_match } = step else { return };
        let end = window.held + at + 1 - distance;
        let range = end - length..end;
        if !may_match {
            return;
        }
        let segment = window.input(&range);
        self.set_context(window, range.start);
        let next = (distance > 0).then(|| window.byte(end)).flatten();
        if let Some(redacted) = self.redact(&segment, next) {
            window.replace(range, &redacted);
        }
    }

    /// Sets [`Self::context`] to the bytes before the window's position `start`.
    fn set_context(&mut self, window: &mut Window<'_>, start: usize) {
        let before = window.input(&(window.in_context.min(start)..start));
        self.context.extend_from_slice(
            before.get(before.len().saturating_sub(CONTEXT)..).unwrap_or_default(),
        );
        window.in_context = start;
        let excess = self.context.len().saturating_sub(CONTEXT);
        self.context.drain(..excess);
    }

    /// The redacted segment; None if nothing is to be redacted. `next` is the byte after it.
    fn redact(&self, segment: &[u8], next: Option<u8>) -> Option<Vec<u8>> {
        let Self { policy, context, .. } = self;
        Redactor { policy, context, json: true }.redact(segment, next)
    }

    /// Holds back the open segment for the next chunk.
    fn keep(&mut self, mut window: Window<'_>, open: usize) {
        self.set_context(&mut window, open);
        let held = window.input(&(open..window.length())).into_owned();
        self.held = held;
    }
}

/// The held bytes followed by a chunk, and the output for them. Positions count from the first held
/// byte.
struct Window<'c> {
    chunk: &'c [u8],
    before: Vec<u8>,
    /// The length of `before`.
    held: usize,
    /// The output for the input up to `copied`; None while it equals the chunk.
    output: Option<Vec<u8>>,
    copied: usize,
    /// The position up to which the input is in [`Scrubber::context`].
    in_context: usize,
}

impl<'c> Window<'c> {
    fn new(chunk: &'c [u8], held: &[u8]) -> Self {
        let output = (!held.is_empty()).then(Vec::new);
        Self { chunk, before: held.to_vec(), held: held.len(), output, copied: 0, in_context: 0 }
    }

    fn length(&self) -> usize {
        self.held + self.chunk.len()
    }

    /// The start of the open segment, which has this length.
    fn open_start(&self, length: usize) -> usize {
        self.length() - length.min(self.length())
    }

    fn byte(&self, at: usize) -> Option<u8> {
        match at.checked_sub(self.held) {
            Some(at) => self.chunk.get(at).copied(),
            None => self.before.get(at).copied(),
        }
    }

    fn input(&self, range: &Range<usize>) -> Cow<'c, [u8]> {
        if range.start >= self.held {
            let range = range.start - self.held..range.end - self.held;
            return Cow::Borrowed(self.chunk.get(range).unwrap_or_default());
        }
        let old = self.before.get(range.start..range.end.min(self.held)).unwrap_or_default();
        let new = self.chunk.get(..range.end.saturating_sub(self.held)).unwrap_or_default();
        Cow::Owned([old, new].concat())
    }

    fn replace(&mut self, range: Range<usize>, by: &[u8]) {
        let unchanged = self.input(&(self.copied..range.start));
        let output = self.output.get_or_insert_default();
        output.extend_from_slice(&unchanged);
        output.extend_from_slice(by);
        self.copied = range.end;
    }

    /// The output for the input before `open`.
    fn release(&mut self, open: usize) -> Cow<'c, [u8]> {
        let rest = self.input(&(self.copied.min(open)..open));
        match self.output.take() {
            Some(mut output) => {
                output.extend_from_slice(&rest);
                Cow::Owned(output)
            }
            None => rest,
        }
    }
}
