//! One round: from blocks to what can be said of the targets.

use plimsoll_measure::{Block, Nanos};
use plimsoll_stats::Looks;

use crate::batching::Batching;
use crate::comparisons::{headline, whole_time};
use crate::facts::{Facts, Schedule, TargetFacts};
use crate::pairs::Run;
use crate::result::{BlockCounts, SCHEMA, Stopping, Versus};
use crate::threshold::AddedThreshold;
use crate::{
    added_distribution, claims, control, cpu, detectable, differences, disturbance, errors, margin,
    policy, stalls, targets, workload_mismatch,
};

/// Judges the targets of a run by its blocks. Blocks may come in any order; warm-up is not among
/// them.
pub fn judge(facts: &Facts, blocks: &[Block]) -> Versus {
    match facts.decided_at {
        // What was decided on is what is shown.
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
    let blocks =
        BlockCounts { lost: errors::lost(facts, run), ..targets::count_blocks(facts, run) };
    let found = targets::targets(facts, run);
    let disturbance = disturbance::disturbances(facts, run, headline);
    let mut versus = Versus {
        differences: differences::differences(facts, run, headline),
        added: added_distribution::distributions(facts, run, headline),
        errors: errors::errors(facts, run),
        verdicts: policy::verdicts(facts, run),
        cpu: cpu::differences(facts, run),
        unlike: unlike(facts),
        workload_mismatch: workload_mismatch::mismatches(facts, run),
        targets: found,
        blocks,
        headline,
        disturbance,
        ..head(facts)
    };
    versus.warnings = warnings(&versus);
    conclude(&mut versus, &facts.thresholds);
    check_control(facts, &mut versus);
    if versus.blocks.recorded == 0 {
        versus.invalidate("no block was recorded: nothing can be compared".to_owned());
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

/// How targets differ by what was known before the load.
fn unlike(facts: &Facts) -> Vec<String> {
    let targets = facts.targets.iter();
    let differs = targets.flat_map(|target: &TargetFacts| {
        target.differs.iter().map(move |how| format!("{}: {how}", target.name))
    });
    differs.collect()
}

fn check_control(facts: &Facts, versus: &mut Versus) {
    let Some(control) = facts.control() else { return };
    let (control, reference) = (facts.name(control), facts.name(facts.reference()));
    let found = control::control(control, reference, versus.headline, &versus.differences);
    if let Some(why) = control::invalid(&found, reference) {
        versus.invalidate(why);
    }
    versus.warnings.extend(control::warning(&found));
    versus.control = Some(found);
}

/// What a reader must know.
pub(crate) fn warnings(versus: &Versus) -> Vec<String> {
    let reference = versus.reference();
    let targets = versus.targets.iter();
    let stalls: Vec<_> =
        targets.filter_map(|target| Some((&*target.name, target.stalls?))).collect();
    // A difference that stalls explain is no disturbance by other targets.
    let disturbed = versus
        .disturbance
        .iter()
        .filter(|found| stalls.iter().all(|(name, _)| *name != found.target && *name != reference));
    disturbance::warnings(versus.same_host, disturbed)
        .into_iter()
        .chain(stalls::warning(&stalls, reference))
        .chain(workload_mismatch::connections(&versus.targets))
        .collect()
}

/// What follows from the differences: sentences, thresholds, the margin, and what could have been
/// seen. Also of several rounds.
pub(crate) fn conclude(versus: &mut Versus, thresholds: &[AddedThreshold]) {
    versus.claims = claims::claims(versus);
    versus.detectable =
        detectable::of(versus.headline, versus.looks(), &versus.differences, &versus.errors);
    versus.thresholds = thresholds.iter().flat_map(|bound| bound.judge(versus)).collect();
    if let Some(share) = versus.margin {
        (versus.worse_than_margin, versus.margin_unknown) = margin::worse(versus, share);
    }
}
