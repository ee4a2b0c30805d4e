//! Counts and times of one stage and target in one interval.

use std::collections::BTreeMap;

use plimsoll_measure::ErrorClass;
use serde::{Deserialize, Serialize};

use super::TIMED;
use super::compact::{self, CompactDistribution};
use crate::catalog::Counters;
use crate::group_stats::GroupStats;

/// Counts and times of one stage and target in one interval.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Slice {
    /// Requests whose intended start is in the interval.
    pub(super) due: u64,
    /// Requests dispatched in it.
    pub(super) sent: u64,
    /// Requests that ended in it and had been dispatched.
    pub(super) ended_after_sent: u64,
    pub(super) counters: Counters,
    pub(super) errors: BTreeMap<ErrorClass, u64>,
    pub(super) statuses: BTreeMap<u16, u64>,
    pub(super) pacing_lag: Option<CompactDistribution>,
    pub(super) times: [Times; TIMED.len()],
}

/// The values of one metric.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Times {
    pub(super) measured: Option<CompactDistribution>,
    /// The same without the generator's part, if that is another distribution.
    pub(super) undisturbed: Option<CompactDistribution>,
}

impl Slice {
    /// Adds what a worker counted in the interval.
    pub(super) fn add(&mut self, stats: &GroupStats) {
        let times = TIMED.map(|metric| Times {
            measured: stats.distribution(metric).map(CompactDistribution::from_distribution),
            undisturbed: stats.distribution(metric).and_then(|_| {
                stats.undisturbed(metric).as_ref().map(CompactDistribution::from_distribution)
            }),
        });
        self.merge(&Self {
            counters: *stats.counters(),
            errors: stats.errors().clone(),
            statuses: stats.statuses().clone(),
            pacing_lag: stats.pacing_lag().map(CompactDistribution::from_distribution),
            times,
            ..Self::default()
        });
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.due += other.due;
        self.sent += other.sent;
        self.ended_after_sent += other.ended_after_sent;
        self.counters.merge(&other.counters);
        other.errors.iter().for_each(|(class, n)| *self.errors.entry(*class).or_default() += n);
        other.statuses.iter().for_each(|(code, n)| *self.statuses.entry(*code).or_default() += n);
        compact::add(&mut self.pacing_lag, other.pacing_lag.as_ref());
        for (mine, theirs) in self.times.iter_mut().zip(&other.times) {
            mine.merge(theirs);
        }
    }
}

impl Times {
    fn merge(&mut self, other: &Self) {
        if self.undisturbed.is_some() || other.undisturbed.is_some() {
            let mut without = self.undisturbed.take().or_else(|| self.measured.clone());
            compact::add(&mut without, other.undisturbed.as_ref().or(other.measured.as_ref()));
            self.undisturbed = without;
        }
        compact::add(&mut self.measured, other.measured.as_ref());
    }
}
