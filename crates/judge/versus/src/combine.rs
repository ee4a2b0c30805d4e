//! Combines several rounds of the same plan.
//!
//! The interval of one round covers its own time window only. Over several rounds, differences are
//! means, and their intervals include the variation between windows (Hartung and Knapp).

use std::collections::BTreeMap;

use plimsoll_rules::Finding;
use plimsoll_stats::Looks;
use plimsoll_stats::runs::{OverRounds, Round, hartung_knapp};
use plimsoll_stats::sign_test::sign_p;
use plimsoll_stats::student_t::critical_95;

use crate::disturbance::matters;
use crate::generator::{self, mean};
use crate::judge::conclude;
use crate::result::{
    self, BlockCounts, CpuDifference, Difference, Disturbance, ErrorDifference, Kind, Outage,
    OwnTimes, RoundResult, TargetResult, Verdicts, Versus, WorkloadMismatch,
};
use crate::streams::Streams;
use crate::threshold::AddedThreshold;

/// Reason for a missing mean over rounds.
const TOO_FEW_ROUNDS: &str = "measured in fewer than two rounds";

/// The reason for a missing mean: a round's own reason, if there is one.
fn refused(has_mean: bool, of_round: Option<&str>) -> Option<String> {
    (!has_mean).then(|| of_round.unwrap_or(TOO_FEW_ROUNDS).to_owned())
}

/// Combines rounds into one result; returns a single round unchanged, and `None` without rounds.
/// All rounds have the same plan, so they have the same targets in the same order.
pub fn combine(rounds: &[Versus]) -> Option<Versus> {
    let last = rounds.last()?;
    if rounds.len() == 1 {
        return Some(last.clone());
    }
    let mut versus = Versus {
        rounds: u32::try_from(rounds.len()).unwrap_or(u32::MAX),
        duration_s: rounds.iter().map(|round| round.duration_s).sum(),
        blocks: blocks(rounds),
        targets: targets(rounds),
        differences: last.differences.iter().map(|found| difference(rounds, found)).collect(),
        errors: last.errors.iter().map(|found| errors(rounds, found)).collect(),
        verdicts: verdicts(rounds),
        cpu: last.cpu.iter().map(|found| cpu(rounds, found)).collect(),
        workload_mismatch: mismatches(rounds),
        ..last.clone()
    };
    versus.disturbance =
        last.disturbance.iter().map(|found| disturbance(rounds, &versus, found)).collect();
    versus.by_round = by_round(rounds);
    conclude(&mut versus, &thresholds(last));
    versus.invalid.clear();
    for why in invalid(rounds) {
        versus.invalidate(why);
    }
    Some(versus)
}

fn thresholds(versus: &Versus) -> Vec<AddedThreshold> {
    versus
        .thresholds
        .iter()
        .filter_map(|found: &plimsoll_metrics::ThresholdResult| {
            AddedThreshold::parse(&found.metric, &found.expression).ok()
        })
        .collect()
}

/// Value, lower and upper end of its interval in one round, and the degrees of freedom if known.
type Measured = (f64, f64, f64, Option<f64>);

fn over(found: impl Iterator<Item = Measured>) -> Option<OverRounds> {
    hartung_knapp(
        &found
            .map(|(value, low, high, freedom): Measured| {
                // Without degrees of freedom, only the variation between rounds is known.
                let standard_error =
                    freedom.map_or(0.0, |freedom| (high - low) / 2.0 / critical_95(freedom));
                Round { value, standard_error }
            })
            .collect::<Vec<_>>(),
    )
}

fn difference(rounds: &[Versus], like: &Difference) -> Difference {
    let found: Vec<&Difference> = rounds
        .iter()
        .filter_map(|round| {
            let (target, reference) = (&like.target, &like.reference);
            round.difference(target, reference, like.figure, like.kind, &like.quantile)
        })
        .collect();
    let pairs = found.iter().map(|found| found.pairs).sum();
    let measured = found.iter().filter_map(|found| {
        let (value, low, high) = found.measured()?;
        Some((value, low, high, found.degrees_of_freedom))
    });
    let count = measured.clone().count();
    // The times of the targets are means of all rounds.
    let over = over(measured).filter(|_| count == rounds.len());
    let of_round = found.iter().find_map(|found| found.refused.as_deref());
    let has_p = Difference::is_zero_for_equals(like.kind, &like.quantile);
    let generator = found.iter().filter_map(|found| found.generator_ns).reduce(f64::max);
    let limits = over
        .zip(generator)
        .map(|(over, most)| (over.interval.low - most, over.interval.high + most));
    Difference {
        pairs,
        at_least_ns: limits.map(|limits| limits.0),
        at_most_ns: limits.map(|limits| limits.1),
        value_ns: over.map(|over| over.value),
        low_ns: over.map(|over| over.interval.low),
        high_ns: over.map(|over| over.interval.high),
        effective_pairs: None,
        batches: over.map(|_| count as u64),
        degrees_of_freedom: over.map(|_| (count - 1) as f64),
        p: over.map(|over| over.p_zero).filter(|p| has_p && !p.is_nan()),
        between_rounds_ns: over.map(|over| over.between),
        generator_ns: generator,
        refused: refused(over.is_some(), of_round),
        ..like.clone()
    }
}

