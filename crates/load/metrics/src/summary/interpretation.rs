//! What bands and policy decisions mean, in sentences.

use crate::catalog::Metric;
use crate::facts::StageInfo;
use crate::summary::{Group, RunSummary};
use crate::threshold::{BandLevel, BandResult};

/// A median this much above that of the stage before has risen.
const RISE: f64 = 1.2;

/// The warning signs, or that there are none; nothing where neither bands nor policy decisions say what is healthy.
pub(super) fn of(summary: &RunSummary) -> Vec<String> {
    let expects =
        summary.expectations.iter().any(|expectation| expectation.policy_decision.is_some());
    if (summary.bands.is_empty() && !expects) || summary.total.counters.scheduled == 0 {
        return Vec::new();
    }
    let mut signs: Vec<_> = summary.bands.iter().filter_map(of_band).collect();
    signs.extend(policy_decisions(&summary.total));
    signs.extend(rising(summary));
    if !signs.is_empty() {
        return signs;
    }
    let unsure = |standing: &BandResult| matches!(standing.level, BandLevel::Inconclusive(_));
    vec![if summary.bands.iter().any(unsure) {
        "No warning sign, but not every band could be judged.".to_owned()
    } else {
        "Healthy: no warning sign.".to_owned()
    }]
}

fn of_band(standing: &BandResult) -> Option<String> {
    let (metric, bounds) = (&standing.metric, &standing.expression);
    match standing.level {
        BandLevel::Degraded => Some(format!("Degraded: {metric} is off its target ({bounds}).")),
        BandLevel::Critical => {
            Some(format!("Critical: {metric} is beyond both bounds ({bounds})."))
        }
        BandLevel::Target | BandLevel::Inconclusive(_) => None,
    }
}

fn policy_decisions(total: &Group) -> Vec<String> {
    let mut signs = Vec::new();
    let counters = &total.counters;
    if total.policy_decisions.contains_key("block") && counters.blocked == 0 {
        signs.push(
            "Nothing was blocked, though blocks are expected: the policy may be inactive."
                .to_owned(),
        );
    }
    let wrong = counters.judged - counters.as_expected;
    if wrong > 0 {
        signs.push(format!(
            "{wrong} of {} policy decisions are not the expected ones: see the policy table.",
            counters.judged
        ));
    }
    let expected: u64 = total.policy_decisions.values().flat_map(|row| row.values()).sum();
    let unanswered = expected - counters.judged;
    if unanswered > 0 {
        signs.push(format!("{unanswered} requests whose policy decision matters got no answer."));
    }
    signs
}

/// Does the median rise in every stage over the one before? Then the target is running full, or something piles up.
fn rising(summary: &RunSummary) -> Option<String> {
    let measured = |stage: &StageInfo| !stage.warmup;
    let medians: Vec<_> = summary
        .stages
        .iter()
        .zip(&summary.by_stage)
        .filter(|(stage, _)| measured(stage))
        .filter_map(|(_, group)| group.distribution(Metric::ResponseTime)?.p50)
        .collect();
    let rises = medians.len() > 1 && medians.windows(2).all(|two| two[1] > two[0] * RISE);
    let (first, last) = (medians.first()?, medians.last()?);
    rises.then(|| {
        format!("The median response time rises from stage to stage, from {first:.2} ms to {last:.2} ms: a limit is near.")
    })
}
