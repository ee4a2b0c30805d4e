//! What each tier costs: every request of it on each target, close together.

use super::{Subject, Tier, TierResult};
use crate::comparison_plan::ComparisonPlan;
use crate::comparison_result::ComparisonResult;
use crate::measurement::Measurement;
use crate::runner::SuiteRunner;
use crate::suite::{PAIRS_PER_S, TIMES_SHORT, comparison_length};
use crate::target::{DIRECT, SuiteTarget};

/// The share of the lowest throughput in the closed loop that all targets together are asked for:
/// what is added is that of requests that do not wait for each other.
const SHARE: f64 = 0.2;

/// Sends the requests of a tier to the upstream and to each target. `measured` are
/// those that carried it, with what the closed loop found.
pub(super) fn compare(
    runner: &mut SuiteRunner<'_>,
    tier: &Tier,
    direct: Option<&SuiteTarget>,
    measured: &[(&Subject, &TierResult)],
) -> Option<ComparisonResult> {
    let behind = direct.map(|direct| (DIRECT.to_owned(), direct.clone()));
    let subjects =
        measured.iter().map(|(subject, _)| (subject.name.clone(), subject.target().clone()));
    let targets: Vec<_> = behind.into_iter().chain(subjects).collect();
    if targets.len() < 2 || runner.is_interrupted() {
        return None;
    }
    // To choose a rate by, a figure that the generator kept down is good enough.
    let ceilings = measured
        .iter()
        .filter_map(|(_, result)| result.ceiling.shown()?.requests_per_s.map(|rate| rate.value));
    let Some(lowest) = ceilings.reduce(f64::min) else {
        let why = "the closed loop had no expected answer, and so there is no rate for it";
        runner.section = "What each tier adds";
        runner.skip(&format!("what is added in {}", tier.name), why);
        return None;
    };
    let rate = (lowest * SHARE / targets.len() as f64).clamp(1.0, PAIRS_PER_S).round();
    let request = Measurement::builtin(tier.name, &targets[0].1, tier.profile, &[]);
    let request = request.rate(rate, comparison_length(runner.options, 30, TIMES_SHORT));
    let comparison = ComparisonPlan::new(tier.name, request, targets).short(runner.options.short);
    Some(runner.compare(&comparison))
}