/// The headline figure of each target, by round.
fn by_round(rounds: &[Versus]) -> Vec<RoundResult> {
    let numbered = (1_u32..).zip(rounds);
    let rows = numbered.flat_map(|(round, versus)| {
        versus.targets.iter().map(move |target| {
            let added = versus.headline_added().find(|found| found.target == target.name);
            let added = added.and_then(Difference::limited);
            RoundResult {
                round,
                target: target.name.clone(),
                failed: target.failed,
                p50_ns: target.own(versus.headline).and_then(|own| own.p50_ns),
                added_ns: added.map(|(value, low, high)| [value, low, high]),
            }
        })
    });
    rows.collect()
}

fn errors(rounds: &[Versus], like: &ErrorDifference) -> ErrorDifference {
    let found: Vec<_> = rounds
        .iter()
        .filter_map(|round| {
            round.errors.iter().find(|found: &&ErrorDifference| {
                (&found.target, &found.reference) == (&like.target, &like.reference)
            })
        })
        .collect();
    let only_target = found.iter().map(|found| found.only_target).sum();
    let only_reference = found.iter().map(|found| found.only_reference).sum();
    let by_batch = found.iter().any(|found| found.by_batch);
    // If failures come in bursts within a round, rounds are dependent too: each round counts as one
    // sign.
    let p = if by_batch {
        let more = found.iter().filter(|found| found.only_target > found.only_reference).count();
        let fewer = found.iter().filter(|found| found.only_target < found.only_reference).count();
        sign_p(more as u64, fewer as u64, Looks::Once)
    } else {
        sign_p(only_target, only_reference, Looks::Once)
    };
    ErrorDifference {
        pairs: found.iter().map(|found| found.pairs).sum(),
        only_target,
        only_reference,
        p,
        by_batch,
        ..like.clone()
    }
}

fn cpu(rounds: &[Versus], like: &CpuDifference) -> CpuDifference {
    let found = rounds.iter().filter_map(|round| {
        round.cpu.iter().find(|found: &&CpuDifference| {
            (&found.target, &found.reference) == (&like.target, &like.reference)
        })
    });
    let over = over(found.clone().filter_map(|found| {
        Some((found.value_ns?, found.low_ns?, found.high_ns?, found.degrees_of_freedom))
    }));
    let count = found.filter(|found| found.value_ns.is_some()).count();
    CpuDifference {
        value_ns: over.map(|over| over.value),
        low_ns: over.map(|over| over.interval.low),
        high_ns: over.map(|over| over.interval.high),
        p: over.map(|over| over.p_zero).filter(|p| !p.is_nan()),
        degrees_of_freedom: over.map(|_| (count - 1) as f64),
        refused: refused(over.is_some(), None),
        ..like.clone()
    }
}

fn disturbance(rounds: &[Versus], whole: &Versus, like: &Disturbance) -> Disturbance {
    let found = rounds.iter().filter_map(|round| {
        round.disturbance.iter().find(|found: &&Disturbance| found.target == like.target)
    });
    let over = over(found.filter_map(|f| Some((f.value_ns?, f.low_ns?, f.high_ns?, None))));
    let reference = whole.reference();
    let added = whole.difference(&like.target, reference, whole.headline, Kind::Added, "p50");
    let added = added.and_then(|found| found.value_ns).unwrap_or_default();
    Disturbance {
        value_ns: over.map(|over| over.value),
        low_ns: over.map(|over| over.interval.low),
        high_ns: over.map(|over| over.interval.high),
        matters: over
            .is_some_and(|over| matters(over.value, over.interval.low, over.interval.high, added)),
        refused: refused(over.is_some(), like.refused.as_deref()),
        ..like.clone()
    }
}

fn blocks(rounds: &[Versus]) -> BlockCounts {
    let blocks = rounds.iter().map(|round| &round.blocks);
    BlockCounts {
        planned: blocks.clone().map(|blocks| blocks.planned).sum(),
        recorded: blocks.clone().map(|blocks| blocks.recorded).sum(),
        complete: blocks.clone().map(|blocks| blocks.complete).sum(),
        alone: blocks.clone().map(|blocks| blocks.alone).sum(),
        refused_as_expected: blocks.clone().map(|blocks| blocks.refused_as_expected).sum(),
        one_in: blocks.map(|blocks| blocks.one_in).max().unwrap_or(1),
    }
}

