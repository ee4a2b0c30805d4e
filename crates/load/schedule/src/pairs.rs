//! Pairs: the schedule of a comparison, in which every request goes to every target.
//!
//! The arrivals of a stage become *blocks*: one arrival on each target, with the same content.
//!
//! - side by side (`spread`, `together`): the arrivals of a block follow each other in a random
//!   order, a fixed gap apart;
//! - alone (`turns`, and a part of the other schedules): each target has its own window of time.
//!   The windows of all targets follow each other in a random order, and form a *round*. The blocks
//!   of a round have one arrival in each window, at the same position in it.
//!
//! Orders are balanced (`orders.rs`). Everything is a pure function of (spec, seed, index).

mod layout;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::{FusedIterator, Peekable};
use std::sync::Arc;

use layout::{Layout, Segment};
use plimsoll_measure::{ConversationKey, Nanos, Rng, Seed, StageId, Stripe, TargetId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schedule::Schedule;
use crate::spec::Arrivals;
use crate::stage_table::{Arrival, ArrivalIter, StageTable};

/// How the targets of a comparison share the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairMode {
    /// The requests of a block follow each other in a random order, a fixed time apart.
    #[default]
    Spread,
    /// The requests of a block are sent at the same instant, in a random order: for targets that
    /// share no resources.
    Together,
    /// Each target is loaded alone for some seconds, then the next one, in a random order.
    Turns,
}

/// Order of the targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairOrder {
    /// A balanced random order for every block: every target is equally often in every position and
    /// after every other one.
    #[default]
    Random,
    /// The order of the profile. It shows the effect of a request's position, which biases
    /// differences between targets.
    Fixed,
}

/// How to turn a schedule into pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairSpec {
    /// Number of targets.
    pub targets: u16,
    /// How the targets share the time. Virtual users of all targets run side by side unless they
    /// take turns.
    pub mode: PairMode,
    /// Order of the targets.
    pub order: PairOrder,
    /// Maximum time between two requests of a block in [`PairMode::Spread`].
    pub gap: Nanos,
    /// Minimum length of a window in [`PairMode::Turns`].
    pub window: Nanos,
    /// Length of the windows that load each target alone in the other modes, to measure
    /// interference; zero for none.
    pub alone: Nanos,
}

/// Number of rounds of windows in a stage that otherwise loads targets side by side: an interval
/// needs eight, and not all have the same number of requests.
const ALONE_ROUNDS: u64 = 10;
/// These rounds take at most 1/3 of the stage.
const ALONE_SHARE: u64 = 3;
/// Minimum length of such a window.
const LEAST_ALONE: Nanos = Nanos::from_millis(100);
/// Start of a window that does not count, because the previous target may still be busy.
const SETTLING: Nanos = Nanos::from_secs(1);
/// At most 1/5 of the window.
const SETTLING_SHARE: u64 = 5;
/// Gap between requests at the same instant, which preserves their order.
const AT_ONCE: Nanos = Nanos::new(1);

/// Position of a request in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPosition {
    /// Position in the order of the targets, from 0.
    pub position: u8,
    /// Round of windows, if its target was loaded alone.
    pub window: Option<u32>,
    /// Whether it counts, because it is not in the first part of a window.
    pub counts: bool,
}

/// A window of time in which one target is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetWindow {
    /// Round of windows, in which all targets receive the same conversations.
    pub round: u32,
    /// Target of the window.
    pub target: TargetId,
    /// First instant, as an offset from the run's start.
    pub from: Nanos,
    /// Instant after its last, as an offset from the run's start.
    pub to: Nanos,
}

/// The schedule of a comparison. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PairSchedule(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Blocks on their own time axis, the axis of a single target.
    axis: Arc<StageTable>,
    layout: Layout,
    orders: Orders,
}

impl PairSchedule {
    /// Creates pairs from a schedule; the other arguments are the same as for the schedule.
    pub fn new(
        schedule: &Schedule,
        process: Arrivals,
        seed: Seed,
        trace_offsets: Option<&Arc<[Nanos]>>,
        spec: &PairSpec,
    ) -> Self {
        let (layout, stages) =
            Layout::new(schedule.stages(), |stage: StageId| schedule.planned(stage), spec);
        let offsets = trace_offsets.cloned().unwrap_or_default();
        let axis = Arc::new(StageTable::new(&stages.0, process, seed, &offsets));
        let orders = Orders::new(spec.targets, spec.order, seed);
        Self(Arc::new(Inner { axis, layout, orders }))
    }

