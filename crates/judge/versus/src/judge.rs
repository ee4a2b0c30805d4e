//! Judges one round: from blocks to a result.

use plimsoll_measure::{Block, Nanos};
use plimsoll_metrics::confusion_matrix::Matrix;
use plimsoll_metrics::{Bound, Comparison, ConfusionMatrix, Judgement};
use plimsoll_report::format;
use plimsoll_rules::{Finding, Level};
use plimsoll_stats::Looks;

use crate::batching::Batching;
use crate::claims::{self, FAILURES};
use crate::comparisons::{headline, whole_time};
use crate::facts::{Facts, Schedule};
use crate::pairs::{Run, turn};
use crate::result::{Kind, Role, SCHEMA, Stopping, TargetMatrix, TargetResult, Verdicts, Versus};
use crate::threshold::AddedThreshold;
use crate::{answers, control, cpu, differences, disturbance, outage, targets};

/// Judges the targets of a run from its blocks, which may come in any order and exclude the
/// warm-up.
pub fn judge(facts: &Facts, blocks: &[Block]) -> Versus {
    match facts.decided_at {
        // Shows exactly the blocks on which the run was decided.
        Some(at) => {
            let seen: Vec<Block> = blocks.iter().filter(|b| b.start < at).cloned().collect();
            let first = seen.iter().map(|block| block.start).min().unwrap_or(at);
            let duration_s = at.saturating_sub(first).as_secs_f64();
            Versus { duration_s, ..judge_all(facts, &seen) }
        }
        None => judge_all(facts, blocks),
    }
}

fn judge_all(facts: &Facts, blocks: &[Block]) -> Versus {
    let batching = Batching::of(blocks, facts.looks);
    let run = Run { blocks, batching: &batching };
    let headline = headline(facts, blocks);
    let blocks = targets::count_blocks(facts, run);
    let found = targets::targets(facts, run);
    let disturbance = disturbance::disturbances(facts, run, headline);
    let mut versus = Versus {
        differences: differences::differences(facts, run, headline),
        errors: differences::errors(facts, run),
        verdicts: verdicts(facts, run),
        cpu: cpu::differences(facts, run),
        workload_mismatch: answers::mismatches(facts, run),
        targets: found,
        blocks,
        headline,
        disturbance,
        ..head(facts)
    };
    check_control(facts, &mut versus);
    conclude(&mut versus, &facts.thresholds);
    let control = versus.findings.iter().find(|finding| finding.level == Level::Invalid);
    if let Some(why) = control.map(Finding::text) {
        versus.invalidate(why);
    }
    if versus.blocks.recorded == 0 {
        versus.invalidate("no block was recorded, so the targets cannot be compared".to_owned());
    }
    versus
}

fn head(facts: &Facts) -> Versus {
    let gap_ns = match facts.schedule {
        Schedule::Spread { gap } => Some(gap.as_u64()),
        Schedule::Together | Schedule::Turns => None,
    };
    Versus {
        schema: SCHEMA.to_owned(),
        name: facts.name.clone(),
        rounds: 1,
        schedule: facts.schedule.name().to_owned(),
        gap_ns,
        rate: facts.rate,
        duration_s: facts.duration_s,
        same_host: facts.same_host,
        margin: facts.margin,
        stopping: (facts.looks == Looks::Always).then(|| Stopping {
            decided_at_ns: facts.decided_at.map(Nanos::as_u64),
            planned_s: facts.duration_s,
        }),
        whole: whole_time(facts),
        ..Versus::default()
    }
}

fn check_control(facts: &Facts, versus: &mut Versus) {
    let Some(control) = facts.control() else { return };
    versus.control = Some(control::control(facts.name(control), versus));
}

/// Derives findings, thresholds and the margin from the differences, of one or several rounds.
pub(crate) fn conclude(versus: &mut Versus, thresholds: &[AddedThreshold]) {
    let mismatches = &versus.workload_mismatch;
    for found in &mut versus.differences {
        let (target, reference) = (&found.target, &found.reference);
        found.other_answers = mismatches.iter().any(|other| other.is_of(target, reference));
    }
    versus.claims = claims::claims(versus);
    versus.thresholds = AddedThreshold::judge_all(thresholds, versus);
    if let Some(share) = versus.margin {
        (versus.worse_than_margin, versus.margin_unknown) = worse(versus, share);
    }
    versus.findings = findings(versus);
}

