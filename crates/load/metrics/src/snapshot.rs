//! Snapshots: mergeable copies of a recorder's counts and distributions; and what a view of a run
//! gets of the last one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use plimsoll_measure::{Nanos, ScenarioId, StageId, TargetId};
use plimsoll_stats::NoIntervalReason;
use serde::{Deserialize, Serialize};

use crate::batch_means::BatchMeans;
use crate::catalog::Metric;
use crate::confidence::{self, Interval};
use crate::distribution::{Distribution, bucket_index};
use crate::group_stats::{GroupKey, GroupStats};

/// The counts of each cell (stage x scenario x target). Merging is associative and commutative:
/// integers are added, nothing is averaged.
///
/// [`Snapshot::merge`] combines snapshots of the same time, [`Snapshot::append`] those that follow
/// one another. Confidence intervals need the latter.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    cells: BTreeMap<GroupKey, GroupStats>,
    batches: BatchMeans,
}

impl Snapshot {
    /// An empty snapshot.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the counts of the next interval of the run, of all workers together.
    pub fn append(&mut self, mut interval: Self) {
        self.batches.add(interval.cells());
        // A `TimeSeries` keeps them; here they would grow with the length of the run.
        interval.cells.values_mut().for_each(|cell| cell.starts.clear());
        self.merge(interval);
    }

    /// Adds the counts of another worker, interval or shard.
    pub fn merge(&mut self, other: Self) {
        for (key, cell) in other.cells {
            match self.cells.entry(key) {
                Entry::Vacant(entry) => drop(entry.insert(cell)),
                Entry::Occupied(mut entry) => {
                    let mine = entry.get_mut();
                    mine.merge(&cell);
                    mine.starts.merge(&cell.starts);
                }
            }
        }
        self.batches.merge(other.batches);
    }

    /// Gives the parts of times that targets name other numbers: part `n` becomes `numbers[n]`.
    /// Those without a new number are counted with the parts that have no name.
    pub fn renumber_server_parts(&mut self, numbers: &[Option<usize>]) {
        self.cells.values_mut().for_each(|cell| cell.renumber_server_parts(numbers));
    }

    /// Counts planned arrivals of a stage that a generator which ended early did not dispatch.
    pub fn add_unsent(&mut self, stage: StageId, arrivals: u64) {
        if arrivals > 0 {
            let (scenario, target) = (ScenarioId(0), TargetId(0));
            let key = GroupKey { stage, scenario, target, operation: None };
            let counters = &mut self.cells.entry(key).or_default().counters;
            counters.arrivals_planned += arrivals;
            counters.arrivals_late_by_generator += arrivals;
        }
    }

    /// Every cell with a count, by stage, then scenario, then target.
    pub fn cells(&self) -> impl Iterator<Item = (GroupKey, &GroupStats)> {
        self.cells.iter().map(|(key, cell)| (*key, cell))
    }

    /// All cells that `filter` accepts, added up.
    pub fn total(&self, filter: impl Fn(GroupKey) -> bool) -> GroupStats {
        let mut total = GroupStats::default();
        self.cells().filter(|(key, _)| filter(*key)).for_each(|(_, cell)| total.merge(cell));
        total
    }

    /// The confidence interval of a percentile of `whole`, the distribution of the cells that
    /// `filter` accepts.
    pub(crate) fn interval(
        &self,
        whole: &Distribution,
        metric: Metric,
        q: f64,
        filter: &dyn Fn(GroupKey) -> bool,
    ) -> Result<Interval, NoIntervalReason> {
        let value = whole.quantile(q).ok_or(NoIntervalReason::BeyondExtremes)?;
        // If many values equal the percentile, the share up to it may be the same in every batch.
        // Then only the share below it shows that they came in a burst.
        let limit = bucket_index(value.as_u64());
        let up_to = self.batches.variance(metric, limit, filter)?;
        let below = self.batches.variance(metric, limit.saturating_sub(1), filter)?;
        confidence::interval(whole, q, &up_to.larger(below))
    }
}

/// The counts of a recorder become a snapshot.
impl FromIterator<(GroupKey, GroupStats)> for Snapshot {
    fn from_iter<I: IntoIterator<Item = (GroupKey, GroupStats)>>(cells: I) -> Self {
        Self { cells: cells.into_iter().collect(), batches: BatchMeans::default() }
    }
}

/// The last interval of a run, about a second, for those who show it.
#[derive(Debug)]
pub struct IntervalUpdate<'a> {
    /// Time since the run's start.
    pub elapsed: Nanos,
    /// Index of the current stage; the last one while waiting for responses.
    pub stage: usize,
    /// Length of the interval.
    pub length: Nanos,
    /// Counts and times of the interval.
    pub cells: &'a Snapshot,
    /// Requests in flight.
    pub in_flight: u64,
    /// Measured requests that have ended since the start.
    pub ended: u64,
    /// Whether the run ends before its stages do.
    pub ending: bool,
    /// By target: time at which it was taken out of the comparison, since the run's start.
    pub taken_out: &'a [Option<Nanos>],
    /// The watched processes.
    pub processes: Vec<ProcessNow>,
    /// CPU time of Plimsoll since its start.
    pub own_cpu: Option<Nanos>,
    /// CPU time of Plimsoll divided by time, since the last update.
    pub own_cores: Option<f64>,
}

/// Usage of a watched process and its descendants.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessNow {
    /// Its name in reports.
    pub name: String,
    /// CPU time divided by time, between the last two readings; `None` if the process ended.
    pub cores: Option<f64>,
    /// Resident memory.
    pub rss_bytes: Option<u64>,
}
