//! Puts warning signs in bands, policy decisions and response times into sentences.

use crate::bounded_figure::BoundedFigure;
use crate::catalog::Metric;
use crate::quantile::QUANTILES;
use crate::results::{Group, Results};
use crate::run_metadata::RunMetadata;
use crate::threshold::{BandLevel, BandResult};

/// A median that exceeds the one of the stage before by this factor has risen.
const RISE: f64 = 1.2;

/// The warning signs, or a sentence that there are none. Empty if neither bands nor expected policy
/// decisions define what is healthy.
pub(super) fn warning_signs(
    metadata: &RunMetadata,
    results: &Results,
    bands: &[BandResult],
) -> Vec<String> {
    let expects =
        metadata.expectations.iter().any(|expectation| expectation.policy_decision.is_some());
    if (bands.is_empty() && !expects) || results.total.counters.scheduled == 0 {
        return Vec::new();
    }
    let mut signs: Vec<_> = bands.iter().filter_map(of_band).collect();
    signs.extend(policy_decisions(&results.total));
    let medians = medians(metadata, results);
    signs.extend(medians.as_deref().and_then(rising_median));
    if !signs.is_empty() {
        return signs;
    }
    let healthy =
        if bands.iter().any(|band: &BandResult| matches!(band.level, BandLevel::Inconclusive(_))) {
            "No warning sign, but not every band could be judged."
        } else if medians.is_none() {
            "No warning sign, but not every median may be used."
        } else {
            "Healthy: no warning sign."
        };
    vec![healthy.to_owned()]
}

fn of_band(band: &BandResult) -> Option<String> {
    let (metric, bounds) = (&band.metric, &band.expression);
    match band.level {
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
        signs
            .push(format!("{unanswered} requests with an expected policy decision got no answer."));
    }
    signs
}

/// The median response times of the measured stages that have one, in milliseconds; `None` if there
/// are several and one of them must not be used.
fn medians(metadata: &RunMetadata, results: &Results) -> Option<Vec<f64>> {
    let stages = metadata.stages.iter().zip(&results.by_stage);
    let figures: Vec<_> = stages
        .filter(|(stage, _)| !stage.warmup)
        .filter_map(|(_, group)| group.distribution(Metric::ResponseTime)?.figure(&QUANTILES[0]))
        .collect();
    if figures.len() < 2 {
        Some(Vec::new())
    } else {
        figures.iter().map(BoundedFigure::sound).collect()
    }
}

/// A median that rises from each stage to the next: the target is at its limit, or a queue builds
/// up.
fn rising_median(medians: &[f64]) -> Option<String> {
    let rises = medians.len() > 1 && medians.windows(2).all(|two| two[1] > two[0] * RISE);
    let (first, last) = (medians.first()?, medians.last()?);
    rises.then(|| {
        format!(
            "The median response time rises from stage to stage, from {first:.2} ms to {last:.2} ms: \
             a limit is near."
        )
    })
}
