//! A mergeable copy of what was counted.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::cell::{Cell, CellKey};

/// What was counted, per stage x scenario x lane. Merging is associative and commutative: integers are
/// added, nothing is averaged.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    cells: BTreeMap<CellKey, Cell>,
}

impl Snapshot {
    /// A snapshot of nothing.
    pub const fn new() -> Self {
        Self { cells: BTreeMap::new() }
    }

    /// Adds what another worker, interval or shard counted.
    pub fn merge(&mut self, other: Self) {
        for (key, cell) in other.cells {
            match self.cells.entry(key) {
                Entry::Vacant(place) => drop(place.insert(cell)),
                Entry::Occupied(mut place) => place.get_mut().merge(&cell),
            }
        }
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

    pub(crate) fn cell(&mut self, key: CellKey) -> &mut Cell {
        self.cells.entry(key).or_default()
    }
}
