//! Times that targets report in their response headers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parts of its time that a target reports in its response headers: `Server-Timing`, and its own
/// overhead under the header's name. Plimsoll did not measure them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stated {
    /// Completed requests with such a header.
    pub responses: u64,
    /// Mean of each part over these requests in nanoseconds, by name.
    pub mean_ns: BTreeMap<String, f64>,
}

/// Combines a target's reported times over several rounds.
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
