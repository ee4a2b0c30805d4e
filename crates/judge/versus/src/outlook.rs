//! Before the run: what it cannot see.

use plimsoll_report::format;
use plimsoll_stats::Looks;
use plimsoll_stats::power::{failures_one_in, pairs_needed};

use crate::comparisons::comparisons;
use crate::facts::Facts;

/// Standard deviation of the logarithm of times that a provider draws, for typical language models.
/// With common draws it does not matter.
const TYPICAL_SPREAD: f64 = 0.8;

/// Sentences on what is out of reach with the planned rate and time.
pub fn outlook(facts: &Facts) -> Vec<String> {
    let mut lines = Vec::new();
    if comparisons(facts).is_empty() {
        lines.push("there is only one target: nothing will be compared".to_owned());
    }
    // A batch is a second or more.
    let shortest_s = f64::from(facts.looks.batches_needed());
    if facts.duration_s > 0.0 && facts.duration_s < shortest_s {
        lines.push(format!(
            "{} are too short: intervals need {} of load at least",
            format::seconds(facts.duration_s),
            format::seconds(shortest_s)
        ));
    }
    if facts.planned_blocks > 0 {
        lines.push(failures(facts.planned_blocks, facts.looks));
        lines.extend(margin(facts));
    }
    lines
}

fn failures(pairs: u64, looks: Looks) -> String {
    let turns = format::count(pairs);
    match failures_one_in(pairs, looks) {
        Some(one_in) => format!(
            "failures rarer than 1 in {} may go unnoticed ({turns} blocks, 80 %)",
            format::digits(one_in)
        ),
        None => format!("{turns} blocks are too few to see a difference in failures"),
    }
}

fn margin(facts: &Facts) -> Option<String> {
    let margin = facts.margin.filter(|margin| *margin > 0.0)?;
    let needed = pairs_needed(0.5, TYPICAL_SPREAD, margin);
    let planned = facts.planned_blocks as f64;
    (needed > planned).then(|| {
        let time = facts.rate.filter(|rate| *rate > 0.0).map_or_else(String::new, |rate| {
            format!(", {} at this rate", format::seconds((needed / rate).ceil()))
        });
        format!(
            "a margin of {} takes some {} blocks{time} if each target draws its own times with \
             the spread of a typical model; with common draws it takes less",
            format::percent(margin),
            format::digits(needed)
        )
    })
}
