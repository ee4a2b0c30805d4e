//! A run cut into batches that follow one another in time: what confidence intervals are made from.

use std::collections::BTreeMap;

use plimsoll_measure::StageId;

use crate::catalog::Metric;
use crate::cell::{GroupKey, GroupStats};
use crate::confidence::{NoIntervalReason, Spread, Tally};
use crate::distribution::Distribution;

/// The metrics whose percentiles get an interval.
pub const WITH_INTERVALS: [Metric; 6] = [
    Metric::ResponseTime,
    Metric::ServiceTime,
    Metric::Ttft,
    Metric::ResponseTtft,
    Metric::Itl,
    Metric::Tpot,
];

/// Most batches of one stage. When they are used up, neighbours are put together and further batches
/// are twice as long; so there are 32 to 64 of them in the end. More than 30 tell little more about the
/// variance (Schmeiser, 1982), and longer ones depend less on one another.
const MOST: usize = 64;

/// The batches of every stage.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batches {
    stages: BTreeMap<StageId, StageBatches>,
}

/// The batches of one stage, in their order in time.
#[derive(Clone, Debug, Default)]
struct StageBatches {
    batches: Vec<Batch>,
    /// Intervals that make a batch, as a power of two.
    doublings: u32,
    /// Intervals that are in the last batch.
    filled: u32,
}

/// What was counted in one stretch of time.
type Batch = BTreeMap<GroupKey, [Sparse; WITH_INTERVALS.len()]>;

/// The values of a distribution: positions of the histogram's buckets, ascending, and their counts.
///
/// Batches are kept until the end of the run, and are most of the memory that grows with its length. So a bucket is kept
/// as its distance from the one before and its count, each in groups of seven bits: mostly two or three bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sparse(Vec<u8>);

impl Batches {
    pub(crate) const fn new() -> Self {
        Self { stages: BTreeMap::new() }
    }

    /// Adds what the next interval counted. Late answers of an earlier stage go to its last batch.
    pub(crate) fn add<'a>(&mut self, cells: impl Iterator<Item = (GroupKey, &'a GroupStats)>) {
        let mut interval: BTreeMap<StageId, Batch> = BTreeMap::new();
        for (key, cell) in cells {
            let values = WITH_INTERVALS.map(|metric| Sparse::of(cell.distribution(metric)));
            if values.iter().any(|values| !values.0.is_empty()) {
                interval.entry(key.stage).or_default().insert(key, values);
            }
        }
        let newest = interval.keys().chain(self.stages.keys()).max().copied();
        for (stage, batch) in interval {
            self.stages.entry(stage).or_default().add(batch, Some(stage) == newest);
        }
    }

    /// Adds the batches of another part of the same run, the first to the first.
    pub(crate) fn merge(&mut self, other: Self) {
        for (stage, batches) in other.stages {
            self.stages.entry(stage).or_default().merge(batches);
        }
    }

    /// How well the share of values up to the bucket `limit` is known in the cells that `filter`
    /// accepts.
    pub(crate) fn spread(
        &self,
        metric: Metric,
        limit: u32,
        filter: &dyn Fn(GroupKey) -> bool,
    ) -> Result<Spread, NoIntervalReason> {
        let place = WITH_INTERVALS.iter().position(|known| *known == metric);
        let place = place.ok_or(NoIntervalReason::NoBatches)?;
        let stages = self.stages.values().map(|stage| stage.tallies(place, limit, filter));
        let stages: Vec<_> = stages.filter(|tallies| Tally::sum(tallies).all > 0).collect();
        let all: u64 = stages.iter().map(|tallies| Tally::sum(tallies).all).sum();
        let weighted = |tallies: &Vec<Tally>| {
            let weight = Tally::sum(tallies).all as f64 / all as f64;
            Ok((weight, Spread::of(tallies)?))
        };
        let spreads = stages.iter().map(weighted).collect::<Result<Vec<_>, NoIntervalReason>>()?;
        if spreads.is_empty() {
            Err(NoIntervalReason::NoBatches)
        } else {
            Ok(Spread::stratified(&spreads))
        }
    }
}

