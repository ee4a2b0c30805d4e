//! Judges one round: from blocks to a result.

use plimsoll_measure::{Block, Nanos};
use plimsoll_rules::{Finding, Level};
use plimsoll_stats::Looks;

use crate::batching::Batching;
use crate::comparisons::{headline, whole_time};
use crate::facts::{Facts, Schedule};
use crate::pairs::Run;
use crate::result::{SCHEMA, Stopping, Versus};
use crate::threshold::AddedThreshold;
use crate::{
    answers, claims, control, cpu, differences, disturbance, errors, findings, margin, policy,
    targets,
};

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
        errors: errors::errors(facts, run),
        verdicts: policy::verdicts(facts, run),
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
        (versus.worse_than_margin, versus.margin_unknown) = margin::worse(versus, share);
    }
    versus.findings = findings::findings(versus);
}
