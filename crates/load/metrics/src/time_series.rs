//! Collects what happened when while a run goes on, in bounded memory.
//!
//! ```text
//! Snapshot of a worker, once a second --add--> TimeSeries --TimeRecord::build--> RunTimeline
//! ```

mod build;
mod compact;

use std::collections::BTreeMap;

pub use build::{IntervalHistogram, TimeRecord};
use plimsoll_measure::{ErrorClass, Moment, Nanos, StageId, TargetId};
use serde::{Deserialize, Serialize};

use crate::catalog::{Counters, Metric};
use crate::group_stats::GroupStats;
use crate::run_metadata::RunMetadata;
use crate::snapshot::Snapshot;
use crate::starts::FailedAt;
use crate::time_facts::{Moments, TENTHS};
use crate::time_series::compact::CompactDistribution;

/// The metrics whose times are kept by interval.
pub const TIMED: [Metric; 4] =
    [Metric::ResponseTime, Metric::ServiceTime, Metric::Ttft, Metric::Itl];

/// The most intervals of a run.
pub const MAX_INTERVALS: u32 = 600;

const SECOND: u64 = 1_000_000_000;

/// Interval, stage and target.
type Key = (u32, StageId, TargetId);

/// Counts and times by interval, stage and target.
///
/// An interval is a second. Whenever there would be more than [`MAX_INTERVALS`], each two
/// neighbours become one. So memory depends on the stages and targets, not on the run's length.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TimeSeries {
    origin: Moment,
    /// Seconds of an interval, as a power of two.
    doublings: u32,
    slices: BTreeMap<Key, Slice>,
    /// When the run was over.
    end: Option<Moment>,
    /// Requests that ended, by target and tenth of a second; none once intervals are longer than a
    /// second.
    ended: BTreeMap<TargetId, Vec<u32>>,
    /// When requests were sent that failed.
    failed: BTreeMap<(StageId, TargetId), FailedAt>,
}

impl TimeSeries {
    /// An empty series of a run that began at `origin`.
    pub fn new(origin: Moment) -> Self {
        Self { origin, ..Self::default() }
    }

    /// Adds what a worker counted since its last snapshot, which it took at `at`.
    ///
    /// A snapshot that is up to half a second late belongs to the second before. The worker may
    /// have stood still: then what it counts belongs to the second in which it went on.
    pub fn add(&mut self, at: Moment, snapshot: &Snapshot) {
        self.add_second(self.nearest_second(at).saturating_sub(1), snapshot);
    }

    /// Adds what a worker counted from its last snapshot at `from` until the run was over at `end`.
    pub fn add_rest(&mut self, from: Moment, end: Moment, snapshot: &Snapshot) {
        let last = self.nearest_second(end).saturating_sub(1);
        self.add_second(self.nearest_second(from).max(last), snapshot);
    }

    /// Notes when the run was over.
    pub fn end(&mut self, end: Moment) {
        self.end = self.end.max(Some(end));
    }

    /// The run's start, by its own clock.
    pub const fn origin(&self) -> Moment {
        self.origin
    }

    /// How far the counts go after the run's start, to the second.
    pub fn length(&self) -> Nanos {
        Nanos::new(u64::from(self.intervals()) * (SECOND << self.doublings))
    }

    /// Adds the series of another shard, which has its own clock: both are aligned by their starts.
    pub fn merge(&mut self, other: &Self) {
        while self.doublings < other.doublings {
            self.coarsen();
        }
        let finer = self.doublings - other.doublings;
        for ((index, stage, target), slice) in &other.slices {
            self.slices.entry((index >> finer, *stage, *target)).or_default().merge(slice);
        }
        for (target, ended) in &other.ended {
            let tenths = (0..).zip(ended).filter(|(_, count)| **count > 0);
            tenths.for_each(|(tenth, count)| self.ended_in(*target, tenth, *count));
        }
        for (key, failed) in &other.failed {
            self.failed.entry(*key).or_default().merge(failed);
        }
        if let Some(end) = other.end {
            self.end(self.origin + end.since(other.origin));
        }
    }

