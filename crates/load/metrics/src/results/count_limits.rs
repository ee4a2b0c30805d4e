//! The error of the rates of a stage that holds few answers.

use plimsoll_measure::Nanos;
use plimsoll_stats::normal::NORMAL_95;
use plimsoll_stats::student_t;

use super::Group;
use crate::bounded_figure::REFUSED_SHARE;
use crate::catalog::{Metric, RATES};
use crate::distribution::Distribution;
use crate::edges::WHOLE;
use crate::group_stats::GroupStats;
use crate::run_metadata::LoadModel;

/// The rates of answers.
const OF_ANSWERS: [&str; 4] =
    ["throughput", "goodput", "output_token_rate_reported", "output_token_rate_estimated"];

/// A count with the limits of its 95 % interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CountLimits {
    low: f64,
    value: f64,
    high: f64,
}

impl CountLimits {
    /// The completed requests of a stage of this length. Each request that an edge cuts counts at
    /// least as nothing and at most as a whole.
    pub(super) fn in_stage(model: LoadModel, seconds: f64, stats: &GroupStats) -> Self {
        let (counters, edges) = (stats.counters(), &stats.edges);
        let moments = counters.completed_in_stage as f64;
        let value = moments + edges.completed as f64 / WHOLE as f64;
        let (low, high) = match model {
            _ if edges.entered + edges.left == 0 => (value, value),
            LoadModel::Closed => closed(value, moments, stats),
            LoadModel::Open => open(moments, seconds, stats),
        };
        let unknown = counters.in_flight as f64;
        let most = moments + edges.left as f64;
        let least = (moments - edges.entered_completed as f64).min(value);
        Self { low: low.max(least), value, high: (high + unknown).min(most.max(value)) }
    }

    /// Writes the intervals of a group's rates of answers, if they are wider than 5 %.
    pub(super) fn write(self, group: &mut Group) {
        let Self { low, value, high } = self;
        if group.duration_s <= 0.0 || (high - value).max(value - low) <= value * REFUSED_SHARE {
            return;
        }
        for rate in RATES.iter().filter(|rate| OF_ANSWERS.contains(&rate.name)) {
            // Without an answer, nothing is known of its tokens.
            let share = if value > 0.0 {
                (rate.of)(&group.rates).map(|rate| rate / value)
            } else {
                (rate.name == OF_ANSWERS[0]).then(|| 1.0 / group.duration_s)
            };
            let interval = share.map(|share| (rate.key.to_owned(), [low * share, high * share]));
            group.rate_intervals.extend(interval);
        }
    }

    pub(super) fn add(self, other: Self) -> Self {
        let [low, high] = [self.low + other.low, self.high + other.high];
        Self { low, value: self.value + other.value, high }
    }
}

/// Independent cycles: the variance of their number is the squared coefficient of variation over
/// it. In a queue that users enter at once the first answers are shorter than later ones, and their
/// shares too large: then the mean in flight over the mean time (Little) differs.
fn closed(value: f64, moments: f64, stats: &GroupStats) -> (f64, f64) {
    let edges = &stats.edges;
    let (mut count, mut sum) = (edges.entered as f64, edges.time as f64);
    let (mut squares, mut little) = (edges.squares as f64, value);
    if let Some(times) = stats.distribution(Metric::ResponseTime) {
        let (of, total) = (times.count() as f64, times.sum() as f64);
        squares += of * times.standard_deviation().powi(2) + total.powi(2) / of;
        (count, sum) = (count + of, sum + total);
        if stats.counters().completed == stats.counters().scheduled {
            little = stats.in_flight_time as f64 * of / total;
        }
    }
    if count < 2.0 || value <= 0.0 {
        return (0.0, f64::INFINITY);
    }
    let variation = (squares * count / sum.powi(2) - 1.0).max(0.0);
    let half = student_t::critical_95(count - 1.0) * (variation / value).sqrt();
    let (mut least, mut most) = (value, value);
    if (little / value - 1.0).abs() > half.max(LEAST_DRIFT) {
        (least, most) = (value.min(little).min(moments), value.max(little));
    }
    let most = if half < 1.0 { most / (1.0 - half) } else { f64::INFINITY };
    (least / (1.0 + half), most)
}

/// Two rates of a closed stage that differ by less agree.
const LEAST_DRIFT: f64 = 0.02;

/// Answers that came and went in flight over the edges, as Poisson numbers. At the start of a load
/// no answer can end before the shortest has passed: those due in the stage end in the rest of it.
fn open(moments: f64, seconds: f64, stats: &GroupStats) -> (f64, f64) {
    let (counters, edges) = (stats.counters(), &stats.edges);
    let half = NORMAL_95 * ((edges.entered + edges.left) as f64).sqrt();
    let own = moments - edges.entered_completed as f64;
    let shortest = stats.distribution(Metric::ResponseTime).and_then(Distribution::min);
    let rest = 1.0 - shortest.map_or(seconds, Nanos::as_secs_f64) / seconds;
    let steady = if rest > 0.0 { own / rest } else { counters.dispatched_in_stage as f64 };
    (moments.min(steady) - half, moments.max(steady) + half)
}
