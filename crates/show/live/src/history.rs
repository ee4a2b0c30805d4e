//! The last two minutes of a part of a run.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_measure::{ErrorClass, Nanos};
use plimsoll_metrics::{Counters, Distribution, GroupStats, Metric, samples_needed};

/// Seconds that are kept.
pub(crate) const SECONDS: usize = 120;

/// One second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// After the run's start, in seconds.
    pub(crate) at_s: f64,
    /// Requests planned per second.
    pub(crate) planned: f64,
    /// Requests completed per second.
    pub(crate) completed: f64,
    /// Output tokens per second, of completed requests.
    pub(crate) tokens: f64,
    /// The run's time.
    pub(crate) time: Option<Spread>,
    /// The time to the first token.
    pub(crate) ttft: Option<Spread>,
}

/// All requests, or those of one scenario or target.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) points: VecDeque<Point>,
    /// Counts since the start.
    pub(crate) counters: Counters,
    /// Failures since the start, by class.
    pub(crate) errors: BTreeMap<ErrorClass, u64>,
}

/// One interval of a part of a run, while it is added up.
#[derive(Default)]
pub(crate) struct Interval {
    pub(crate) counters: Counters,
    time: Distribution,
    ttft: Distribution,
    errors: BTreeMap<ErrorClass, u64>,
}

impl Interval {
    /// Adds the requests of one cell.
    pub(crate) fn add(&mut self, cell: &GroupStats, time: Metric) {
        self.counters.merge(cell.counters());
        let pairs = [(time, &mut self.time), (Metric::Ttft, &mut self.ttft)];
        for (metric, sum) in pairs {
            if let Some(values) = cell.distribution(metric) {
                sum.merge(values);
            }
        }
        cell.errors().iter().for_each(|(class, n)| *self.errors.entry(*class).or_default() += n);
    }
}

impl History {
    /// Adds an interval that ended at `at`.
    pub(crate) fn add(&mut self, interval: &Interval, at: Nanos, length: Nanos) {
        let seconds = length.as_secs_f64();
        let Counters {
            scheduled,
            completed,
            output_tokens_reported_in_stage: reported,
            output_tokens_estimated_in_stage: estimated,
            ..
        } = interval.counters;
        self.counters.merge(&interval.counters);
        for (class, n) in &interval.errors {
            *self.errors.entry(*class).or_default() += n;
        }
        if self.points.len() >= SECONDS {
            self.points.pop_front();
        }
        let [planned, completed, tokens] = [scheduled, completed, reported + estimated]
            .map(|count| if seconds > 0.0 { count as f64 / seconds } else { 0.0 });
        self.points.push_back(Point {
            at_s: at.as_secs_f64(),
            planned,
            completed,
            tokens,
            time: Spread::of(&interval.time),
            ttft: Spread::of(&interval.ttft),
        });
    }

    /// The last second.
    pub(crate) fn last(&self) -> Point {
        self.points.back().copied().unwrap_or_default()
    }
}

/// Median and upper end of the times of a second, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) p50: f64,
    pub(crate) upper: f64,
    /// The upper end: `p99` where there are times enough for it, else `max`.
    pub(crate) name: &'static str,
}

impl Spread {
    pub(crate) fn of(values: &Distribution) -> Option<Self> {
        let is_enough = values.count() >= samples_needed(0.99);
        let (name, q) = if is_enough { ("p99", 0.99) } else { ("max", 1.0) };
        let (p50, upper) = (values.nearest_rank(0.5)?, values.nearest_rank(q)?);
        Some(Self { p50: p50.as_millis_f64(), upper: upper.as_millis_f64(), name })
    }
}

/// Median, upper end and the name of that, where they are known.
pub(crate) fn parts(spread: Option<Spread>) -> (Option<f64>, Option<f64>, &'static str) {
    spread.map_or((None, None, "max"), |all| (Some(all.p50), Some(all.upper), all.name))
}