impl StageBatches {
    /// `current`: is this the stage that is being played?
    fn add(&mut self, batch: Batch, current: bool) {
        let full = self.filled >= 1 << self.doublings;
        match self.batches.last_mut() {
            Some(last) if !(current && full) => {
                pour(batch, last);
                self.filled += u32::from(current);
            }
            _ => self.open(batch),
        }
    }

    fn open(&mut self, batch: Batch) {
        if self.batches.len() >= MOST {
            self.coarsen();
        }
        self.batches.push(batch);
        self.filled = 1;
    }

    /// Puts neighbours together.
    fn coarsen(&mut self) {
        let mut halved: Vec<Batch> = Vec::with_capacity(MOST);
        for (index, batch) in std::mem::take(&mut self.batches).into_iter().enumerate() {
            match halved.last_mut() {
                Some(last) if index % 2 == 1 => pour(batch, last),
                _ => halved.push(batch),
            }
        }
        self.batches = halved;
        self.doublings += 1;
    }

    fn merge(&mut self, mut other: Self) {
        while self.doublings < other.doublings {
            self.coarsen();
        }
        while other.doublings < self.doublings {
            other.coarsen();
        }
        if self.batches.len() < other.batches.len() {
            self.filled = other.filled;
            self.batches.resize_with(other.batches.len(), Batch::new);
        }
        for (mine, theirs) in self.batches.iter_mut().zip(other.batches) {
            pour(theirs, mine);
        }
    }

    fn tallies(&self, place: usize, limit: u32, filter: &dyn Fn(GroupKey) -> bool) -> Vec<Tally> {
        let tally = |batch: &Batch| {
            let chosen = batch.iter().filter(|(key, _)| filter(**key));
            let tallies: Vec<_> = chosen.map(|(_, values)| values[place].tally(limit)).collect();
            Tally::sum(&tallies)
        };
        self.batches.iter().map(tally).collect()
    }
}

fn pour(from: Batch, into: &mut Batch) {
    for (key, values) in from {
        let place = into.entry(key).or_default();
        for (mine, theirs) in place.iter_mut().zip(&values) {
            mine.merge(theirs);
        }
    }
}

impl Sparse {
    fn of(distribution: Option<&Distribution>) -> Self {
        let mut writer = SparseWriter::default();
        if let Some(distribution) = distribution {
            let count = |count| u32::try_from(count).unwrap_or(u32::MAX);
            distribution.for_each_bucket(&mut |bucket, n| writer.push(bucket, count(n)));
        }
        writer.finish()
    }

    fn merge(&mut self, other: &Self) {
        let (mut mine, mut theirs) = (self.buckets().peekable(), other.buckets().peekable());
        let mut both = SparseWriter::default();
        loop {
            let next = match (mine.peek(), theirs.peek()) {
                (Some(&(a, n)), Some(&(b, m))) if a == b => {
                    mine.next();
                    theirs.next();
                    Some((a, n.saturating_add(m)))
                }
                (Some((a, _)), Some((b, _))) if b < a => theirs.next(),
                (Some(_), _) => mine.next(),
                (None, _) => theirs.next(),
            };
            let Some((bucket, count)) = next else { break };
            both.push(bucket, count);
        }
        *self = both.finish();
    }

    fn tally(&self, limit: u32) -> Tally {
        self.buckets().fold(Tally { within: 0, all: 0 }, |tally, (bucket, n)| Tally {
            within: tally.within + if bucket <= limit { u64::from(n) } else { 0 },
            all: tally.all + u64::from(n),
        })
    }

    const fn buckets(&self) -> Buckets<'_> {
        Buckets { rest: self.0.as_slice(), bucket: 0 }
    }
}

/// Writes buckets in ascending order.
#[derive(Default)]
struct SparseWriter {
    bytes: Vec<u8>,
    last: u32,
}

impl SparseWriter {
    fn push(&mut self, bucket: u32, count: u32) {
        let last = std::mem::replace(&mut self.last, bucket);
        self.put(bucket - last);
        self.put(count);
    }

    /// Seven bits in each byte, the lowest first; the top bit says that there are more.
    #[expect(clippy::cast_possible_truncation, reason = "the lowest bits are what is meant")]
    fn put(&mut self, mut number: u32) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Without room to grow, which nobody would use.
    fn finish(mut self) -> Sparse {
        self.bytes.shrink_to_fit();
        Sparse(self.bytes)
    }
}

