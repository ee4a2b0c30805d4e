//! The targets by themselves.

use plimsoll_stats::{nearest_rank, samples_needed};

use crate::batching::Batching;
use crate::cpu;
use crate::facts::{Facts, TakenOut};
use crate::figure::{Figure, as_f64};
use crate::pairs::{Run, failed};
use crate::result::{OwnTimes, TargetResult};

/// One result for each target, in their order.
pub(crate) fn targets(facts: &Facts, run: Run<'_>) -> Vec<TargetResult> {
    (0..facts.targets.len()).map(|index| target(facts, run, index)).collect()
}

fn target(facts: &Facts, run: Run<'_>, index: usize) -> TargetResult {
    let known = &facts.targets[index];
    let turns = || run.turns(index);
    let count = turns().count() as u64;
    let decided = turns().filter_map(plimsoll_measure::PairedTurn::as_expected);
    let decided: Vec<bool> = decided.collect();
    let cpu = cpu::per_request(facts, run, index).ok();
    let total = known.cpu_us_per_request.map(|micros| micros * 1e3);
    TargetResult {
        name: known.name.clone(),
        url: known.url.clone(),
        model: known.model.clone(),
        protocol: known.protocol.clone(),
        role: known.role,
        turns: count,
        failed: turns().filter(|turn| failed(turn)).count() as u64,
        times: Figure::ALL.into_iter().filter_map(|figure| own(run, index, figure)).collect(),
        correct: share(decided.iter().filter(|right| **right).count(), decided.len()),
        reused: share(turns().filter(|turn| turn.reused).count(), turns().count()),
        dispatch_lag_p99_ns: dispatch_lag(run, index),
        cpu_ns_per_request: cpu.map(|cpu| cpu.value).or(total),
        cpu_low_ns: cpu.map(|cpu| cpu.interval.low),
        cpu_high_ns: cpu.map(|cpu| cpu.interval.high),
        memory_bytes: known.memory_bytes,
        upstream_calls_per_turn: known
            .upstream_calls
            .filter(|_| count > 0)
            .map(|calls| calls as f64 / count as f64),
        taken_out: known.taken_out.as_ref().map(taken_out),
    }
}

fn taken_out(taken: &TakenOut) -> String {
    format!("after {}: {}", plimsoll_report::format::seconds(taken.at.as_secs_f64()), taken.why)
}

fn own(run: Run<'_>, target: usize, figure: Figure) -> Option<OwnTimes> {
    let values = run.own(target, figure);
    let at = |q| values.value(q);
    (values.count() > 0).then(|| OwnTimes {
        figure,
        count: values.count() as u64,
        p50_ns: at(0.5),
        p90_ns: at(0.9),
        p99_ns: at(0.99),
    })
}

fn dispatch_lag(run: Run<'_>, target: usize) -> Option<f64> {
    let mut lags: Vec<f64> = run.turns(target).map(|turn| as_f64(turn.dispatch_lag)).collect();
    lags.sort_unstable_by(f64::total_cmp);
    let enough = lags.len() as u64 >= samples_needed(0.99);
    nearest_rank(&lags, 0.99).filter(|_| enough)
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The measured blocks: all, and those that every target completed that it was still given.
pub(crate) fn complete(facts: &Facts, batching: &Batching, run: Run<'_>) -> (u64, u64) {
    let completed = |block: &plimsoll_measure::Block| {
        facts.targets.iter().enumerate().all(|(index, target)| {
            let gone = target.taken_out.as_ref().is_some_and(|taken| block.start >= taken.at);
            let turn = crate::pairs::turn(block, index);
            gone || turn.map_or(batching.is_by_turns(), |turn| {
                turn.outcome == plimsoll_measure::Outcome::Completed
            })
        })
    };
    let all = batching.measured(run.blocks).count() as u64;
    (all, batching.measured(run.blocks).filter(|block| completed(block)).count() as u64)
}
