//! Redaction of personal data in texts that arrive in pieces.
//!
//! A byte is held back only while what it belongs to could still become, or be part of, a match:
//! a word is held until its end (it may turn into an e-mail address), a number until the word
//! behind it shows that it does not go on. White space after a word, quotes, colons, braces,
//! line ends and characters outside of ASCII end a word, and everything up to them goes on at
//! once; so each frame of an SSE stream leaves with the chunk that completes it.
//!
//! Where a part ends depends on the bytes alone and never on how they were cut into chunks, and so
//! does the output.

mod machine;
mod scan;

use std::borrow::Cow;
use std::sync::Arc;

use crate::policy::Policy;
use machine::{Machine, Step};
use scan::Personal;

/// The most bytes that are held back.
pub(crate) const LONGEST: usize = 256;

/// The bytes before a held part in which rules look for the name of its value.
pub(crate) const LOOK_BEHIND: usize = 64;

/// Redacts personal data in a stream of bytes, such as the body of a response.
///
/// Bytes that are not UTF-8 pass unchanged. A number that stands as a bare JSON value is replaced
/// by `0`, so that JSON stays JSON; anything else by [`MASK`](crate::MASK).
///
/// # What is caught
/// The rules with `stream: true`, in a value that stands in one string of JSON or one frame.
///
/// Not caught: a value that is split over several frames (apply a [`TextScrubber`] to the texts
/// inside of them instead); values written with escapes (`ann\u0040example.com`) or in any other
/// disguise; street addresses and dates with the month in words, which would need ordinary words
/// to be held back; a value whose name stands more than 64 bytes before it; and what lies across a
/// cut in a run of numbers which goes on for more than 256 bytes.
#[derive(Clone, Debug)]
pub struct Scrubber {
    policy: Arc<Policy>,
    machine: Machine,
    /// The open part as far as earlier chunks brought it.
    held: Vec<u8>,
    /// The last bytes of the input before the open part.
    behind: Vec<u8>,
    json: bool,
}

impl Scrubber {
    /// For bytes which may be JSON or frames of JSON: what stands behind a backslash belongs to
    /// the escape and not to a word.
    pub fn new(policy: Arc<Policy>) -> Self {
        Self::with(policy, true)
    }

    fn with(policy: Arc<Policy>, json: bool) -> Self {
        let machine = Machine::new(json);
        Self { policy, machine, held: Vec::new(), behind: Vec::new(), json }
    }

    /// Takes a chunk and returns what can go on: a prefix of the chunk itself where nothing was
    /// held back and nothing redacted, so that the caller may pass its own buffer on.
    pub fn feed<'c>(&mut self, chunk: &'c [u8]) -> Cow<'c, [u8]> {
        let mut pieces = Pieces::new(chunk, &self.held);
        for (at, byte) in chunk.iter().enumerate() {
            let step = self.machine.step(*byte);
            self.apply(step, at, &mut pieces);
        }
        let open = pieces.open(self.machine.length());
        let passed = pieces.passed(open);
        self.keep(pieces, open);
        passed
    }

    /// Ends the stream and returns what was held back.
    pub fn finish(&mut self) -> Vec<u8> {
        let part = std::mem::take(&mut self.held);
        let interesting = self.machine.finish();
        let redacted = interesting.then(|| self.personal(&part, None)).flatten();
        self.behind.clear();
        redacted.unwrap_or(part)
    }

    /// Does what a step of the machine says, `at` being the index of its byte in the chunk.
    fn apply(&mut self, step: Step, at: usize, pieces: &mut Pieces<'_>) {
        let Step::Release { part, after, interesting } = step else { return };
        // The part ends `after` bytes before the end of the byte that was stepped over.
        let end = pieces.held + at + 1 - after;
        let range = end - part..end;
        if !interesting {
            return;
        }
        let all = pieces.input(&range);
        self.behind_at(pieces, range.start);
        let next = (after > 0).then(|| pieces.byte(end)).flatten();
        if let Some(redacted) = self.personal(&all, next) {
            pieces.replace(range, &redacted);
        }
    }

    /// Sets [`Self::behind`] to the bytes before `start`, which counts from the held bytes on.
    fn behind_at(&mut self, pieces: &mut Pieces<'_>, start: usize) {
        let before = pieces.input(&(pieces.seen.min(start)..start));
        self.behind.extend_from_slice(
            before.get(before.len().saturating_sub(LOOK_BEHIND)..).unwrap_or_default(),
        );
        pieces.seen = start;
        let excess = self.behind.len().saturating_sub(LOOK_BEHIND);
        self.behind.drain(..excess);
    }

    /// The part redacted, if it has something to redact.
    fn personal(&self, part: &[u8], next: Option<u8>) -> Option<Vec<u8>> {
        Personal { policy: &self.policy, behind: &self.behind, json: self.json }.redact(part, next)
    }

    /// Prepares for the next chunk.
    fn keep(&mut self, mut pieces: Pieces<'_>, open: usize) {
        self.behind_at(&mut pieces, open);
        let held = pieces.input(&(open..pieces.length())).into_owned();
        self.held = held;
    }
}

