//! Results of each target on its own.

use std::collections::BTreeMap;

use plimsoll_measure::{Outcome, PairedTurn};
use plimsoll_stats::{nearest_rank, samples_needed};

use crate::facts::{Facts, TakenOut};
use crate::figure::{Figure, as_f64};
use crate::pairs::{Run, failed, turn};
use crate::result::{BlockCounts, TargetResult};
use crate::{cpu, generator, outage};

/// Returns one result per target, in their order.
pub(crate) fn targets(facts: &Facts, run: Run<'_>) -> Vec<TargetResult> {
    (0..facts.targets.len()).map(|index| target(facts, run, index)).collect()
}

fn target(facts: &Facts, run: Run<'_>, index: usize) -> TargetResult {
    let known = &facts.targets[index];
    let turns = || run.turns(index);
    let count = turns().count() as u64;
    let decided = turns().filter_map(PairedTurn::as_expected);
    let decided: Vec<bool> = decided.collect();
    let cpu = cpu::per_request(facts, run, index).ok();
    let total = known.cpu_us_per_request.map(|micros| micros * 1e3);
    TargetResult {
        name: known.name.clone(),
        url: known.url.clone(),
        model: known.model.clone(),
        protocol: known.protocol.clone(),
        role: known.role,
        direct: known.direct,
        turns: count,
        throughput: known.throughput,
        failed: turns().filter(|turn| failed(turn)).count() as u64,
        failures: failures(turns()),
        times: Figure::ALL
            .into_iter()
            .filter_map(|figure| generator::of_round(run, index, figure))
            .collect(),
        correct: share(decided.iter().filter(|right| **right).count(), decided.len()),
        reused: share(turns().filter(|turn| turn.reused).count(), turns().count()),
        dispatch_lag_p99_ns: dispatch_lag(run, index),
        cpu_ns_per_request: cpu.map(|cpu| cpu.value).or(total),
        cpu_low_ns: cpu.map(|cpu| cpu.interval.low),
        cpu_high_ns: cpu.map(|cpu| cpu.interval.high),
        memory_bytes: known.memory_bytes,
        stated: known.stated.clone(),
        taken_out: known.taken_out.as_ref().map(taken_out),
        failure: known.failure.clone(),
        streams: known.streams,
        setup: known.setup.clone(),
        outage: outage::outage(facts, run, index),
    }
}

/// Failed turns by the way they ended.
fn failures<'a>(turns: impl Iterator<Item = &'a PairedTurn>) -> BTreeMap<String, u64> {
    let mut failures = BTreeMap::new();
    for turn in turns.filter(|turn| failed(turn)) {
        let word = match turn.outcome {
            Outcome::Failed(class) => class.name().to_owned(),
            Outcome::Rejected(status) => format!("status {status}"),
            outcome => outcome.name().to_owned(),
        };
        *failures.entry(word).or_default() += 1;
    }
    failures
}

fn taken_out(taken: &TakenOut) -> String {
    format!("after {}: {}", plimsoll_report::format::seconds(taken.at.as_secs_f64()), taken.why)
}

fn dispatch_lag(run: Run<'_>, target: usize) -> Option<f64> {
    let mut lags: Vec<f64> =
        run.turns(target).map(|turn| as_f64(turn.generator.dispatch)).collect();
    lags.sort_unstable_by(f64::total_cmp);
    let enough = lags.len() as u64 >= samples_needed(0.99);
    nearest_rank(&lags, 0.99).filter(|_| enough)
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Counts the measured blocks: all; those that every target completed; and those that lack only
/// turns that were rejected as expected.
pub(crate) fn count_blocks(facts: &Facts, run: Run<'_>) -> BlockCounts {
    let measured = run.batching.measured(run.blocks).count();
    let mut counts = BlockCounts {
        planned: facts.planned_blocks,
        alone: (run.blocks.len() - measured) as u64,
        one_in: facts.one_in.max(1),
        ..BlockCounts::default()
    };
    for block in run.batching.measured(run.blocks) {
        counts.recorded += 1;
        let all = |ended: fn(&PairedTurn) -> bool| {
            (0..facts.targets.len()).all(|index| turn(block, index).is_some_and(ended))
        };
        if all(|turn| turn.outcome == Outcome::Completed) {
            counts.complete += 1;
        } else if all(is_as_expected) {
            counts.refused_as_expected += 1;
        }
    }
    counts
}

fn is_as_expected(turn: &PairedTurn) -> bool {
    turn.outcome == Outcome::Completed || turn.as_expected() == Some(true)
}
