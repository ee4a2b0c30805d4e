//! T14: the server adds an overhead of 250 us, and a paired comparison finds it.

use plimsoll_measure::{Nanos, Sample, ScenarioId};
use plimsoll_mock::LogRecord;
use plimsoll_runner::Finished;
use plimsoll_stats::descriptive::{mean, quantile_of};

use super::{Observations, SMALL};
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::mock_log::join;
use crate::runner::Runner;

/// The overhead that is planted, in microseconds.
const PLANTED: f64 = 250.0;

/// Three series in each repeat, request by request in random order: the target, the target with the
/// overhead, and the target again, which must show no difference.
const SERIES: &str = include_str!("overhead.yaml");
const DIRECT: ScenarioId = ScenarioId(0);
const OVERHEAD: ScenarioId = ScenarioId(1);
const AGAIN: ScenarioId = ScenarioId(2);

/// Slices of a repeat. Only requests of the same slice, which are neighbours in time, are compared.
const SLICES: usize = 20;

/// Repeats of a paired comparison.
pub(super) fn t14_planted_overhead(runner: &Runner) -> Result<Observations, CalibrateError> {
    let (mut planted, mut none) = (Vec::new(), Vec::new());
    for repeat in 0..runner.usual_or_full(3, 40) {
        let mock = runner.mock("")?;
        let profile = format!("{SMALL}stages: '@600:1s'\nseed: {repeat}\n{SERIES}");
        let run = runner.run(&mock.url(), &profile)?;
        let log = mock.finish()?.requests;
        planted.push(difference(&run, &log, OVERHEAD));
        none.push(difference(&run, &log, AGAIN));
    }
    let (found, zero) = (mean(&planted), mean(&none));
    Ok(vec![
        Check::within("planted overhead, mean of all repeats", "us", found, PLANTED, 10.0),
        Check::within("A against A, mean of all repeats", "us", zero, 0.0, 10.0),
    ]
    .into())
}

/// The difference of medians to the direct series in microseconds, as its mean over the slices.
fn difference(run: &Finished, log: &[LogRecord], series: ScenarioId) -> f64 {
    let mut pairs = join(run, log);
    pairs.sort_unstable_by_key(|(sample, _)| sample.timeline.intended);
    let slice = pairs.len().div_ceil(SLICES).max(1);
    let slices = pairs.chunks(slice);
    let differences = slices.map(|slice| median_of(slice, series) - median_of(slice, DIRECT));
    mean(&differences.collect::<Vec<_>>())
}

type Pair<'l> = (&'l Sample, &'l LogRecord);

fn median_of(pairs: &[Pair<'_>], series: ScenarioId) -> f64 {
    let of = pairs.iter().filter(|(sample, _)| sample.scenario == series);
    let times = of.filter_map(|(sample, _)| sample.timeline.service_time());
    quantile_of(&times.map(Nanos::as_micros_f64).collect::<Vec<_>>(), 0.5)
}