/// The input that is at hand, held bytes and a chunk, and what becomes of it. Positions count from
/// the first held byte.
struct Pieces<'c> {
    chunk: &'c [u8],
    before: Vec<u8>,
    held: usize,
    /// What goes on in place of the input up to `copied`; none while the input itself does.
    output: Option<Vec<u8>>,
    copied: usize,
    /// Up to here the input is known to the look-behind.
    seen: usize,
}

impl<'c> Pieces<'c> {
    fn new(chunk: &'c [u8], held: &[u8]) -> Self {
        let output = (!held.is_empty()).then(Vec::new);
        Self { chunk, before: held.to_vec(), held: held.len(), output, copied: 0, seen: 0 }
    }

    fn length(&self) -> usize {
        self.held + self.chunk.len()
    }

    /// Where the part that is still open begins.
    fn open(&self, length: usize) -> usize {
        self.length() - length.min(self.length())
    }

    fn byte(&self, at: usize) -> Option<u8> {
        match at.checked_sub(self.held) {
            Some(at) => self.chunk.get(at).copied(),
            None => self.before.get(at).copied(),
        }
    }

    fn input(&self, range: &std::ops::Range<usize>) -> Cow<'c, [u8]> {
        if range.start >= self.held {
            let range = range.start - self.held..range.end - self.held;
            return Cow::Borrowed(self.chunk.get(range).unwrap_or_default());
        }
        let old = self.before.get(range.start..range.end.min(self.held)).unwrap_or_default();
        let new = self.chunk.get(..range.end.saturating_sub(self.held)).unwrap_or_default();
        Cow::Owned([old, new].concat())
    }

    fn replace(&mut self, range: std::ops::Range<usize>, by: &[u8]) {
        let unchanged = self.input(&(self.copied..range.start));
        let output = self.output.get_or_insert_default();
        output.extend_from_slice(&unchanged);
        output.extend_from_slice(by);
        self.copied = range.end;
    }

    /// What goes on of the input before `open`.
    fn passed(&mut self, open: usize) -> Cow<'c, [u8]> {
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

/// Redacts personal data in a text that arrives in pieces, such as the deltas of an answer, so
/// that values are caught which are split over several of them.
///
/// What is held back by one piece goes on with a later one or with [`Self::finish`]: the last
/// event of a stream may have to carry the rest.
#[derive(Clone, Debug)]
pub struct TextScrubber(Scrubber);

impl TextScrubber {
    /// For text as it is meant, without escapes.
    pub fn new(policy: Arc<Policy>) -> Self {
        Self(Scrubber::with(policy, false))
    }

    /// Takes a piece and returns what can go on.
    pub fn feed<'t>(&mut self, piece: &'t str) -> Cow<'t, str> {
        match self.0.feed(piece.as_bytes()) {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => Cow::Owned(text(bytes)),
        }
    }

    /// Ends the text and returns what was held back.
    pub fn finish(&mut self) -> String {
        text(self.0.finish())
    }
}

/// Parts end on character boundaries, so nothing is ever lost here.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
