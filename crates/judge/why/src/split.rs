//! Where the requests in flight were, by Little's law: `N = X R`.

use plimsoll_metrics::RunSummary;
use plimsoll_report::format::percent;

use crate::growth::mean;
use crate::load::Stage;
use crate::result::{Part, Split};

/// The parts must make up what was in flight but for this share (`judge.md`, section 7).
const TOLERANCE: f64 = 0.02;

/// The split of a stage, or why there is none.
///
/// What was in flight is an integral over time that the workers took from the clock; the parts are
/// rates and response times of requests that completed. The two differ where requests failed or had
/// no end, or where many began before the stage or ended after it: then there is no split.
pub(crate) fn split(summary: &RunSummary, stage: &Stage<'_>) -> Result<Split, String> {
    let targets = &summary.metadata.targets;
    let Some(direct) = targets.iter().find(|target| target.direct) else {
        let how = "`plimsoll versus --direct URL` measures the provider beside the gateway";
        return Err(format!("the run has no target without the gateway; {how}"));
    };
    let in_flight = stage.info.mean_in_flight.filter(|mean| *mean > 0.0);
    let in_flight = in_flight.ok_or("what was in flight is not known")?;
    let of = |target: &str| {
        let (mean_ms, requests) = mean(summary, stage, target)
            .ok_or_else(|| format!("the mean response time of `{target}` must not be used"))?;
        Ok::<_, String>((mean_ms, requests as f64 / stage.info.duration_s))
    };
    let part = |place: String, in_flight| Part { place, in_flight };
    let (direct_ms, _) = of(&direct.name)?;
    let (mut directly, mut parts) = (0.0, Vec::new());
    for target in targets.iter().filter(|target| target.direct) {
        let (mean_ms, rate) = of(&target.name)?;
        directly += rate * mean_ms / 1e3;
    }
    parts.push(part("provider, asked directly".to_owned(), directly));
    for target in targets.iter().filter(|target| !target.direct) {
        let (mean_ms, rate) = of(&target.name)?;
        if mean_ms < direct_ms {
            return Err(format!("`{}` is faster than the direct target", target.name));
        }
        let name = &target.name;
        parts.push(part(format!("gateway {name}"), rate * (mean_ms - direct_ms) / 1e3));
        parts.push(part(format!("provider behind {name}"), rate * direct_ms / 1e3));
    }
    let sum: f64 = parts.iter().map(|part| part.in_flight).sum();
    let adds_up_to = sum / in_flight;
    if (adds_up_to - 1.0).abs() > TOLERANCE {
        let share = percent(adds_up_to);
        return Err(format!(
            "rate x time of what completed is {share} of what was in flight, not within 2 % of it"
        ));
    }
    Ok(Split { in_flight, parts, adds_up_to })
}
