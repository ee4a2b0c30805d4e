//! T14: an overhead of 250 us is planted, and recovered by pairs.

use plimsoll_measure::{Nanos, Sample, ScenarioId};

use super::{Found, SMALL};
use crate::bench::Bench;
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::ran::Ran;
use crate::server::Server;
use crate::statistics::{half_width, mean, quantile_of};

/// What is planted, in microseconds.
const PLANTED: f64 = 250.0;

/// Three series in each repeat, request by request in random order: the target, the target with the overhead, and the
/// target again, to which it must show no difference.
const SERIES: &str = "scenarios:
  - {name: direct, headers: {x-mock-ttft: 500us}}
  - {name: overhead, headers: {x-mock-ttft: 750us}}
  - {name: again, headers: {x-mock-ttft: 500us}}
";
const DIRECT: ScenarioId = ScenarioId(0);
const OVERHEAD: ScenarioId = ScenarioId(1);
const AGAIN: ScenarioId = ScenarioId(2);

/// Slices of a repeat. The requests of a slice are neighbours in time, and are compared with each other alone.
const SLICES: usize = 20;
/// Quantile of Student's distribution, 19 degrees of freedom, for a two-sided interval of 99 %. Of forty intervals
/// of 95 % two would miss on average, and in a third of all calibrations more; of 99 %, fewer than one.
const T_19: f64 = 2.861;

/// A paired difference.
struct Difference {
    us: f64,
    half_width: f64,
}

impl Difference {
    fn covers(&self, truth: f64) -> bool {
        (self.us - truth).abs() <= self.half_width
    }
}

/// Repeats of a paired comparison, each with its interval.
pub(super) fn t14_planted_overhead(bench: &Bench) -> Result<Found, CalibrateError> {
    let repeats = bench.either(8, 40);
    let mock = bench.mock("")?;
    let (mut planted, mut none) = (Vec::new(), Vec::new());
    for repeat in 0..repeats {
        let ran = compare(bench, &mock, repeat)?;
        planted.push(difference(&ran, DIRECT, OVERHEAD));
        none.push(difference(&ran, DIRECT, AGAIN));
    }
    let found = |of: &[Difference]| mean(&of.iter().map(|d| d.us).collect::<Vec<_>>());
    let covered = |of: &[Difference], truth| of.iter().filter(|d| d.covers(truth)).count() as f64;
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
            covered(&planted, PLANTED),
            enough,
        ),
        Check::at_least("A against A: intervals of no difference", "", covered(&none, 0.0), enough),
    ]
    .into())
}

fn compare(bench: &Bench, mock: &Server, repeat: u32) -> Result<Ran, CalibrateError> {
    bench.run(&mock.url(), &format!("{SMALL}stages: '@600:1s'\nseed: {repeat}\n{SERIES}"))
}

/// The mean over the slices of the difference of medians, with its interval.
fn difference(ran: &Ran, one: ScenarioId, other: ScenarioId) -> Difference {
    let slice = ran.samples.len().div_ceil(SLICES).max(1);
    let mut samples: Vec<&Sample> = ran.samples.iter().collect();
    samples.sort_unstable_by_key(|sample| sample.timeline.intended);
    let differences: Vec<f64> =
        samples.chunks(slice).map(|slice| median(slice, other) - median(slice, one)).collect();
    Difference { us: mean(&differences), half_width: half_width(&differences, T_19) }
}

fn median(samples: &[&Sample], scenario: ScenarioId) -> f64 {
    let of = samples.iter().filter(|sample| sample.scenario == scenario);
    let times = of.filter_map(|sample| sample.timeline.service_time());
    quantile_of(&times.map(Nanos::as_micros_f64).collect::<Vec<_>>(), 0.5)
}
