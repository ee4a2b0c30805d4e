//! Streams that stood for 40 ms: Nagle's algorithm with delayed acknowledgements.
//!
//! Such stalls come and go with the pace of a connection. They make times differ between a target
//! beside others and the same alone, although no target disturbs another.

use plimsoll_report::format;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The streams of a target, where their diagnosis is stalls of 40 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stalls {
    /// Streams that stood for 40 ms.
    pub stalled: u64,
    /// Streams of which that could be told.
    pub judged: u64,
}

/// Those of several rounds.
pub(crate) fn combine(rounds: impl Iterator<Item = Stalls>) -> Option<Stalls> {
    rounds.reduce(|sum, round| Stalls {
        stalled: sum.stalled + round.stalled,
        judged: sum.judged + round.judged,
    })
}

/// That streams of these targets stood still: where the reference is among them, what is behind all
/// of them makes the stalls.
pub(crate) fn warning(found: &[(&str, Stalls)], reference: &str) -> Option<String> {
    let at = match found {
        [] => return None,
        all if all.iter().any(|(name, _)| *name == reference) => {
            format!("at {reference} or what is behind it")
        }
        _ => "at these targets".to_owned(),
    };
    let parts: Vec<_> = found
        .iter()
        .map(|(name, stalls): &(&str, Stalls)| {
            let [stalled, judged] = [stalls.stalled, stalls.judged].map(format::count);
            format!("{stalled} of {judged} of {name}")
        })
        .collect();
    Some(format!(
        "streams stood for 40 ms: {}. That is Nagle's algorithm with delayed acknowledgements; set \
         TCP_NODELAY {at}. Whether a stream stalls depends on when its request is sent, so \
         the differences would be others at another rate",
        parts.join(", ")
    ))
}
