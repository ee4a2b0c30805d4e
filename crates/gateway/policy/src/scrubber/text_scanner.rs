//! Finds personal data in a text that arrives in parts, such as the deltas of a model's answer.

use std::ops::Range;
use std::sync::Arc;

use super::CONTEXT;
use super::plain::Plain;
use super::redactor::Redactor;
use super::segmenter::{Segmenter, Step};
use crate::policy::Policy;

/// A place to redact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redaction {
    /// The bytes of the whole text, on character boundaries. A place may span several parts.
    pub range: Range<u64>,
    /// The replacement.
    pub mask: &'static str,
}

/// Finds personal data in a text that arrives in parts, also where it is split over parts, and in
/// characters or escapes that stand for those of the rules.
///
/// What is found depends only on the text, never on its parts. A place is reported when the
/// segment that it is in has ended, as for a [`Scrubber`](crate::Scrubber): see
/// [`Self::decided`].
#[derive(Clone, Debug)]
pub struct TextScanner {
    policy: Arc<Policy>,
    plain: Plain,
    segments: Segments,
    json: bool,
}

/// The open segment, in plain letters.
#[derive(Clone, Debug)]
struct Segments {
    segmenter: Segmenter,
    held: Vec<u8>,
    /// The bytes of the text behind each held one.
    from: Vec<Range<u64>>,
    /// The end of the letters before it.
    context: Vec<u8>,
}

impl TextScanner {
    /// `json` tells whether the text is JSON, such as the arguments of a tool call: a backslash
    /// starts an escape, and a bare number is replaced by a number.
    pub const fn new(policy: Arc<Policy>, json: bool) -> Self {
        let segmenter = Segmenter::new(false);
        let segments =
            Segments { segmenter, held: Vec::new(), from: Vec::new(), context: Vec::new() };
        Self { policy, plain: Plain::new(json), segments, json }
    }

    /// The length of the text so far.
    pub const fn fed(&self) -> u64 {
        self.plain.fed()
    }

    /// The length of the text about which everything is known: later parts cannot add a place
    /// before it.
    pub fn decided(&self) -> u64 {
        self.segments.from.first().map_or_else(|| self.plain.given(), |from| from.start)
    }

    /// Takes the next part. Appends the places that became known.
    pub fn feed(&mut self, part: &str, found: &mut Vec<Redaction>) {
        let Self { policy, plain, segments, json } = self;
        let wanted = Wanted { policy, json: *json };
        plain.feed(part, |letter, from| segments.take(letter, &from, wanted, found));
        segments.pass_closed();
    }

    /// Ends the text. Appends the places in what was still open; more text may follow as a new
    /// segment.
    pub fn finish(&mut self, found: &mut Vec<Redaction>) {
        let Self { policy, plain, segments, json } = self;
        let wanted = Wanted { policy, json: *json };
        plain.finish(|letter, from| segments.take(letter, &from, wanted, found));
        segments.pass_closed();
        let length = segments.held.len();
        if segments.segmenter.finish() {
            segments.find(0..length, None, wanted, found);
        }
        segments.pass(length);
    }
}

/// What is looked for.
#[derive(Clone, Copy)]
struct Wanted<'p> {
    policy: &'p Policy,
    json: bool,
}

impl Segments {
    /// Takes a letter that stands for these bytes of the text.
    fn take(
        &mut self,
        letter: char,
        from: &Range<u64>,
        wanted: Wanted<'_>,
        found: &mut Vec<Redaction>,
    ) {
        let mut bytes = [0; 4];
        for byte in letter.encode_utf8(&mut bytes).bytes() {
            self.held.push(byte);
            self.from.push(from.clone());
            let step = self.segmenter.step(byte);
            let Step::EndSegment { length, distance, may_match: true } = step else { continue };
            let end = self.held.len().saturating_sub(distance);
            let start = end.saturating_sub(length);
            let next = self.held.get(end).copied();
            self.pass(start);
            self.find(0..end - start, next, wanted, found);
        }
    }

    fn find(
        &self,
        segment: Range<usize>,
        next: Option<u8>,
        wanted: Wanted<'_>,
        found: &mut Vec<Redaction>,
    ) {
        let Wanted { policy, json } = wanted;
        let redactor = Redactor { policy, context: &self.context, json };
        let held = self.held.get(segment).unwrap_or_default();
        for (place, mask) in redactor.places(held, next) {
            let from = self.from.get(place).unwrap_or_default();
            if let (Some(first), Some(last)) = (from.first(), from.last()) {
                found.push(Redaction { range: first.start..last.end, mask });
            }
        }
    }

    /// Moves what is before the open segment into the context.
    fn pass_closed(&mut self) {
        self.pass(self.held.len().saturating_sub(self.segmenter.open_length()));
    }

    /// Moves the first held bytes into the context, of which only the end is kept.
    fn pass(&mut self, count: usize) {
        let bytes = self.held.get(..count).unwrap_or_default();
        let bytes = bytes.get(bytes.len().saturating_sub(CONTEXT)..).unwrap_or_default();
        self.context.extend_from_slice(bytes);
        let excess = self.context.len().saturating_sub(CONTEXT);
        self.context.drain(..excess);
        self.held.drain(..count);
        self.from.drain(..count);
    }
}
