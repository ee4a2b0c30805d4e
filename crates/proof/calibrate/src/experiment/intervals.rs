//! The intervals that reports print: of a known distribution, do they hold the true percentile as
//! often as they say? In scripted time: hundreds of runs in seconds.

use plimsoll_measure::{
    Moment, MonotonicClock, Nanos, Rng, ScenarioId, Seed, StageId, TargetId, Timeline,
};
use plimsoll_metrics::{
    InstrumentHealth, Interval, Metric, QUANTILES, Recorder, RunEnd, RunInfo, RunMetadata,
    RunSummary, Snapshot, StageInfo, TargetInfo,
};

use super::synthetic::completed;
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::runner::Runner;

/// Of each repeat.
const SECONDS: u64 = 20;
const PER_SECOND: u64 = 100;
/// The share of intervals that hold the truth may be this many standard deviations below 95 %: a
/// good set of them is then farther off once in a thousand calibrations for each figure.
const MOST_DEVIATIONS: f64 = 3.1;
const NOMINAL: f64 = 0.95;

/// How the times of a run follow one another. All have the same distribution of single times, an
/// exponential one of 20 ms.
#[derive(Clone, Copy)]
pub(super) enum Series {
    /// Each is drawn by itself.
    Independent,
    /// With this probability a time is that of the request before: runs of about ten.
    Clustered(f64),
}

/// The printed percentiles whose interval is judged; of p99 two thousand requests have only twenty
/// beyond it.
const JUDGED: [usize; 3] = [0, 1, 2];

/// The share of repeats whose printed interval holds the true percentile; and two runs of one kind,
/// A against A, whose intervals of the median do not meet: at most 5 % of pairs.
pub(super) fn coverage(runner: &Runner) -> Result<(Vec<Check>, Vec<String>), CalibrateError> {
    let seed = MonotonicClock::start().unix_nanos(Moment::EPOCH) % 1_000_000;
    // A debug build takes a tenth of a second for each.
    let usual = if cfg!(debug_assertions) { 30 } else { 200 };
    let repeats = runner.usual_or_full(usual, 2_000);
    let mut checks = Vec::new();
    for (name, series) in
        [("independent", Series::Independent), ("clustered", Series::Clustered(0.9))]
    {
        checks.extend(covered(name, series, seed, repeats)?);
    }
    Ok((checks, vec![format!("seed of the intervals: {seed}")]))
}

fn covered(
    name: &str,
    series: Series,
    seed: u64,
    repeats: u32,
) -> Result<Vec<Check>, CalibrateError> {
    let (mut holding, mut apart, mut before) = ([0.0; JUDGED.len()], 0.0, None::<Interval>);
    for repeat in 0..repeats {
        let summary = scripted_run(
            &mut Seed(seed).rng(name, repeat.into()),
            series,
            InstrumentHealth::default(),
        )?;
        let times = summary.results.total.distribution(Metric::ServiceTime);
        for (count, quantile) in holding.iter_mut().zip(JUDGED.map(|index| QUANTILES[index])) {
            // Of an exponential distribution, quantile q is -mean ln(1 - q).
            let truth = -MEAN_MS * (1.0 - quantile.q).ln();
            let interval = times.and_then(|times| times.interval(&quantile));
            *count += f64::from(interval.is_some_and(|i| i.low <= truth && truth <= i.high));
        }
        let median = times.and_then(|times| times.interval(&QUANTILES[0])).copied();
        if let (Some(a), Some(b)) = (before, median) {
            apart += f64::from(a.high < b.low || b.high < a.low);
        }
        before = median;
    }
    let deviation = (NOMINAL * (1.0 - NOMINAL) / f64::from(repeats)).sqrt();
    let least = MOST_DEVIATIONS.mul_add(-deviation, NOMINAL);
    let mut checks: Vec<_> = holding
        .into_iter()
        .zip(JUDGED.map(|index| QUANTILES[index].label))
        .map(|(count, label)| {
            let what = format!("{name} times: share of intervals that hold the true {label}");
            Check::at_least(what, "", count / f64::from(repeats), least)
        })
        .collect();
    checks.push(Check::at_most(
        format!("{name} times: share of pairs A against A whose medians differ"),
        "",
        apart / f64::from(repeats),
        1.0 - least,
    ));
    Ok(checks)
}

const MEAN_MS: f64 = 20.0;

/// A summary of a run whose times are drawn, in the order in which a worker would record them.
pub(super) fn scripted_run(
    rng: &mut Rng,
    series: Series,
    health: InstrumentHealth,
) -> Result<RunSummary, CalibrateError> {
    let (mut recorder, mut snapshot) =
        (Recorder::new(vec![Moment::EPOCH + Nanos::from_secs(SECONDS)]), Snapshot::new());
    let mut time = MEAN_MS;
    for second in 0..SECONDS {
        for number in 0..PER_SECOND {
            let kept = matches!(series, Series::Clustered(again) if rng.uniform() < again);
            if !kept {
                time = rng.exponential() * MEAN_MS;
            }
            let at = Nanos::from_millis(second * 1_000 + number * 1_000 / PER_SECOND);
            let mut sample = completed(number, Nanos::from_secs_f64(time / 1e3));
            let start = Moment::EPOCH + at;
            sample.timeline = Timeline {
                intended: start,
                dispatched: Some(start),
                finished: Some(start + Nanos::from_secs_f64(time / 1e3)),
                ..Timeline::default()
            };
            recorder.scheduled(StageId(0), ScenarioId(0), TargetId(0));
            recorder.record(&sample, &[], &[]);
        }
        snapshot.append(recorder.take());
    }
    Ok(RunSummary::build(metadata(), health, &snapshot, &[])?)
}

fn metadata() -> RunMetadata {
    let stage = StageInfo {
        name: format!("1:{SECONDS}s"),
        duration_s: SECONDS as f64,
        ..StageInfo::default()
    };
    RunMetadata {
        run: RunInfo { ended: RunEnd::Complete, ..RunInfo::default() },
        stages: vec![stage],
        scenarios: vec!["scripted".to_owned()],
        targets: vec![TargetInfo::default()],
        ..RunMetadata::default()
    }
}
