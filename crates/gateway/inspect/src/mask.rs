//! Replacing parts of a text.

use std::ops::Range;

use plimsoll_gateway_policy::MASK;

/// Parts of one text to replace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Masks(Vec<(Range<usize>, &'static str)>);

impl Masks {
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn hide(&mut self, range: Range<usize>) {
        self.replace(range, MASK);
    }

    pub(crate) fn replace(&mut self, range: Range<usize>, by: &'static str) {
        if !range.is_empty() {
            self.0.push((range, by));
        }
    }

    /// The text with its parts replaced. Overlapping or adjacent parts share the first replacement
    /// that is not empty.
    pub(crate) fn apply(mut self, text: &str) -> String {
        self.0.sort_by_key(|(range, _)| range.start);
        let mut merged: Vec<(Range<usize>, &'static str)> = Vec::with_capacity(self.0.len());
        for (range, by) in self.0 {
            match merged.last_mut() {
                Some((last, first)) if range.start <= last.end => {
                    last.end = last.end.max(range.end);
                    *first = [*first, by][usize::from(first.is_empty())];
                }
                _ => merged.push((range, by)),
            }
        }
        let mut masked = String::with_capacity(text.len());
        let mut copied = 0;
        for (range, by) in merged {
            masked.push_str(text.get(copied..range.start).unwrap_or_default());
            masked.push_str(by);
            copied = range.end;
        }
        masked.push_str(text.get(copied..).unwrap_or_default());
        masked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_touch_share_a_replacement() {
        let rows = [
            (vec![], "abcdef"),
            (vec![(1..2, MASK), (2..4, MASK)], "a[REDACTED]ef"),
            (vec![(4..6, ""), (0..1, MASK)], "[REDACTED]bcd"),
            (vec![(0..3, ""), (1..2, MASK)], "[REDACTED]def"),
            (vec![(2..2, MASK)], "abcdef"),
        ];
        for (parts, expected) in rows {
            let mut masks = Masks::default();
            for (range, by) in parts {
                masks.replace(range.clone(), by);
            }
            assert_eq!(masks.apply("abcdef"), expected);
        }
    }
}