    fn nearest_second(&self, at: Moment) -> u32 {
        let nearest = (at.since(self.origin).as_u64() + SECOND / 2) / SECOND;
        u32::try_from(nearest).unwrap_or(u32::MAX)
    }

    /// Adds requests that ended in a second of the run.
    fn add_second(&mut self, second: u32, snapshot: &Snapshot) {
        for (key, cell) in snapshot.cells() {
            let (stage, target) = (key.stage, key.target);
            for (due, n) in cell.starts.due.iter() {
                self.slice(due, stage, target).due += u64::from(n);
            }
            let mut sent = 0;
            for (at, n) in cell.starts.sent.iter() {
                sent += u64::from(n);
                self.slice(at, stage, target).sent += u64::from(n);
            }
            for (tenth, n) in cell.starts.ended.iter() {
                self.ended_in(target, tenth, n);
            }
            self.failed.entry((stage, target)).or_default().merge(&cell.starts.failed);
            let slice = self.slice(second, stage, target);
            slice.ended_after_sent += sent;
            slice.add(cell);
        }
    }

    fn ended_in(&mut self, target: TargetId, tenth: u32, count: u32) {
        let most = MAX_INTERVALS as usize * TENTHS;
        let Ok(tenth) = usize::try_from(tenth) else { return };
        if self.doublings == 0 && tenth < most {
            let ended = self.ended.entry(target).or_default();
            ended.resize(ended.len().max(tenth + 1), 0);
            ended[tenth] = ended[tenth].saturating_add(count);
        }
    }

    fn slice(&mut self, second: u32, stage: StageId, target: TargetId) -> &mut Slice {
        while second >> self.doublings >= MAX_INTERVALS {
            self.coarsen();
        }
        self.slices.entry((second >> self.doublings, stage, target)).or_default()
    }

    /// Makes each two neighbours one.
    fn coarsen(&mut self) {
        self.doublings += 1;
        self.ended.clear();
        let mut halved: BTreeMap<Key, Slice> = BTreeMap::new();
        for ((index, stage, target), slice) in std::mem::take(&mut self.slices) {
            halved.entry((index / 2, stage, target)).or_default().merge(&slice);
        }
        self.slices = halved;
    }

    /// When requests to a target ended or failed, failures outside of warm-up alone.
    fn moments(&self, target: TargetId, metadata: &RunMetadata) -> Moments {
        let mut failed = FailedAt::default();
        for ((stage, of), own) in &self.failed {
            let stage = metadata.stages.get(stage.index());
            if *of == target && stage.is_none_or(|stage| !stage.warmup) {
                failed.merge(own);
            }
        }
        Moments { ended: self.ended.get(&target).cloned().unwrap_or_default(), failed }
    }

    /// Length of an interval.
    fn width(&self) -> Nanos {
        Nanos::new(SECOND << self.doublings)
    }

    /// The slices of an interval, by stage and target.
    fn of_interval(&self, index: usize) -> impl Iterator<Item = (StageId, TargetId, &Slice)> {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let first = (index, StageId(0), TargetId(0));
        let last = (index, StageId(u16::MAX), TargetId(u16::MAX));
        let slices = self.slices.range(first..=last);
        slices.map(|((_, stage, target), slice)| (*stage, *target, slice))
    }

    /// The number of intervals.
    fn intervals(&self) -> u32 {
        self.slices.last_key_value().map_or(0, |((index, ..), _)| index + 1)
    }
}

/// Counts and times of one stage and target in one interval.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Slice {
    /// Requests whose intended start is in the interval.
    due: u64,
    /// Requests dispatched in it.
    sent: u64,
    /// Requests that ended in it and had been dispatched.
    ended_after_sent: u64,
    counters: Counters,
    errors: BTreeMap<ErrorClass, u64>,
    statuses: BTreeMap<u16, u64>,
    pacing_lag: Option<CompactDistribution>,
    times: [Times; TIMED.len()],
}

/// The values of one metric.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Times {
    measured: Option<CompactDistribution>,
    /// The same without the generator's part, if that is another distribution.
    undisturbed: Option<CompactDistribution>,
}

impl Slice {
    /// Adds what a worker counted in the interval.
    fn add(&mut self, stats: &GroupStats) {
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

    fn merge(&mut self, other: &Self) {
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
