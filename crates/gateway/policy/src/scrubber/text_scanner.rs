//! Finds personal data in a text that arrives in parts, such as the deltas of a model's answer.

use std::ops::Range;
use std::sync::Arc;

use super::{Plain, Segment, Segmenter};
use crate::category::Category;
use crate::decision::MASK;
use crate::normalise::variants;
use crate::policy::Policy;
use crate::rule::Rule;

/// The number of bytes before a segment in which rules look for the name of its value, such as
/// `ssn`.
const CONTEXT: usize = 64;

/// A range to redact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redaction {
    /// The byte range in the whole text, on character boundaries. It may span several parts.
    pub range: Range<u64>,
    /// The replacement.
    pub mask: &'static str,
}

/// Finds personal data in a text that arrives in parts, even if a match spans parts or is written
/// with escapes and confusables.
///
/// The result depends only on the text, never on its parts. A match is reported once its segment
/// has ended, as in a [`Scrubber`](crate::Scrubber): see [`Self::decided`].
#[derive(Clone, Debug)]
pub struct TextScanner {
    plain: Plain,
    segments: Segments,
}

/// The open segment, in plain letters.
#[derive(Clone, Debug)]
struct Segments {
    policy: Arc<Policy>,
    json: bool,
    segmenter: Segmenter,
    held: String,
    /// The byte range in the text of each held letter.
    from: Vec<Range<u64>>,
    /// The end of the letters before it.
    context: String,
}

impl TextScanner {
    /// `json` selects the escapes of JSON, such as in the arguments of a tool call: a backslash
    /// starts an escape, and a bare number is replaced by a number.
    pub fn new(policy: Arc<Policy>, json: bool) -> Self {
        let segments = Segments {
            policy,
            json,
            segmenter: Segmenter::default(),
            held: String::new(),
            from: Vec::new(),
            context: String::new(),
        };
        Self { plain: Plain::new(json), segments }
    }

    /// The length of the text so far.
    pub const fn fed(&self) -> u64 {
        self.plain.fed()
    }

    /// The length of the decided text: later parts cannot add a match before it.
    pub fn decided(&self) -> u64 {
        self.segments.from.first().map_or_else(|| self.plain.given(), |from| from.start)
    }

    /// Takes the next part. Appends the decided matches.
    pub fn feed(&mut self, part: &str, found: &mut Vec<Redaction>) {
        let Self { plain, segments } = self;
        plain.feed(part, |letter, from| segments.take(letter, &from, found));
        segments.pass_closed();
    }

    /// Ends the text. Appends the matches of the open segment; later text starts a new segment.
    pub fn finish(&mut self, found: &mut Vec<Redaction>) {
        let Self { plain, segments } = self;
        plain.finish(|letter, from| segments.take(letter, &from, found));
        segments.pass_closed();
        let length = segments.held.len();
        if segments.segmenter.finish() {
            segments.find(length, found);
        }
        segments.pass(length);
    }
}

impl Segments {
    /// Takes a letter and its byte range in the text.
    fn take(&mut self, letter: char, from: &Range<u64>, found: &mut Vec<Redaction>) {
        self.held.push(letter);
        self.from.resize(self.held.len(), from.clone());
        if let Some(Segment { length, distance }) = self.segmenter.step(letter) {
            let end = self.held.len().saturating_sub(distance);
            self.pass(end.saturating_sub(length));
            self.find(length, found);
        }
    }

    /// Appends the personal data in the first held bytes, which are a segment. Overlapping or
    /// adjacent matches are merged.
    fn find(&self, length: usize, found: &mut Vec<Redaction>) {
        let (segment, rest) = self.held.split_at_checked(length).unwrap_or((&self.held, ""));
        let mut ranges = self.find_in(segment);
        for variant in variants(segment).iter() {
            let more = self.find_in(variant.text());
            ranges.extend(more.iter().map(|range| variant.origin(range)));
        }
        ranges.sort_by_key(|range| range.start);
        let mut places: Vec<Range<usize>> = Vec::new();
        for range in ranges {
            match places.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => places.push(range),
            }
        }
        for place in places {
            let mask = self.mask(segment, rest, &place);
            let from = self.from.get(place).unwrap_or_default();
            if let (Some(first), Some(last)) = (from.first(), from.last()) {
                found.push(Redaction { range: first.start..last.end, mask });
            }
        }
    }

    /// Rules with a named value also read the context, to find the name. Other rules see only the
    /// segment, so that the context cannot cause or hide a match.
    fn find_in(&self, segment: &str) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        self.policy.find_in(
            segment,
            |rule| is_streamed(rule) && !rule.has_value,
            |_, range| ranges.push(range),
        );
        let offset = self.context.len();
        let named = [&*self.context, segment].concat();
        self.policy.find_in(
            &named,
            |rule| is_streamed(rule) && rule.has_value,
            |_, range| {
                if range.start >= offset {
                    ranges.push(range.start - offset..range.end - offset);
                }
            },
        );
        ranges
    }

    /// The replacement: a bare number of JSON becomes a number.
    fn mask(&self, segment: &str, rest: &str, place: &Range<usize>) -> &'static str {
        let is_number = *place == (0..segment.len())
            && segment.bytes().all(|byte| byte.is_ascii_digit())
            && self.context.trim_end_matches(' ').ends_with([':', ',', '['])
            && rest.starts_with([',', '}', ']', ' ', '\n', '\r']);
        if self.json && is_number { "0" } else { MASK }
    }

    /// Moves everything before the open segment into the context.
    fn pass_closed(&mut self) {
        self.pass(self.held.len().saturating_sub(self.segmenter.open_length()));
    }

    /// Moves the first held bytes into the context, which keeps only its end.
    fn pass(&mut self, count: usize) {
        self.context.extend(self.held.drain(..count));
        self.from.drain(..count);
        let excess = self.context.len().saturating_sub(CONTEXT);
        self.context.drain(..self.context.ceil_char_boundary(excess));
    }
}

/// Whether a rule applies to streams.
fn is_streamed(rule: &Rule) -> bool {
    rule.stream && rule.category == Category::Pii
}
