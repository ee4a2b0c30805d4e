//! Counts the parts of responses' times that targets state in their headers.

use plimsoll_measure::{NAMED_PARTS, Nanos, ServerParts};
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;

/// Parts of a group of requests, by the number of their name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PartsTally {
    /// Responses with parts that may be true.
    pub(crate) responses: u64,
    /// Those with parts that cannot be.
    pub(crate) refused: u64,
    /// Sum of the times to the first byte of `responses`, in nanoseconds.
    pub(crate) ttfb: u128,
    pub(crate) times: [Option<Box<Distribution>>; NAMED_PARTS + 1],
}

impl PartsTally {
    /// Counts the parts of a response.
    pub(crate) fn record(&mut self, parts: &ServerParts, ttfb: Option<Nanos>) {
        let Some((times, ttfb)) = parts.times().zip(ttfb) else {
            self.refused += 1;
            return;
        };
        self.responses += 1;
        self.ttfb += u128::from(ttfb.as_u64());
        for (mine, time) in self.times.iter_mut().zip(times) {
            if let Some(time) = time {
                mine.get_or_insert_default().record(*time);
            }
        }
    }

    /// Part `n` becomes `numbers[n]`; without a new number it joins those that have no name.
    pub(crate) fn renumber(&mut self, numbers: &[Option<usize>]) {
        let old = std::mem::take(&mut self.times);
        for (index, times) in old.into_iter().enumerate() {
            let number = numbers.get(index).copied().flatten().unwrap_or(NAMED_PARTS);
            if let Some(times) = times {
                self.times[number.min(NAMED_PARTS)].get_or_insert_default().merge(&times);
            }
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.responses += other.responses;
        self.refused += other.refused;
        self.ttfb += other.ttfb;
        for (mine, theirs) in self.times.iter_mut().zip(&other.times) {
            if let Some(theirs) = theirs {
                mine.get_or_insert_default().merge(theirs);
            }
        }
    }
}
