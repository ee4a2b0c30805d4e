//! T14: the server adds an overhead of 250 us, and a paired comparison finds it.

use plimsoll_harness::CompletedRun;
use plimsoll_harness::statistics::{mean, quantile_of};
use plimsoll_measure::{Nanos, Sample, ScenarioId};
use plimsoll_mock::LogRecord;

use super::{Observations, SMALL};
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::mock_log::{join, true_service_us};
use crate::runner::Runner;
use crate::statistics::half_width;

/// The overhead that is planted, in microseconds.
const PLANTED: f64 = 250.0;

/// Three series in each repeat, request by request in random order: the target, the target with the
/// overhead, and the target again, which must show no difference.
const SERIES: &str = "scenarios:
  - {name: direct, headers: {x-mock-ttft: 500us}}
  - {name: overhead, headers: {x-mock-ttft: 750us}}
  - {name: again, headers: {x-mock-ttft: 500us}}
";
const DIRECT: ScenarioId = ScenarioId(0);
const OVERHEAD: ScenarioId = ScenarioId(1);
const AGAIN: ScenarioId = ScenarioId(2);

/// Slices of a repeat. Only requests of the same slice, which are neighbours in time, are compared.
const SLICES: usize = 20;
/// Quantile of Student's distribution, 19 degrees of freedom, for a two-sided interval of 99 %. Of
/// forty intervals of 95 % two would miss on average, and in a third of all calibrations more; of
/// 99 %, fewer than one.
const T_19: f64 = 2.861;

/// A paired difference.
struct Difference {
    us: f64,
    half_width: f64,
    /// The same difference by the server's own record of the same requests.
    truth: f64,
}

impl Difference {
    fn covers_truth(&self) -> bool {
        (self.us - self.truth).abs() <= self.half_width
    }

    fn covers_zero(&self) -> bool {
        self.us.abs() <= self.half_width
    }
}

/// Repeats of a paired comparison, each with its interval.
pub(super) fn t14_planted_overhead(runner: &Runner) -> Result<Observations, CalibrateError> {
    let repeats = runner.usual_or_full(8, 40);
    let (mut planted, mut none) = (Vec::new(), Vec::new());
    for repeat in 0..repeats {
        let mock = runner.mock("")?;
        let profile = format!("{SMALL}stages: '@600:1s'\nseed: {repeat}\n{SERIES}");
        let run = runner.run(&mock.url(), &profile)?;
        let log = mock.finish()?.requests;
        planted.push(difference(&run, &log, OVERHEAD));
        none.push(difference(&run, &log, AGAIN));
    }
    let found = |of: &[Difference]| mean(&of.iter().map(|d| d.us).collect::<Vec<_>>());
    let count = |of: &[Difference], covers: fn(&Difference) -> bool| {
        of.iter().filter(|difference| covers(difference)).count() as f64
    };
    let enough = (f64::from(repeats) * 0.95).floor();
    Ok(vec![
        Check::within(
            "planted overhead, mean of all repeats",
            "us",
            found(&planted),
            PLANTED,
            10.0,
        ),
        Check::within("A against A, mean of all repeats", "us", found(&none), 0.0, 10.0),
        Check::at_least(
            "99 % intervals that cover the truth",
            "",
            count(&planted, Difference::covers_truth),
            enough,
        ),
        Check::at_least(
            "A against A: intervals of no difference",
            "",
            count(&none, Difference::covers_zero),
            enough,
        ),
    ]
    .into())
}

/// The difference of medians to the direct series, as its mean over the slices with an interval.
fn difference(run: &CompletedRun, log: &[LogRecord], series: ScenarioId) -> Difference {
    let mut pairs = join(run, log);
    pairs.sort_unstable_by_key(|(sample, _)| sample.timeline.intended);
    let slice = pairs.len().div_ceil(SLICES).max(1);
    let of = |time: Time| -> Vec<f64> {
        let over_direct =
            |slice: &[_]| median_of(slice, series, time) - median_of(slice, DIRECT, time);
        pairs.chunks(slice).map(over_direct).collect()
    };
    let measured = of(|(sample, _)| sample.timeline.service_time().map(Nanos::as_micros_f64));
    let truth = mean(&of(|(_, record)| true_service_us(record)));
    Difference { us: mean(&measured), half_width: half_width(&measured, T_19), truth }
}

type Pair<'l> = (&'l Sample, &'l LogRecord);
type Time = fn(&Pair<'_>) -> Option<f64>;

fn median_of(pairs: &[Pair<'_>], series: ScenarioId, time: Time) -> f64 {
    let of = pairs.iter().filter(|(sample, _)| sample.scenario == series);
    quantile_of(&of.filter_map(time).collect::<Vec<_>>(), 0.5)
}
