//! A mergeable copy of what was counted.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::batches::Batches;
use crate::catalog::Metric;
use crate::cell::{GroupKey, GroupStats};
use crate::confidence::{self, Interval, NoIntervalReason};
use crate::distribution::{Distribution, bucket};

/// What was counted, per stage x scenario x target. Merging is associative and commutative: integers are
/// added, nothing is averaged.
///
/// Snapshots of one time are put together with [`Snapshot::merge`], snapshots that follow one another
/// with [`Snapshot::append`]: only from the latter can confidence intervals be made.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    cells: BTreeMap<GroupKey, GroupStats>,
    batches: Batches,
}

impl Snapshot {
    /// A snapshot of nothing.
    pub const fn new() -> Self {
        Self { cells: BTreeMap::new(), batches: Batches::new() }
    }

    /// Adds what the next interval of the run counted, all workers together.
    pub fn append(&mut self, interval: Self) {
        self.batches.add(interval.cells());
        self.merge(interval);
    }

    /// Adds what another worker, interval or shard counted.
    pub fn merge(&mut self, other: Self) {
        for (key, cell) in other.cells {
            match self.cells.entry(key) {
                Entry::Vacant(place) => drop(place.insert(cell)),
                Entry::Occupied(mut place) => place.get_mut().merge(&cell),
            }
        }
        self.batches.merge(other.batches);
    }

    /// Every cell that has been touched, by stage, then scenario, then target.
    pub fn cells(&self) -> impl Iterator<Item = (GroupKey, &GroupStats)> {
        self.cells.iter().map(|(key, cell)| (*key, cell))
    }

    /// All cells that `filter` accepts, added up.
    pub fn total(&self, filter: impl Fn(GroupKey) -> bool) -> GroupStats {
        let mut total = GroupStats::default();
        self.cells().filter(|(key, _)| filter(*key)).for_each(|(_, cell)| total.merge(cell));
        total
    }

    /// The confidence interval of a percentile of `whole`, which is the distribution of the cells that
    /// `filter` accepts.
    pub(crate) fn interval(
        &self,
        whole: &Distribution,
        metric: Metric,
        q: f64,
        filter: &dyn Fn(GroupKey) -> bool,
    ) -> Result<Interval, NoIntervalReason> {
        let value = whole.quantile(q).ok_or(NoIntervalReason::Samples)?;
        // Where many values are equal to the percentile, the share up to it may be the same in every
        // batch, and only the share below it tells that they came in a burst.
        let limit = bucket(value.as_u64());
        let upto = self.batches.spread(metric, limit, filter)?;
        let below = self.batches.spread(metric, limit.saturating_sub(1), filter)?;
        confidence::interval(whole, q, &upto.wider(below))
    }
}

/// What a recorder has counted becomes a snapshot.
impl FromIterator<(GroupKey, GroupStats)> for Snapshot {
    fn from_iter<I: IntoIterator<Item = (GroupKey, GroupStats)>>(cells: I) -> Self {
        Self { cells: cells.into_iter().collect(), batches: Batches::new() }
    }
}
