//! Before the run: what it cannot see.

use plimsoll_report::format;
use plimsoll_stats::Looks;
use plimsoll_stats::power::failures_one_in;

use crate::comparisons::comparisons;
use crate::facts::Facts;

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