    /// Number of targets.
    pub fn targets(&self) -> u16 {
        self.0.orders.targets()
    }

    /// The arrivals on one target, for the blocks that belong to `stripe`, in chronological order.
    /// An arrival has the number of its conversation, see [`ConversationKey::on`], and its block's
    /// index in the stage.
    pub fn arrivals(&self, stripe: Stripe, target: TargetId) -> PairedArrivals {
        PairedArrivals::new(self.clone(), stripe, target)
    }

    /// Position of a conversation's request that is intended at an offset from the run's start.
    pub fn spot(&self, conversation: ConversationKey, at: Nanos) -> BlockPosition {
        let (block, target) = conversation.block(self.targets());
        let (window, counts) = self.window(at);
        let order = window.map_or_else(|| block.number(), u64::from);
        BlockPosition { position: self.0.orders.place(order, target), window, counts }
    }

    /// The round of windows at an offset from the run's start, if targets are loaded alone then;
    /// and whether requests intended then count.
    pub fn window(&self, at: Nanos) -> (Option<u32>, bool) {
        let segment = self.0.layout.segment_at(at);
        let Some((segment, windows)) = segment.and_then(|s| Some((s, s.windows?))) else {
            return (None, true);
        };
        let since = at.saturating_sub(segment.start).as_u64();
        let within = since % windows.length.as_u64().max(1);
        (Some(windows.round), within >= settling(windows.length).as_u64())
    }

    /// The windows in which a target has virtual users, in chronological order: its own ones if
    /// targets take turns, otherwise the stages.
    pub fn user_windows(&self, target: TargetId) -> Vec<TargetWindow> {
        let Inner { layout, orders, .. } = &*self.0;
        let closed = layout.segments().iter().filter(|segment| segment.closed);
        (0..)
            .zip(closed)
            .filter_map(|(round, segment)| {
                let own = segment.target_windows(orders).into_iter().find(|w| w.target == target);
                let whole = TargetWindow { round, target, from: segment.start, to: segment.end };
                match segment.windows {
                    Some(_) => own.map(|own| TargetWindow { round, ..own }),
                    None => Some(whole),
                }
            })
            .collect()
    }

    /// Whether virtual users send the requests at an offset from the run's start.
    pub fn has_users(&self, at: Nanos) -> bool {
        self.0.layout.segment_at(at).is_some_and(|segment| segment.closed)
    }

    /// Time for which each target is loaded in a stage.
    pub fn loaded(&self, stage: StageId) -> Nanos {
        let of_stage = self.0.layout.segments().iter().filter(|segment| segment.stage == stage);
        of_stage.map(Segment::loaded).sum()
    }

    /// End of a target's window at an offset; `None` outside its windows, and if the targets run
    /// side by side.
    pub fn window_end(&self, target: TargetId, at: Nanos) -> Option<Nanos> {
        let segment = self.0.layout.segment_at(at)?;
        let windows = segment.target_windows(&self.0.orders);
        windows.into_iter().find(|window| window.target == target).map(|window| window.to)
    }

    /// Time between two requests of a block in `spread` or `together`, the smallest possible for
    /// virtual users; `None` if targets take turns.
    pub fn gap(&self, stage: StageId) -> Option<Nanos> {
        self.0.layout.gap(stage)
    }

    /// Number of rounds of windows in a stage.
    pub fn rounds(&self, stage: StageId) -> usize {
        let of_stage = self.0.layout.segments().iter().filter(|segment| segment.stage == stage);
        of_stage.filter(|segment| segment.windows.is_some()).count()
    }

    /// Number of blocks of a stage, including those with targets loaded alone; 0 for a closed one.
    /// Each call computes all of them.
    pub fn blocks(&self, stage: StageId) -> u64 {
        self.of_stage(Stripe::WHOLE, stage).count() as u64
    }

    /// Number of blocks of a part of the run that are compared: not in the windows of a
    /// side-by-side stage, nor in the first part of a window.
    pub fn compared_blocks(&self, stripe: Stripe, stage: StageId) -> u64 {
        let turns = self.gap(stage).is_none();
        self.of_stage(stripe, stage)
            .filter(|arrival: &Arrival| {
                let spot = self.spot(ConversationKey::arrival(arrival.seq), arrival.at);
                spot.counts && spot.window.is_some() == turns
            })
            .count() as u64
    }

