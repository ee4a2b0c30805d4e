//! Redacts one segment of a stream.

use std::ops::Range;

use crate::decision::MASK;
use crate::normalise::{is_suspicious, variants};
use crate::policy::Policy;

/// Redacts segments with a policy's rules for streams.
pub(super) struct Redactor<'s> {
    pub(super) policy: &'s Policy,
    /// The input before the segment.
    pub(super) context: &'s [u8],
    pub(super) json: bool,
}

impl Redactor<'_> {
    /// The segment with all personal data replaced; None if it has none. `next` is the byte after
    /// the segment.
    pub(super) fn redact(&self, segment: &[u8], next: Option<u8>) -> Option<Vec<u8>> {
        let places = self.places(segment, next);
        let mut redacted = Vec::new();
        let mut copied = 0;
        for (range, mask) in &places {
            redacted.extend_from_slice(segment.get(copied..range.start).unwrap_or_default());
            redacted.extend_from_slice(mask.as_bytes());
            copied = range.end;
        }
        redacted.extend_from_slice(segment.get(copied..).unwrap_or_default());
        (!places.is_empty()).then_some(redacted)
    }

    /// The places with personal data, in order, each with its replacement. Those that overlap or
    /// touch are one.
    pub(super) fn places(
        &self,
        segment: &[u8],
        next: Option<u8>,
    ) -> Vec<(Range<usize>, &'static str)> {
        let Ok(text) = str::from_utf8(segment) else { return Vec::new() };
        let mut ranges = self.find(text);
        ranges.sort_by_key(|range| range.start);
        let mut places: Vec<(Range<usize>, &'static str)> = Vec::new();
        for range in ranges {
            match places.last_mut() {
                Some((last, _)) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => places.push((range.clone(), self.mask(segment, &range, next))),
            }
        }
        places
    }

    /// What is found in the segment as it is, and with its escapes decoded.
    fn find(&self, segment: &str) -> Vec<Range<usize>> {
        let mut ranges = self.find_in(segment);
        if segment.bytes().any(is_suspicious) {
            for variant in variants(segment).iter() {
                let found = self.find_in(variant.text());
                ranges.extend(found.iter().map(|range| variant.origin(range)));
            }
        }
        ranges
    }

    /// Rules with a named value also read the context, to find the name. Other rules see only the
    /// segment, so that the context cannot cause or hide a match.
    fn find_in(&self, segment: &str) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        self.policy.find_in_stream(segment, |rule, range| {
            if !rule.has_value {
                ranges.push(range);
            }
        });
        let context = self.readable_context();
        let offset = context.len();
        self.policy.find_in_stream(&(context + segment), |rule, range| {
            if rule.has_value && range.start >= offset {
                ranges.push(range.start - offset..range.end - offset);
            }
        });
        ranges
    }

    /// The context as text, with escapes blanked: the `n` of `\n` is not a letter.
    fn readable_context(&self) -> String {
        let mut context = String::from_utf8_lossy(self.context).into_owned();
        while let Some(at) = context.find('\\').filter(|_| self.json) {
            let end = context.ceil_char_boundary((at + 2).min(context.len()));
            context.replace_range(at..end, "  ");
        }
        context
    }

    /// The replacement: a bare JSON number becomes a number.
    fn mask(&self, segment: &[u8], range: &Range<usize>, next: Option<u8>) -> &'static str {
        let digits = segment.iter().all(u8::is_ascii_digit) && *range == (0..segment.len());
        let before = self.context.iter().rev().find(|byte| **byte != b' ');
        let opened = matches!(before, Some(b':' | b',' | b'['));
        let closed = matches!(next, Some(b',' | b'}' | b']' | b' ' | b'\n' | b'\r'));
        if self.json && digits && opened && closed { "0" } else { MASK }
    }
}
