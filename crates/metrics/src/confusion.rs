//! Expected against actual verdicts.

use std::collections::BTreeMap;

use plimsoll_measure::{Sample, Verdict};

/// The word for requests that got no answer, beside those of the verdicts.
pub const UNANSWERED: &str = "unanswered";

/// A confusion matrix in words: expected verdict, then actual verdict or [`UNANSWERED`], then requests. Pairs without
/// requests are left out.
pub type Matrix = BTreeMap<String, BTreeMap<String, u64>>;

/// Requests by expected and actual verdict; those without an expected one are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Confusion {
    /// By the expected verdict, then by the actual one; the last column is of requests without an answer.
    counts: [[u64; Verdict::COUNT + 1]; Verdict::COUNT],
}

impl Confusion {
    /// Counts a request.
    #[inline]
    pub(crate) fn count(&mut self, sample: &Sample) {
        if let Some(expected) = sample.expected {
            let actual = sample.verdict.map_or(Verdict::COUNT, |verdict| verdict as usize);
            self.counts[expected as usize][actual] += 1;
        }
    }

    /// Adds another group's counts.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().flatten().zip(other.counts.iter().flatten()) {
            *mine += theirs;
        }
    }

    /// The requests of which `expected` was expected, and `actual` came; `None` for those without an answer.
    pub fn of(&self, expected: Verdict, actual: Option<Verdict>) -> u64 {
        let actual = actual.map_or(Verdict::COUNT, |verdict| verdict as usize);
        self.counts[expected as usize][actual]
    }

    /// The same in words.
    pub fn matrix(&self) -> Matrix {
        let mut matrix = Matrix::new();
        let actual = || Verdict::ALL.map(Some).into_iter().chain([None]);
        let pairs = Verdict::ALL.into_iter().flat_map(|e| actual().map(move |a| (e, a)));
        for (expected, actual) in pairs.filter(|(e, a)| self.of(*e, *a) > 0) {
            let word = actual.map_or(UNANSWERED, Verdict::name);
            let row = matrix.entry(expected.name().to_owned()).or_default();
            row.insert(word.to_owned(), self.of(expected, actual));
        }
        matrix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_the_list_of_verdicts() {
        for (place, verdict) in Verdict::ALL.into_iter().enumerate() {
            assert_eq!(verdict as usize, place);
        }
    }
}
