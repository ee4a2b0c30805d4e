//! The knee of a tier: searched, not read off the steps of the sweep.

use plimsoll_knee::Objective;
use plimsoll_measure::Nanos;

use super::{BOUNDS, Subject, Tier, TierResult};
use crate::measurement::{Length, Measurement};
use crate::result::MeasurementResult;
use crate::runner::{Sought, SuiteRunner};

/// What each request must keep, and the share that must: the bounds of a step, request by request.
pub(super) const OBJECTIVE: &str = "response_time<100ms : 99%";

/// Searches the knees of the targets that were swept, probe by probe.
pub(super) fn search(
    runner: &mut SuiteRunner<'_>,
    tier: &Tier,
    measured: &mut [(&Subject, TierResult)],
) {
    let Some(budget) = runner.knee_budget() else { return };
    if runner.is_interrupted() {
        return;
    }
    let (mut sought, mut places) = (Vec::new(), Vec::new());
    for (place, (subject, result)) in measured.iter_mut().enumerate() {
        let Some(from) = lowest(&result.steps) else {
            result.knee = Err("no step of the sweep may be used".to_owned());
            continue;
        };
        let target = subject.target();
        let measurement = Measurement::builtin(&result.name, target, tier.profile, &[]);
        // Each probe has a rate and a length of its own.
        let measurement = measurement.rate(from, Length::new(Nanos::ZERO, Nanos::from_secs(1)));
        sought.push(Sought { name: subject.name.clone(), measurement, from });
        places.push(place);
    }
    if sought.is_empty() {
        return;
    }
    let found = OBJECTIVE.parse::<Objective>().map_err(|error| error.to_string());
    let found = found.and_then(|objective| {
        let found = runner.search_knees(tier.name, &objective, budget, &sought);
        found.map_err(|error| error.to_string())
    });
    match found {
        Ok(found) => {
            for (place, found) in places.into_iter().zip(found) {
                measured[place].1.knee = Ok(found);
            }
        }
        Err(why) => {
            runner.log(&format!("{}: {why}", tier.name));
            for place in places {
                measured[place].1.knee = Err(why.clone());
            }
        }
    }
}

/// Half of the highest rate of the sweep that was kept, or of the lowest that may be used: the
/// search begins where there is no doubt.
fn lowest(steps: &[MeasurementResult]) -> Option<f64> {
    let kept = steps.iter().rfind(|step| BOUNDS.kept_by(step) == Some(true));
    let rate = kept.or_else(|| steps.first()).and_then(|step| step.rate)?;
    Some((rate / 2.0).max(1.0))
}