    fn of_stage(&self, stripe: Stripe, stage: StageId) -> impl Iterator<Item = Arrival> {
        let of_first = self.arrivals(stripe, TargetId(0));
        of_first.filter(move |arrival| arrival.stage == stage)
    }
}

/// Time that a window needs to settle.
fn settling(window: Nanos) -> Nanos {
    SETTLING.min(Nanos::new(window.as_u64() / SETTLING_SHARE))
}

/// The orders of all blocks.
///
/// A Williams square of `n` targets (Williams, "Experimental designs balanced for the estimation of
/// residual effects of treatments", 1949) has `n` rows for even `n`, and two such squares have
/// `2 n` rows for odd `n`. In its rows every target is equally often in every position and directly
/// after every other target. Each *group* of that many blocks uses the rows of a square in random
/// order, with the targets assigned to its symbols at random.
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

// The arrivals of a comparison on one of its targets.

/// The arrivals on one target for the blocks of one stripe, in chronological order.
///
/// Neighbouring blocks may overlap if they are not evenly spaced, so a few arrivals wait here until
/// no earlier one can follow.
#[derive(Clone, Debug)]
pub struct PairedArrivals {
    schedule: PairSchedule,
    target: TargetId,
    blocks: Peekable<ArrivalIter>,
    /// Ordered by intended start, then by number.
    waiting: BinaryHeap<Reverse<ByTime>>,
    /// The orders of the last group of blocks, and its number.
    group: Option<(u64, Group)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ByTime(Arrival);

impl PairedArrivals {
    fn new(schedule: PairSchedule, stripe: Stripe, target: TargetId) -> Self {
        let blocks = ArrivalIter::new(Arc::clone(&schedule.0.axis), stripe).peekable();
        Self { schedule, target, blocks, waiting: BinaryHeap::new(), group: None }
    }

    /// The arrival of a block on this target; `None` if the block does not fit into its segment.
    fn of_block(&mut self, block: Arrival) -> Option<Arrival> {
        let segment = *self.schedule.0.layout.segment_on_axis(block.at)?;
        let at = self.window_start(&segment) + block.at.saturating_sub(segment.from);
        let key = ConversationKey::arrival(block.seq).on(self.target, self.schedule.targets());
        let own = Arrival { seq: key.0, at, ..block };
        if segment.windows.is_some() {
            return Some(own);
        }
        // A block must end where it begins: in the same stage, and not next to a window.
        let gap = segment.gap.as_u64();
        let length = gap.saturating_mul(u64::from(self.schedule.targets()) - 1);
        let own_place = gap.saturating_mul(self.place(block.seq).into());
        let fits = at + Nanos::new(length) < segment.end;
        fits.then(|| Arrival { at: at + Nanos::new(own_place), ..own })
    }

    /// The start of this target's window in a round, or of the segment.
    fn window_start(&mut self, segment: &Segment) -> Nanos {
        let Some(windows) = segment.windows else { return segment.start };
        let place = self.place(windows.round.into());
        segment.start + Nanos::new(windows.length.as_u64().saturating_mul(place.into()))
    }

    fn place(&mut self, block: u64) -> u8 {
        let orders = &self.schedule.0.orders;
        let (number, row) = (block / orders.group_size(), block % orders.group_size());
        match &self.group {
            Some((known, group)) if *known == number => group.place(row, self.target),
            _ => {
                let group = orders.group(number);
                let place = group.place(row, self.target);
                self.group = Some((number, group));
                place
            }
        }
    }

    /// Lower bound of all arrivals still to come.
    fn bound(&mut self) -> Option<Nanos> {
        let block = *self.blocks.peek()?;
        let segment = *self.schedule.0.layout.segment_on_axis(block.at)?;
        Some(self.window_start(&segment) + block.at.saturating_sub(segment.from))
    }
}

impl Iterator for PairedArrivals {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        loop {
            let bound = self.bound();
            let first = self.waiting.peek().map(|Reverse(ByTime(first))| first.at);
            if first.is_some_and(|first| bound.is_none_or(|bound| first <= bound)) {
                return self.waiting.pop().map(|Reverse(ByTime(first))| first);
            }
            let block = self.blocks.next()?;
            let arrival = self.of_block(block);
            self.waiting.extend(arrival.map(|arrival| Reverse(ByTime(arrival))));
        }
    }
}

impl FusedIterator for PairedArrivals {}

impl PartialOrd for ByTime {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByTime {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0.at, self.0.seq).cmp(&(other.0.at, other.0.seq))
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
