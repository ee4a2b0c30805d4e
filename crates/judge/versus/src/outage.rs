//! Detects targets that failed so much of their load that their times alone are meaningless.

use plimsoll_measure::Nanos;
use plimsoll_metrics::{half_failed, words_of_failure};
use plimsoll_report::format;
use plimsoll_rules::Finding;

use crate::facts::Facts;
use crate::pairs::{Run, failed, turn};
use crate::result::{Outage, TargetResult};

/// A working target has fewer failures, or not this many in a row.
const ENOUGH: usize = 10;

/// Lower bound of the assumed failure rate before the outage, and the probability below which the
/// failures at the end count as an outage.
const LEAST_SHARE: f64 = 0.05;
const CHANCE: f64 = 0.001;

/// Finds an outage: the target failed all turns, at least 45 %, or every turn from some time
/// to the end, which needs no further proof if it was taken out.
pub(crate) fn outage(facts: &Facts, run: Run<'_>, target: usize) -> Option<Outage> {
    let is_out = facts.targets[target].taken_out.is_some();
    let enough = if is_out { 1 } else { ENOUGH };
    let mut turns: Vec<(Nanos, bool)> = run
        .batching
        .measured(run.blocks)
        .filter_map(|block| Some((block.start, failed(turn(block, target)?))))
        .collect();
    turns.sort_by_key(|(start, _)| *start);
    let all = turns.len();
    let lost = turns.iter().filter(|(_, failed)| *failed).count();
    let at_the_end = turns.iter().rev().take_while(|(_, failed)| *failed).count();
    // So many consecutive failures are improbable at the earlier failure rate.
    let before = (lost - at_the_end) as f64 / (all - at_the_end).max(1) as f64;
    let chance = before.max(LEAST_SHARE).powf(at_the_end as f64) * all as f64;
    let is_end = at_the_end >= enough && (is_out || chance <= CHANCE);
    let many = lost >= enough && (half_failed(lost as u64, all as u64) || is_end);
    let since = (is_end && at_the_end < all).then(|| turns[all - at_the_end].0);
    (lost > 0 && lost == all || many).then(|| Outage {
        since_s: since.map(Nanos::as_secs_f64),
        failed_since: since.map(|_| at_the_end as u64),
    })
}

/// The finding on an outage: the failures, their start, and the error message.
pub(crate) fn finding(target: &TargetResult) -> Option<Finding> {
    let since = target.outage.as_ref()?.since_s.map(format::seconds);
    let kind = target.failures.iter().max_by_key(|(_, count)| **count);
    let (class, action) = words_of_failure(kind.map_or("", |(kind, _)| kind), true);
    let message = target.failure.as_ref();
    let mut finding = Finding::new(201)
        .with("n", format::count(target.failed))
        .with("all", format::count(target.turns))
        .with("share", format::share(target.failed as f64 / target.turns.max(1) as f64))
        .with_some("since", since)
        .with("class", &class)
        .with_some("message", message.filter(|text| !text.to_lowercase().contains(&class)))
        .with("action", action);
    finding.targets = vec![target.name.clone()];
    Some(finding)
}

/// Reason why the times of a target that was down cannot be compared.
pub(crate) fn too_few(facts: &Facts, run: Run<'_>, target: usize) -> Option<String> {
    outage(facts, run, target).map(|_| format!("{} was down", facts.name(target)))
}