/// Sums counts over the rounds, and averages shares and percentiles.
fn targets(rounds: &[Versus]) -> Vec<TargetResult> {
    let Some(last) = rounds.last() else { return Vec::new() };
    last.targets
        .iter()
        .enumerate()
        .map(|(index, last): (usize, &TargetResult)| {
            let all: Vec<&TargetResult> =
                rounds.iter().filter_map(|round| round.targets.get(index)).collect();
            let mean = |of: fn(&TargetResult) -> Option<f64>| mean(all.iter().map(|t| of(t)));
            TargetResult {
                turns: all.iter().map(|target| target.turns).sum(),
                failed: all.iter().map(|target| target.failed).sum(),
                failures: failures(&all),
                throughput: mean(|target| target.throughput),
                times: last.times.iter().map(|times| own_times(&all, times)).collect(),
                correct: mean(|target| target.correct),
                reused: mean(|target| target.reused),
                dispatch_lag_p99_ns: mean(|target| target.dispatch_lag_p99_ns),
                cpu_ns_per_request: mean(|target| target.cpu_ns_per_request),
                cpu_low_ns: None,
                cpu_high_ns: None,
                stated: result::combine(all.iter().filter_map(|target| target.stated.as_ref())),
                taken_out: all.iter().find_map(|target| target.taken_out.clone()),
                streams: Streams::combine(all.iter().filter_map(|target| target.streams)),
                failure: all.iter().find_map(|target| target.failure.clone()),
                // A time without its round would mislead, so it is dropped.
                outage: all.iter().any(|target| target.outage.is_some()).then(Outage::default),
                setup: setup(&all),
                ..last.clone()
            }
        })
        .collect()
}

/// The findings of every round: a difference before the load once, an overload with its round.
fn setup(all: &[&TargetResult]) -> Vec<Finding> {
    let mut first = BTreeMap::new();
    for (round, target) in (1..).zip(all) {
        for finding in &target.setup {
            let stage = finding.values.get("stage").map(|name| format!("{name} of round {round}"));
            let subject = (finding.code, finding.values.get("what"), stage.clone());
            first.entry(subject).or_insert_with(|| finding.clone().with_some("stage", stage));
        }
    }
    first.into_values().collect()
}

fn failures(all: &[&TargetResult]) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for (word, count) in all.iter().flat_map(|target| &target.failures) {
        *sum.entry(word.clone()).or_default() += count;
    }
    sum
}

fn own_times(all: &[&TargetResult], like: &OwnTimes) -> OwnTimes {
    let times: Vec<&OwnTimes> = all.iter().filter_map(|target| target.own(like.figure)).collect();
    generator::over_rounds(&times, like.figure)
}

fn verdicts(rounds: &[Versus]) -> Option<Verdicts> {
    let last = rounds.last()?.verdicts.clone()?;
    let all: Vec<_> = rounds.iter().filter_map(|round| round.verdicts.as_ref()).collect();
    let mut matrix = last.matrix;
    for target in &mut matrix {
        target.turns.clear();
        let same = all.iter().flat_map(|all| &all.matrix);
        let same = same.filter(|other| other.target == target.target);
        for (expected, row) in same.flat_map(|other| &other.turns) {
            for (actual, count) in row {
                let into = target.turns.entry(expected.clone()).or_default();
                *into.entry(actual.clone()).or_default() += count;
            }
        }
    }
    Some(Verdicts { matrix, different: all.iter().map(|verdicts| verdicts.different).sum() })
}

/// The mismatches of all rounds: the mean over the pairs of one that every round has, or else the
/// first one of its kind, with its round.
fn mismatches(rounds: &[Versus]) -> Vec<WorkloadMismatch> {
    let mut all: Vec<(u32, Vec<&WorkloadMismatch>)> = Vec::new();
    for (round, versus) in (1..).zip(rounds) {
        for found in &versus.workload_mismatch {
            let same = all.iter_mut().find(|(_, known)| {
                known[0].about == found.about && known[0].is_of(&found.target, &found.reference)
            });
            match same {
                Some((_, known)) => known.push(found),
                None => all.push((round, vec![found])),
            }
        }
    }
    all.iter().map(|(round, found)| mismatch(*round, found, rounds.len())).collect()
}

fn mismatch(round: u32, found: &[&WorkloadMismatch], rounds: usize) -> WorkloadMismatch {
    let first = found[0];
    if found.len() < rounds {
        let about = format!("{} (round {round})", first.about);
        return WorkloadMismatch { about, ..first.clone() };
    }
    let pairs: u64 = found.iter().map(|one| one.pairs).sum();
    let [of_target, of_reference] = found.iter().fold([0.0; 2], |[own, other]: [f64; 2], one| {
        let weight = one.pairs as f64 / pairs.max(1) as f64;
        [own + one.of_target * weight, other + one.of_reference * weight]
    });
    WorkloadMismatch { of_target, of_reference, pairs, ..first.clone() }
}

fn invalid(rounds: &[Versus]) -> Vec<String> {
    let numbered = (1_u32..).zip(rounds);
    numbered
        .flat_map(|(number, round)| {
            round.invalid.iter().map(move |why| format!("round {number}: {why}"))
        })
        .collect()
}