// The findings on a comparison, ordered by urgency.

/// Smallest reported difference between two shares of reused connections.
const REUSED_DIFFER: f64 = 0.01;
/// The difference must also exceed this many standard errors, to exclude chance.
const STANDARD_ERRORS: f64 = 3.0;

/// All findings except single differences: outages, different answers, then the rest by code.
pub(crate) fn findings(versus: &Versus) -> Vec<Finding> {
    // The finding on an outage already reports the failures.
    let is_down = |name: &str| {
        let target = versus.targets.iter().find(|target| target.name == name);
        target.is_some_and(|target| target.outage.is_some())
    };
    let failures = versus.claims.iter().filter(|claim| claim.holds && claim.about == FAILURES);
    let failures = failures.filter(|claim| !is_down(&claim.target));
    let setup = versus.targets.iter().filter(|target| !is_down(&target.name));
    // An overload during the load, and differences before it.
    let setup = setup.flat_map(|target| target.setup.iter().cloned());
    versus
        .targets
        .iter()
        .filter_map(outage::finding)
        .chain(setup)
        .chain(versus.other_answers())
        .chain(failures.map(crate::result::Claim::finding))
        .chain(control::finding(versus))
        .chain(connections(&versus.targets))
        .chain(disturbance::findings(versus))
        .collect()
}

/// The finding on targets with different shares of reused connections.
fn connections(targets: &[TargetResult]) -> Option<Finding> {
    // Failures close connections, and a backlog opens them.
    if targets.iter().any(|target| {
        target.failed as f64 > REUSED_DIFFER * target.turns as f64 || target.overload().is_some()
    }) {
        return None;
    }
    let mut reused: Vec<(&TargetResult, f64)> =
        targets.iter().filter_map(|target| Some((target, target.reused?))).collect();
    let shares: Vec<_> = reused
        .iter()
        .map(|(target, share)| format!("{} {}", target.name, format::share(*share)))
        .collect();
    reused.sort_by(|one, other| one.1.total_cmp(&other.1));
    let ((least, low), (most, high)) = (reused.first()?, reused.last()?);
    let error = (variance(*low, least.turns) + variance(*high, most.turns)).sqrt();
    (high - low > REUSED_DIFFER.max(STANDARD_ERRORS * error))
        .then(|| Finding::new(405).with("shares", shares.join(", ")).with("least", &least.name))
}

/// Variance of a share of this many turns. One success and one failure are added, because a share
/// of a single turn is not certain (Agresti and Caffo, 2000).
fn variance(share: f64, turns: u64) -> f64 {
    let turns = turns as f64;
    let share = (share * turns + 1.0) / (turns + 2.0);
    share * (1.0 - share) / (turns + 2.0)
}

// Judges every target except the best by the margin.

/// Statements on targets that are worse than the best one by more than the margin, and on targets
/// for which this is unknown. The order of the targets does not matter. The upstream takes no part,
/// because no target can be as fast.
pub(crate) fn worse(versus: &Versus, margin: f64) -> (Vec<String>, Vec<String>) {
    let judged = versus.targets.iter().filter(|target| target.role != Role::Control);
    let judged: Vec<_> = judged.filter(|target| !target.direct).collect();
    let medians = judged
        .iter()
        .filter_map(|target| Some((&*target.name, target.own(versus.headline)?.p50_between_ns?)));
    let Some((best, median)) = medians.min_by(|a, b| a.1.1.total_cmp(&b.1.1)) else {
        return (Vec::new(), vec!["no target has a median: too few requests completed".to_owned()]);
    };
    let (mut worse, mut unknown) = (Vec::new(), Vec::new());
    let limit = format::percent(margin);
    for target in judged.iter().filter(|target| target.name != best) {
        let name = &target.name;
        match keeps(versus, [name, best], [median.0, median.1], margin, judged.len() - 1) {
            Judgement::Pass => {}
            Judgement::Fail => {
                worse.push(format!("{name} is worse than {best} by more than {limit}"));
            }
            Judgement::Inconclusive(why) => {
                unknown
                    .push(format!("{name} may be worse than {best} by more than {limit}: {why}"));
            }
        }
    }
    if judged.len() < 2 {
        unknown.push(format!("the margin needs a second target beside {best}"));
    }
    (worse, unknown)
}

