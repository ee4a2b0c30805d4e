//! The knee of a tier: searched, not read off the steps of the sweep.

use plimsoll_measure::Nanos;

use super::{Subject, Tier, TierResult, is_kept};
use crate::measurement::{Length, Measurement};
use crate::result::MeasurementResult;
use crate::runner::{Sought, SuiteRunner};

/// The bounds of a step applied to each request, and the share of requests that must keep them.
pub(super) const OBJECTIVE: &str = "response_time<100ms : 99%";

/// Searches the knees of the targets that were swept, probe by probe.
pub(super) fn search(
    runner: &mut SuiteRunner<'_>,
    tier: &Tier,
    measured: &mut [(&Subject, TierResult)],
) {
    let Some(budget) = runner.knee_budget().filter(|_| !runner.is_interrupted()) else { return };
    let (mut sought, mut results) = (Vec::new(), Vec::new());
    for (subject, result) in measured {
        let Some(from) = lowest(&result.steps) else {
            result.knee = Err("no step of the sweep may be used".to_owned());
            continue;
        };
        let target = &subject.gateway.target;
        let measurement = Measurement::builtin(&result.name, target, tier.profile, &[]);
        // Each probe has a rate and a length of its own.
        let measurement = measurement.rate(from, Length::new(Nanos::ZERO, Nanos::from_secs(1)));
        let (name, to) = (subject.name.clone(), f64::INFINITY);
        sought.push(Sought { name, measurement, from, first: from, to });
        results.push(result);
    }
    if sought.is_empty() {
        return;
    }
    let found = runner.search_knees(tier.name, OBJECTIVE, budget, &sought);
    let found = found.map_err(|error| error.to_string());
    if let Err(why) = &found {
        runner.log(&format!("{}: {why}", tier.name));
    }
    for (place, result) in results.into_iter().enumerate() {
        result.knee = found.as_ref().map(|found| found[place].clone()).map_err(Clone::clone);
    }
}

/// Half of the highest rate of the sweep that kept its bounds, or of the lowest usable rate: the
/// search begins at a rate that is certainly kept.
fn lowest(steps: &[MeasurementResult]) -> Option<f64> {
    let kept = steps.iter().rfind(|step| is_kept(step) == Some(true));
    let rate = kept.or_else(|| steps.first()).and_then(|step| step.rate)?;
    Some((rate / 2.0).max(1.0))
}
