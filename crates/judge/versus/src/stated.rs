//! What targets state of their own time in the headers of their answers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parts of its time that a target states in the headers of its answers: `Server-Timing`, and its
/// own overhead by the name of the header. Nobody measured them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stated {
    /// Completed requests that state something.
    pub responses: u64,
    /// The mean of each part over these, in nanoseconds, by its name.
    pub mean_ns: BTreeMap<String, f64>,
}

/// What a target states over several rounds.
pub(crate) fn combine<'s>(rounds: impl Iterator<Item = &'s Stated>) -> Option<Stated> {
    let mut sum = Stated::default();
    for round in rounds {
        sum.responses += round.responses;
        for (name, mean) in &round.mean_ns {
            *sum.mean_ns.entry(name.clone()).or_default() += mean * round.responses as f64;
        }
    }
    let responses = sum.responses as f64;
    sum.mean_ns.values_mut().for_each(|total| *total /= responses);
    (sum.responses > 0).then_some(sum)
}
