//! A mergeable copy of what was counted.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::batches::Batches;
use crate::catalog::Metric;
use crate::cell::{Cell, CellKey};
use crate::confidence::{self, Doubt, Interval};
use crate::distribution::{Distribution, bucket};

/// What was counted, per stage x scenario x lane. Merging is associative and commutative: integers are
/// added, nothing is averaged.
///
/// Snapshots of one time are put together with [`Snapshot::merge`], snapshots that follow one another
/// with [`Snapshot::append`]: only from the latter can confidence intervals be made.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    cells: BTreeMap<CellKey, Cell>,
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

    /// Every cell that has been touched, by stage, then scenario, then lane.
    pub fn cells(&self) -> impl Iterator<Item = (CellKey, &Cell)> {
        self.cells.iter().map(|(key, cell)| (*key, cell))
    }

    /// All cells that `filter` accepts, added up.
    pub fn total(&self, filter: impl Fn(CellKey) -> bool) -> Cell {
        let mut total = Cell::default();
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
        filter: &dyn Fn(CellKey) -> bool,
    ) -> Result<Interval, Doubt> {
        let value = whole.quantile(q).ok_or(Doubt::Samples)?;
        // Where many values are equal to the percentile, the share up to it may be the same in every
        // batch, and only the share below it tells that they came in a burst.
        let limit = bucket(value.as_u64());
        let upto = self.batches.spread(metric, limit, filter)?;
        let below = self.batches.spread(metric, limit.saturating_sub(1), filter)?;
        confidence::interval(whole, q, &upto.wider(below))
    }
}

/// What a recorder has counted becomes a snapshot.
impl FromIterator<(CellKey, Cell)> for Snapshot {
    fn from_iter<I: IntoIterator<Item = (CellKey, Cell)>>(cells: I) -> Self {
        Self { cells: cells.into_iter().collect(), batches: Batches::new() }
    }
}
