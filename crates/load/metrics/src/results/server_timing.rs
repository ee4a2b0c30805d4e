//! The parts of responses' times that targets state in headers: their own word,
//! which nobody measured.

use std::collections::BTreeMap;

use plimsoll_measure::{NAMED_PARTS, OTHER_PARTS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DistributionSummary;
use crate::error::MetricsError;
use crate::server_parts::PartsTally;

/// The parts of responses' times that a target states in its headers: `Server-Timing`, and its own
/// overhead by the name of the header. They are its own word.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerTiming {
    /// Completed requests whose header has parts that may be true.
    pub responses: u64,
    /// Completed requests whose header has parts that cannot be true: times that are no numbers,
    /// names that are none, or more together than the time to the first byte.
    #[serde(default)]
    pub refused: u64,
    /// Sum of the times to the first byte of `responses`, in milliseconds: the whole of these
    /// parts.
    pub ttfb_sum_ms: f64,
    /// The parts by name; `other` are all names beyond the first 8 of the run.
    pub parts: BTreeMap<String, DistributionSummary>,
}

impl ServerTiming {
    /// The figures of what was counted; `names` are those of the run, in the order of their
    /// numbers.
    pub(super) fn from_tally(tally: &PartsTally, names: &[String]) -> Result<Self, MetricsError> {
        let mut parts = BTreeMap::new();
        for (number, times) in tally.times.iter().enumerate() {
            let name = names.get(number).map(String::as_str);
            let name = name.or_else(|| (number == NAMED_PARTS).then_some(OTHER_PARTS));
            if let Some((name, times)) = name.zip(times.as_ref()) {
                parts.insert(name.to_owned(), DistributionSummary::from_distribution(times)?);
            }
        }
        Ok(Self {
            responses: tally.responses,
            refused: tally.refused,
            ttfb_sum_ms: tally.ttfb as f64 / 1e6,
            parts,
        })
    }

    /// The mean time to the first byte of the responses, in milliseconds; `None` without any.
    pub fn mean_ttfb_ms(&self) -> Option<f64> {
        (self.responses > 0).then(|| self.ttfb_sum_ms / self.responses as f64)
    }

    /// The mean of each part, in milliseconds, over all responses: one that does not name it counts
    /// as zero, so that the means and [`ServerTiming::rest_ms`] make up the whole.
    pub fn means_ms(&self) -> impl Iterator<Item = (&str, f64)> {
        let responses = self.responses.max(1) as f64;
        self.parts.iter().map(move |(name, times)| (name.as_str(), times.raw_sum() / responses))
    }

    /// What the parts leave of the mean time to the first byte, in milliseconds: the network, and
    /// what the target does not name.
    pub fn rest_ms(&self) -> f64 {
        let parts: f64 = self.means_ms().map(|(_, mean)| mean).sum();
        self.mean_ttfb_ms().unwrap_or_default() - parts
    }
}
