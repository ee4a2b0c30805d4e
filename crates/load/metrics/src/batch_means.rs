//! Batch means: the run cut into batches in their order in time, from which confidence intervals
//! are computed.

use std::collections::BTreeMap;

use plimsoll_measure::StageId;
use plimsoll_stats::batches::MAX_BATCHES;
use plimsoll_stats::{BatchVariance, LimitCount, NoIntervalReason};
use serde::{Deserialize, Serialize};

use crate::catalog::Metric;
use crate::group_stats::{GroupKey, GroupStats};
use crate::sparse_histogram::SparseHistogram;

/// The number of metrics whose percentiles get an interval.
const WITH_INTERVAL: usize = {
    let (mut count, mut index) = (0, 0);
    while index < Metric::COUNT {
        count += Metric::ALL[index].has_interval() as usize;
        index += 1;
    }
    count
};

/// The metrics whose percentiles get an interval.
fn with_interval() -> impl Iterator<Item = Metric> {
    Metric::ALL.into_iter().filter(|metric| metric.has_interval())
}

/// The batches of every stage.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct BatchMeans {
    stages: BTreeMap<StageId, StageBatches>,
}

/// The batches of one stage, in their order in time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct StageBatches {
    batches: Vec<Batch>,
    /// Intervals in a batch, as a power of two.
    doublings: u32,
    /// Intervals in the last batch so far.
    filled: u32,
}

/// The values of one batch, in the order of [`with_interval`].
type Batch = BTreeMap<GroupKey, [SparseHistogram; WITH_INTERVAL]>;

impl BatchMeans {
    /// Adds the counts of the next interval. Late responses of an earlier stage go to its last
    /// batch.
    pub(crate) fn add<'a>(&mut self, cells: impl Iterator<Item = (GroupKey, &'a GroupStats)>) {
        let mut interval: BTreeMap<StageId, Batch> = BTreeMap::new();
        for (key, cell) in cells {
            let mut values: [SparseHistogram; WITH_INTERVAL] = Default::default();
            for (value, metric) in values.iter_mut().zip(with_interval()) {
                *value = SparseHistogram::from_distribution(cell.distribution(metric));
            }
            if values.iter().any(|values| !values.is_empty()) {
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

    /// The variance of the share of values up to the bucket `limit`, over the cells that `filter`
    /// accepts.
    pub(crate) fn variance(
        &self,
        metric: Metric,
        limit: u32,
        filter: &dyn Fn(GroupKey) -> bool,
    ) -> Result<BatchVariance, NoIntervalReason> {
        let index = with_interval().position(|known| known == metric);
        let index = index.ok_or(NoIntervalReason::UnknownOrder)?;
        let stages = self.stages.values().map(|stage| stage.counts(index, limit, filter));
        let stages: Vec<_> = stages.filter(|counts| LimitCount::sum(counts).all > 0).collect();
        let all: u64 = stages.iter().map(|counts| LimitCount::sum(counts).all).sum();
        let variances = stages
            .iter()
            .map(|counts: &Vec<LimitCount>| {
                let weight = LimitCount::sum(counts).all as f64 / all as f64;
                Ok((weight, BatchVariance::of_shares(counts)?))
            })
            .collect::<Result<Vec<_>, NoIntervalReason>>()?;
        if variances.is_empty() {
            Err(NoIntervalReason::UnknownOrder)
        } else {
            Ok(BatchVariance::stratified(&variances))
        }
    }
}

impl StageBatches {
    /// `current`: whether this stage is still running.
    fn add(&mut self, batch: Batch, current: bool) {
        let full = self.filled >= 1 << self.doublings;
        match self.batches.last_mut() {
            Some(last) if !(current && full) => {
                merge_batch(batch, last);
                self.filled += u32::from(current);
            }
            _ => self.open(batch),
        }
    }

    fn open(&mut self, batch: Batch) {
        if self.batches.len() >= MAX_BATCHES {
            self.coarsen();
        }
        self.batches.push(batch);
        self.filled = 1;
    }

    /// Merges each two neighbours.
    fn coarsen(&mut self) {
        let mut halved: Vec<Batch> = Vec::with_capacity(MAX_BATCHES);
        for (index, batch) in std::mem::take(&mut self.batches).into_iter().enumerate() {
            match halved.last_mut() {
                Some(last) if index % 2 == 1 => merge_batch(batch, last),
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
            merge_batch(theirs, mine);
        }
    }

    fn counts(
        &self,
        index: usize,
        limit: u32,
        filter: &dyn Fn(GroupKey) -> bool,
    ) -> Vec<LimitCount> {
        self.batches
            .iter()
            .map(|batch: &Batch| {
                let chosen = batch.iter().filter(|(key, _)| filter(**key));
                let counts: Vec<_> =
                    chosen.map(|(_, values)| values[index].count_within(limit)).collect();
                LimitCount::sum(&counts)
            })
            .collect()
    }
}

fn merge_batch(from: Batch, into: &mut Batch) {
    for (key, values) in from {
        let into = into.entry(key).or_default();
        for (mine, theirs) in into.iter_mut().zip(&values) {
            mine.merge(theirs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(bucket: u32) -> Batch {
        let key = GroupKey {
            stage: StageId(0),
            scenario: plimsoll_measure::ScenarioId(0),
            target: plimsoll_measure::TargetId(0),
            operation: None,
        };
        [(key, std::array::from_fn(|_| SparseHistogram::from_counts([(bucket, 1)])))].into()
    }

    /// Batches of a stage that lasted `intervals`; the only value of the n-th is n.
    fn stage(intervals: u32) -> StageBatches {
        let mut stage = StageBatches::default();
        (0..intervals).for_each(|n| stage.add(batch(n), true));
        stage
    }

    fn sizes(stage: &StageBatches) -> Vec<u64> {
        stage.counts(0, 0, &|_| true).iter().map(|count| count.all).collect()
    }

    #[test]
    fn batches_double_in_length_when_there_are_too_many() {
        assert_eq!(sizes(&stage(64)), [1; 64]);
        assert_eq!(sizes(&stage(65)), [[2; 32].as_slice(), &[1]].concat());
        assert_eq!(sizes(&stage(128)), [2; 64]);
        assert_eq!(sizes(&stage(1_000)).len(), 63);
        assert_eq!(sizes(&stage(1_000))[0], 16);
        // They stay in order: the k-th batch of 16 has all values below 16 (k + 1).
        let low = stage(1_000).counts(0, 31, &|_| true);
        assert_eq!(low.iter().map(|count| count.within).sum::<u64>(), 32);
        assert_eq!((low[0].within, low[1].within, low[2].within), (16, 16, 0));
    }

    #[test]
    fn late_responses_of_a_finished_stage_go_to_its_last_batch() {
        let mut stage = stage(3);
        (0..5).for_each(|_| stage.add(batch(9), false));
        assert_eq!(sizes(&stage), [1, 1, 6]);
    }

    #[test]
    fn parts_of_a_run_are_merged_by_their_order_in_time() {
        let mut long = stage(100);
        long.merge(stage(64));
        assert_eq!(sizes(&long), [[4; 32].as_slice(), &[2; 18]].concat());
        let mut short = stage(64);
        short.merge(stage(100));
        assert_eq!(sizes(&short), sizes(&long));
    }
}