/// Whether a target's difference to the best one is within the margin: a share of the best one's
/// median, which itself is known only within the measurement error.
fn keeps(
    versus: &Versus,
    [name, best]: [&str; 2],
    [least, most]: [f64; 2],
    margin: f64,
    among: usize,
) -> Judgement {
    let own = versus.difference(name, best, versus.headline, Kind::Added, "p50");
    let reverse = versus.difference(best, name, versus.headline, Kind::Added, "p50");
    let added = |among| {
        let limits = own.and_then(|found| found.limits_among(among));
        limits.or_else(|| reverse?.limits_among(among).map(|[low, high]| [-high, -low]))
    };
    let Some(between) = added(1) else {
        let refused = own.or(reverse).and_then(|found| found.refused.clone());
        let none = format!("no request completed on both {name} and {best}");
        return Judgement::Inconclusive(refused.unwrap_or(none));
    };
    let bound = Bound::new(Comparison::AtMost, 0.0);
    let kept = bound.judge(
        |among| {
            let [low, high] = added(among).unwrap_or(between);
            [low - most * margin, high - least * margin]
        },
        among,
    );
    Judgement::new(kept, || {
        let [low, high] = between.map(|nanos| nanos / 1e6);
        let added = format::difference(f64::midpoint(low, high), low, high);
        let allowed = format::time(f64::midpoint(least, most) * margin / 1e6);
        format!("it adds {added}, and {allowed} are allowed")
    })
}

// Policy decisions: the decisions of each target, and how often targets disagree.

/// The policy decisions; `None` if no scenario expects one.
fn verdicts(facts: &Facts, run: Run<'_>) -> Option<Verdicts> {
    let targets = 0..facts.targets.len();
    let matrix: Vec<TargetMatrix> = targets
        .map(|index| TargetMatrix {
            target: facts.targets[index].name.clone(),
            turns: matrix(run, index),
        })
        .collect();
    if matrix.iter().all(|target| target.turns.is_empty()) {
        return None;
    }
    // The upstream decides nothing, so only compared targets can disagree.
    let judged = facts.compared();
    let measured = run.batching.measured(run.blocks);
    let different = measured.filter(|block| differ(block, &judged)).count() as u64;
    Some(Verdicts { matrix, different })
}

fn matrix(run: Run<'_>, target: usize) -> Matrix {
    let mut counts = ConfusionMatrix::default();
    run.turns(target).for_each(|turn| counts.count(turn.expected, turn.decision));
    counts.matrix()
}

/// Whether two of the judged targets that responded decided differently.
fn differ(block: &Block, judged: &[usize]) -> bool {
    let turns = judged.iter().filter_map(|&index| turn(block, index));
    let mut decisions =
        turns.filter(|turn| turn.expected.is_some()).filter_map(|turn| turn.decision);
    let Some(first) = decisions.next() else { return false };
    decisions.any(|decision| decision != first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str, turns: u64, reused: f64) -> TargetResult {
        TargetResult {
            name: name.to_owned(),
            turns,
            reused: Some(reused),
            ..TargetResult::default()
        }
    }

    #[test]
    fn shares_that_chance_explains_are_not_named() {
        // 17 of 21 and 16 of 20 differ by a single connection.
        assert_eq!(connections(&[target("a", 21, 0.809), target("b", 20, 0.8)]), None);
        assert_eq!(connections(&[target("a", 1, 1.0), target("b", 1, 0.0)]), None);
        assert_eq!(connections(&[target("a", 60, 0.9), target("b", 60, 0.8)]), None);
        // 100 of 1,000 fewer; the standard error is 1.6 %.
        let found = connections(&[target("a", 1_000, 0.9), target("b", 1_000, 0.8)]).unwrap();
        assert!(found.text().contains("(a 90.00%, b 80.00%)"), "{}", found.text());
        assert!(found.fix().contains("keep-alive at b"), "{}", found.fix());
        assert!(connections(&[target("a", 1_000, 1.0), target("b", 1_000, 0.0)]).is_some());
    }
}
