//! Balanced random orders of targets.
//!
//! A Williams square of `n` targets (Williams, "Experimental designs balanced for the estimation of
//! residual effects of treatments", 1949) has `n` rows for even `n`, and two such squares have `2
//! n` rows for odd `n`. In its rows every target is equally often in every position and directly
//! after every other target. Each *group* of that many blocks uses the rows of a square in random
//! order, with the targets assigned to its symbols at random.

use plimsoll_measure::{Rng, Seed, TargetId};

use super::PairOrder;

/// The orders of all blocks.
#[derive(Debug)]
pub(crate) struct Orders {
    targets: u16,
    order: PairOrder,
    seed: Seed,
}

/// The orders of one group of blocks.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    targets: usize,
    /// Targets by position, row after row.
    rows: Vec<u16>,
}

impl Orders {
    pub(crate) fn new(targets: u16, order: PairOrder, seed: Seed) -> Self {
        Self { targets: targets.max(1), order, seed }
    }

    pub(crate) const fn targets(&self) -> u16 {
        self.targets
    }

    /// Number of blocks in a group.
    pub(crate) fn group_size(&self) -> u64 {
        rows_of(self.targets).into()
    }

    /// The orders of a group.
    pub(crate) fn group(&self, number: u64) -> Group {
        let targets = self.targets;
        let mut rows: Vec<u16> = (0..rows_of(targets)).collect();
        let mut names: Vec<u16> = (0..targets).collect();
        if self.order == PairOrder::Fixed {
            let rows = rows.iter().flat_map(|_| names.iter().copied()).collect();
            return Group { targets: targets.into(), rows };
        }
        let mut rng = self.seed.rng("order of targets", number);
        shuffle(&mut rows, &mut rng);
        shuffle(&mut names, &mut rng);
        let cells = rows.iter().flat_map(|row| {
            let names = &names;
            (0..targets).map(move |place| names[usize::from(williams(targets, *row, place))])
        });
        Group { targets: targets.into(), rows: cells.collect() }
    }

    /// Position of a target in a block, from 0.
    pub(crate) fn place(&self, block: u64, target: TargetId) -> u8 {
        let size = self.group_size();
        self.group(block / size).place(block % size, target)
    }

    /// Targets of a block by position.
    pub(crate) fn order(&self, block: u64) -> Vec<TargetId> {
        let size = self.group_size();
        self.group(block / size).order(block % size).iter().copied().map(TargetId).collect()
    }
}

impl Group {
    fn order(&self, row: u64) -> &[u16] {
        let start = usize::try_from(row).unwrap_or_default() * self.targets;
        self.rows.get(start..start + self.targets).unwrap_or_default()
    }

    /// Position of a target in a row.
    pub(crate) fn place(&self, row: u64, target: TargetId) -> u8 {
        let place = self.order(row).iter().position(|name| *name == target.0);
        place.and_then(|place| u8::try_from(place).ok()).unwrap_or_default()
    }
}

/// Number of rows of a balanced design.
const fn rows_of(targets: u16) -> u16 {
    if targets.is_multiple_of(2) { targets } else { 2 * targets }
}

/// The symbol at a position of a row. The first row is 0, 1, n-1, 2, n-2, ...; each further one
/// adds 1 to all symbols. For odd `n` the second half of the rows is the first, read backwards.
const fn williams(targets: u16, row: u16, place: u16) -> u16 {
    let place = if row < targets { place } else { targets - 1 - place };
    let first = if place % 2 == 1 { place.div_ceil(2) } else { targets - place / 2 };
    (first + row) % targets
}

/// Fisher-Yates shuffle.
fn shuffle(items: &mut [u16], rng: &mut Rng) {
    for last in (1..items.len()).rev() {
        let other = rng.below(last as u64 + 1);
        items.swap(last, usize::try_from(other).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn orders(targets: u16, seed: u64) -> Orders {
        Orders::new(targets, PairOrder::Random, Seed(seed))
    }

    /// By hand for four: Williams' own example, except for the names.
    #[test]
    fn the_square_of_four_is_the_published_one() {
        let rows = [0, 1, 2, 3].map(|row| [0, 1, 2, 3].map(|place| williams(4, row, place)));
        assert_eq!(rows, [[0, 1, 3, 2], [1, 2, 0, 3], [2, 3, 1, 0], [3, 0, 2, 1]]);
    }

    #[test]
    fn every_target_is_equally_often_in_every_place_and_after_every_other() {
        for targets in 1..=9_u16 {
            let orders = orders(targets, 5);
            (0..20).for_each(|group| assert_balanced(&orders, targets, group));
        }
    }

    fn assert_balanced(orders: &Orders, targets: u16, group: u64) {
        let size = orders.group_size();
        let mut places: BTreeMap<(u16, usize), u64> = BTreeMap::new();
        let mut after: BTreeMap<(u16, u16), u64> = BTreeMap::new();
        for block in group * size..(group + 1) * size {
            let order = orders.order(block);
            for (place, target) in order.iter().enumerate() {
                *places.entry((target.0, place)).or_default() += 1;
                assert_eq!(usize::from(orders.place(block, *target)), place);
            }
            for pair in order.windows(2) {
                *after.entry((pair[0].0, pair[1].0)).or_default() += 1;
            }
        }
        let n = usize::from(targets);
        assert_eq!((places.len(), after.len()), (n * n, n * (n - 1)), "{targets} targets");
        let each = size / u64::from(targets);
        assert!(places.values().all(|count| *count == each), "{targets}: {places:?}");
        assert!(after.values().all(|count| *count == each), "{targets}: {after:?}");
    }

    /// With two targets, an order is a coin that is balanced within every two blocks.
    #[test]
    fn orders_are_random_and_differ_by_seed() {
        let first = |seed| {
            let orders = orders(2, seed);
            (0..2_000).map(|block| u32::from(orders.place(block, TargetId(0)))).collect::<Vec<_>>()
        };
        assert_ne!(first(1), first(2));
        let even: u32 = first(1).iter().step_by(2).sum();
        assert!(
            (430..=570).contains(&even),
            "the first of two blocks began with 1: {even} of 1,000"
        );
    }

    #[test]
    fn a_fixed_order_is_that_of_the_profile() {
        let orders = Orders::new(3, PairOrder::Fixed, Seed(1));
        assert!((0..50).all(|block| orders.order(block) == [0, 1, 2].map(TargetId)));
    }
}