/// The buckets of a [`Sparse`] and their counts.
struct Buckets<'a> {
    rest: &'a [u8],
    bucket: u32,
}

impl Buckets<'_> {
    fn number(&mut self) -> Option<u32> {
        let mut number = 0;
        for shift in (0..u32::BITS).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= u32::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        Some(number)
    }
}

impl Iterator for Buckets<'_> {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<Self::Item> {
        self.bucket += self.number()?;
        Some((self.bucket, self.number()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sparse(values: &[u8]) -> Sparse {
        let mut counts = BTreeMap::new();
        for value in values {
            *counts.entry(u32::from(*value)).or_default() += 1;
        }
        pack(counts)
    }

    fn pack(counts: impl IntoIterator<Item = (u32, u32)>) -> Sparse {
        let mut writer = SparseWriter::default();
        counts.into_iter().for_each(|(bucket, count)| writer.push(bucket, count));
        writer.finish()
    }

    fn batch(bucket: u32) -> Batch {
        let key = GroupKey {
            stage: StageId(0),
            scenario: plimsoll_measure::ScenarioId(0),
            target: plimsoll_measure::TargetId(0),
        };
        [(key, std::array::from_fn(|_| pack([(bucket, 1)])))].into()
    }

    /// Batches of a stage that lasted `intervals`; in the n-th the only value is n.
    fn stage(intervals: u32) -> StageBatches {
        let mut stage = StageBatches::default();
        (0..intervals).for_each(|n| stage.add(batch(n), true));
        stage
    }

    fn sizes(stage: &StageBatches) -> Vec<u64> {
        stage.tallies(0, 0, &|_| true).iter().map(|tally| tally.all).collect()
    }

    #[test]
    fn batches_double_in_length_when_there_are_too_many() {
        assert_eq!(sizes(&stage(64)), [1; 64]);
        assert_eq!(sizes(&stage(65)), [[2; 32].as_slice(), &[1]].concat());
        assert_eq!(sizes(&stage(128)), [2; 64]);
        assert_eq!(sizes(&stage(1_000)).len(), 63);
        assert_eq!(sizes(&stage(1_000))[0], 16);
        // They stay in order: the k-th batch of 16 has all values below 16 (k + 1).
        let low = stage(1_000).tallies(0, 31, &|_| true);
        assert_eq!(low.iter().map(|tally| tally.within).sum::<u64>(), 32);
        assert_eq!((low[0].within, low[1].within, low[2].within), (16, 16, 0));
    }

    #[test]
    fn late_answers_of_a_stage_that_is_over_make_no_batch_of_their_own() {
        let mut stage = stage(3);
        (0..5).for_each(|_| stage.add(batch(9), false));
        assert_eq!(sizes(&stage), [1, 1, 6]);
    }

    #[test]
    fn parts_of_a_run_are_merged_by_their_place_in_time() {
        let mut long = stage(100);
        long.merge(stage(64));
        assert_eq!(sizes(&long), [[4; 32].as_slice(), &[2; 18]].concat());
        let mut short = stage(64);
        short.merge(stage(100));
        assert_eq!(sizes(&short), sizes(&long));
    }

    proptest! {
        #[test]
        fn buckets_are_read_as_they_were_written(
            counts in proptest::collection::btree_map(0u32..70_000, any::<u32>(), 0..50),
        ) {
            let read: Vec<_> = pack(counts.clone()).buckets().collect();
            prop_assert_eq!(read, counts.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn merging_sparse_counts_is_counting_together(
            a in proptest::collection::vec(0u8..20, 0..40),
            b in proptest::collection::vec(0u8..20, 0..40),
            limit in 0u32..20,
        ) {
            let mut merged = sparse(&a);
            merged.merge(&sparse(&b));
            let both = [a, b].concat();
            prop_assert_eq!(&merged, &sparse(&both));
            let within = both.iter().filter(|value| u32::from(**value) <= limit).count() as u64;
            prop_assert_eq!(merged.tally(limit), Tally { within, all: both.len() as u64 });
        }
    }
}
