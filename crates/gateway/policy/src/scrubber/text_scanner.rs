//! Finds personal data in a text that arrives in parts, such as the deltas of a model's answer.

use std::ops::Range;
use std::sync::Arc;

use super::CONTEXT;
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

/// Finds personal data in a text that arrives in parts, also where it is split over parts.
///
/// What is found depends only on the text, never on its parts. A place is reported when the
/// segment that it is in has ended, as for a [`Scrubber`](crate::Scrubber): see
/// [`Self::decided`].
#[derive(Clone, Debug)]
pub struct TextScanner {
    policy: Arc<Policy>,
    segmenter: Segmenter,
    /// The open segment.
    held: Vec<u8>,
    /// The end of the text before it.
    context: Vec<u8>,
    /// The bytes of all parts so far.
    fed: u64,
    json: bool,
}

impl TextScanner {
    /// `json` tells whether the text is JSON, such as the arguments of a tool call: a backslash
    /// starts an escape, and a bare number is replaced by a number.
    pub fn new(policy: Arc<Policy>, json: bool) -> Self {
        let segmenter = Segmenter::new(json);
        Self { policy, segmenter, held: Vec::new(), context: Vec::new(), fed: 0, json }
    }

    /// The length of the text so far.
    pub const fn fed(&self) -> u64 {
        self.fed
    }

    /// The length of the text about which everything is known: later parts cannot add a place
    /// before it.
    pub const fn decided(&self) -> u64 {
        self.fed - self.segmenter.open_length() as u64
    }

    /// Takes the next part. Appends the places that became known.
    pub fn feed(&mut self, part: &str, found: &mut Vec<Redaction>) {
        let base = self.fed - self.held.len() as u64;
        let mut passed = 0;
        for byte in part.bytes() {
            self.held.push(byte);
            let step = self.segmenter.step(byte);
            let Step::EndSegment { length, distance, may_match: true } = step else { continue };
            let end = self.held.len().saturating_sub(distance);
            let start = end.saturating_sub(length);
            self.pass(passed..start);
            passed = start;
            let next = self.held.get(end).copied();
            self.find(base, start..end, next, found);
        }
        self.fed += part.len() as u64;
        let open = self.held.len().saturating_sub(self.segmenter.open_length());
        self.pass(passed..open);
        self.held.drain(..open);
    }

    /// Ends the text. Appends the places in what was still open; more text may follow as a new
    /// segment.
    pub fn finish(&mut self, found: &mut Vec<Redaction>) {
        let base = self.fed - self.held.len() as u64;
        let length = self.held.len();
        if self.segmenter.finish() {
            self.find(base, 0..length, None, found);
        }
        self.pass(0..length);
        self.held.clear();
    }

    fn find(&self, base: u64, segment: Range<usize>, next: Option<u8>, found: &mut Vec<Redaction>) {
        let redactor = Redactor { policy: &self.policy, context: &self.context, json: self.json };
        let from = base + segment.start as u64;
        let segment = self.held.get(segment).unwrap_or_default();
        for (range, mask) in redactor.places(segment, next) {
            let range = from + range.start as u64..from + range.end as u64;
            found.push(Redaction { range, mask });
        }
    }

    /// Moves held bytes into the context, of which only the end is kept.
    fn pass(&mut self, range: Range<usize>) {
        let bytes = self.held.get(range).unwrap_or_default();
        let bytes = bytes.get(bytes.len().saturating_sub(CONTEXT)..).unwrap_or_default();
        self.context.extend_from_slice(bytes);
        let excess = self.context.len().saturating_sub(CONTEXT);
        self.context.drain(..excess);
    }
}
