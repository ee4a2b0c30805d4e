//! The last two minutes of a part of a run.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_measure::{ErrorClass, Nanos};
use plimsoll_metrics::{Counters, Distribution, GroupStats, Metric};

/// Number of seconds kept.
pub(crate) const SECONDS: usize = 120;

/// Results of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// Time since the run's start, in seconds.
    pub(crate) at_s: f64,
    /// Requests planned per second.
    pub(crate) planned: f64,
    /// Requests completed per second.
    pub(crate) completed: f64,
    /// Output tokens per second, of completed requests.
    pub(crate) tokens: f64,
    /// The headline time.
    pub(crate) time: Option<Spread>,
    /// The time to first token.
    pub(crate) ttft: Option<Spread>,
}

/// Results of all requests, or of one scenario or target.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) points: VecDeque<Point>,
    /// Counts since the start.
    pub(crate) counters: Counters,
    /// Failures since the start, by class.
    pub(crate) errors: BTreeMap<ErrorClass, u64>,
}

/// One interval of a part of a run, while its cells are summed.
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

/// Times of a second, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) p50: f64,
    /// `None` if there are too few times.
    pub(crate) p99: Option<f64>,
    pub(crate) max: f64,
}

/// The statistic shown for times above their median.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UpperEnd {
    P99,
    /// The maximum, which exists even for few times.
    #[default]
    Max,
}

impl UpperEnd {
    /// The statistic that all of these times have.
    pub(crate) fn of_all(mut spreads: impl Iterator<Item = Option<Spread>>) -> Self {
        let all = spreads.all(|spread| spread.is_some_and(|spread| spread.p99.is_some()));
        if all { Self::P99 } else { Self::Max }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::P99 => "p99",
            Self::Max => "max",
        }
    }
}

impl Spread {
    pub(crate) fn of(values: &Distribution) -> Option<Self> {
        let [p50, max] = [values.nearest_rank(0.5)?, values.max()?].map(Nanos::as_millis_f64);
        Some(Self { p50, p99: values.quantile(0.99).map(Nanos::as_millis_f64), max })
    }

    pub(crate) const fn upper(self, end: UpperEnd) -> Option<f64> {
        match end {
            UpperEnd::P99 => self.p99,
            UpperEnd::Max => Some(self.max),
        }
    }
}

/// Median, upper end and its name, if they are known.
pub(crate) fn parts(spread: Option<Spread>) -> (Option<f64>, Option<f64>, &'static str) {
    let end = UpperEnd::of_all(std::iter::once(spread));
    (spread.map(|all| all.p50), spread.and_then(|all| all.upper(end)), end.name())
}
