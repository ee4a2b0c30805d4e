//! The search in one part of a stream.

use std::ops::Range;

use crate::policy::Policy;
use crate::verdict::MASK;

/// What is needed to search a part.
pub(super) struct Personal<'s> {
    pub(super) policy: &'s Policy,
    /// The input before the part.
    pub(super) behind: &'s [u8],
    pub(super) json: bool,
}

impl Personal<'_> {
    /// The part with everything personal replaced; none when there is nothing. `next` is the byte
    /// behind the part.
    pub(super) fn redact(&self, part: &[u8], next: Option<u8>) -> Option<Vec<u8>> {
        let text = str::from_utf8(part).ok()?;
        let mut ranges = self.find(text);
        ranges.sort_by_key(|range| range.start);
        let mut redacted = Vec::new();
        let mut done = 0;
        for range in &ranges {
            if done == 0 && redacted.is_empty() || range.start > done {
                redacted.extend_from_slice(part.get(done..range.start).unwrap_or_default());
                redacted.extend_from_slice(self.mask(part, range, next));
            }
            done = done.max(range.end);
        }
        redacted.extend_from_slice(part.get(done..).unwrap_or_default());
        (!ranges.is_empty()).then_some(redacted)
    }

    /// Rules that go by the name of a value read what is before the part too; the others must not
    /// be led astray by it.
    fn find(&self, part: &str) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        self.policy.find_personal(part, |rule, range| {
            if !rule.has_value {
                ranges.push(range);
            }
        });
        let behind = self.readable_behind();
        let offset = behind.len();
        self.policy.find_personal(&(behind + part), |rule, range| {
            if rule.has_value && range.start >= offset {
                ranges.push(range.start - offset..range.end - offset);
            }
        });
        ranges
    }

    /// What is before the part as text, with escapes blanked: the `n` of a line's end is no letter.
    fn readable_behind(&self) -> String {
        let mut behind = String::from_utf8_lossy(self.behind).into_owned();
        while let Some(at) = behind.find('\\').filter(|_| self.json) {
            let end = behind.ceil_char_boundary((at + 2).min(behind.len()));
            behind.replace_range(at..end, "  ");
        }
        behind
    }

    /// A bare number of JSON is replaced by a number.
    fn mask(&self, part: &[u8], range: &Range<usize>, next: Option<u8>) -> &'static [u8] {
        let digits = part.iter().all(u8::is_ascii_digit) && *range == (0..part.len());
        let before = self.behind.iter().rev().find(|byte| **byte != b' ');
        let opened = matches!(before, Some(b':' | b',' | b'['));
        let closed = matches!(next, Some(b',' | b'}' | b']' | b' ' | b'\n' | b'\r'));
        if self.json && digits && opened && closed { b"0" } else { MASK.as_bytes() }
    }
}
