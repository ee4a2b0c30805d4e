//! Targets that failed so much of their load that their times alone say nothing of them.

use plimsoll_measure::Nanos;
use plimsoll_report::format;

use crate::pairs::{Run, failed, turn};
use crate::result::{Outage, TargetResult, Versus};

/// Failures of a target that works are fewer, or not one after the other.
const ENOUGH: usize = 10;

/// When a target was down; `None` if it was not: it failed all of its turns, at least half of them,
/// or from some time on every one to the end.
pub(crate) fn outage(run: Run<'_>, target: usize) -> Option<Outage> {
    let mut turns: Vec<(Nanos, bool)> = run
        .batching
        .measured(run.blocks)
        .filter_map(|block| Some((block.start, failed(turn(block, target)?))))
        .collect();
    turns.sort_by_key(|(start, _)| *start);
    let all = turns.len();
    let lost = turns.iter().filter(|(_, failed)| *failed).count();
    let at_the_end = turns.iter().rev().take_while(|(_, failed)| *failed).count();
    let many = lost >= ENOUGH && (2 * lost >= all || at_the_end >= ENOUGH);
    let since = (at_the_end >= ENOUGH && at_the_end < all).then(|| turns[all - at_the_end].0);
    (lost > 0 && lost == all || many).then(|| Outage {
        since_s: since.map(Nanos::as_secs_f64),
        failed_since: since.map(|_| at_the_end as u64),
    })
}

/// A sentence on each target that was down: how much it failed, since when, and what it said.
pub(crate) fn sentences(versus: &Versus) -> Vec<String> {
    down(versus)
        .map(|(target, outage)| format!("{}{}", how_much(target, outage), words(target)))
        .collect()
}

/// The same without what it said, for a verdict.
pub(crate) fn short(versus: &Versus) -> impl Iterator<Item = String> {
    down(versus).map(|(target, outage)| how_much(target, outage))
}

fn down(versus: &Versus) -> impl Iterator<Item = (&TargetResult, &Outage)> {
    versus.targets.iter().filter_map(|target| Some((target, target.outage.as_ref()?)))
}

/// `a failed 517 of 1,200 requests, all of the last 500, from 30s on`.
fn how_much(target: &TargetResult, outage: &Outage) -> String {
    let (failed, all) = (format::count(target.failed), format::count(target.turns));
    let name = &target.name;
    if target.failed == target.turns {
        return format!("{name} failed all of its {all} requests");
    }
    let since = outage.since_s.zip(outage.failed_since).map(|(since, last)| {
        let (since, last) = (format::seconds(since), format::count(last));
        format!(", all of the last {last} (from {since} on)")
    });
    format!("{name} failed {failed} of {all} requests{}", since.unwrap_or_default())
}

/// How most of its requests failed, and what the target or the connection to it said.
fn words(target: &TargetResult) -> String {
    let most = target.failures.iter().max_by_key(|(_, count)| **count);
    let parts = most.map(|(word, _)| word.as_str()).into_iter().chain(target.failure.as_deref());
    let parts: Vec<_> = parts.collect();
    if parts.is_empty() { String::new() } else { format!(": {}", parts.join("; ")) }
}

/// Why times of a target that was down cannot be compared.
pub(crate) fn too_few(name: &str, run: Run<'_>, target: usize) -> Option<String> {
    outage(run, target)?;
    let (lost, all) =
        (run.turns(target).filter(|turn| failed(turn)).count(), run.turns(target).count());
    let [lost, all] = [lost, all].map(|count| format::count(count as u64));
    Some(format!("{name} failed {lost} of {all} requests: too few are left to compare"))
}
