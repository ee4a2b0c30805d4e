//! Assigns blocks to batches.
//!
//! Stages that load all targets side by side are cut into seconds, as in all reports. If each
//! target has windows of its own, one round of windows is a batch. Windows inside a side-by-side
//! stage are kept separate: they measure interference between targets. If a run may end at any
//! moment, seconds and rounds are never merged.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_measure::{Block, StageId};
use plimsoll_stats::Looks;
use plimsoll_stats::batches::intervals_per_batch;

const SECOND: u64 = 1_000_000_000;

/// The batch of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Measured, in a batch of a stage.
    Measured {
        /// Position among the stages that have blocks.
        stage: usize,
        /// Position in the stage.
        batch: usize,
    },
    /// Recorded while each target was loaded alone, for comparison.
    Alone {
        /// Position among the batches of such windows.
        batch: usize,
    },
}

/// The batches of all blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batching {
    /// One entry per block.
    places: Vec<Place>,
    stages: Vec<StageBatches>,
    alone: usize,
    /// Whether the data are tested once or at many moments.
    pub(crate) looks: Looks,
}

/// The batches of one stage.
#[derive(Clone, Debug)]
pub(crate) struct StageBatches {
    /// Number of batches, empty ones included.
    pub(crate) count: usize,
    /// Start of the first batch and length of each, in nanoseconds; `None` for rounds of windows.
    pub(crate) time: Option<(u64, u64)>,
}

impl Batching {
    pub(crate) fn of(blocks: &[Block], looks: Looks) -> Self {
        let mut by_stage: BTreeMap<StageId, Vec<usize>> = BTreeMap::new();
        for (index, block) in blocks.iter().enumerate() {
            by_stage.entry(block.stage).or_default().push(index);
        }
        let mut batching = Self {
            places: vec![Place::Alone { batch: 0 }; blocks.len()],
            looks,
            ..Self::default()
        };
        let mut alone = Vec::new();
        for indices in by_stage.values() {
            let (measured, others): (Vec<usize>, Vec<usize>) =
                indices.iter().partition(|index| blocks[**index].window.is_none());
            if measured.is_empty() {
                batching.add_rounds(blocks, indices);
            } else {
                batching.add_seconds(blocks, &measured);
                alone.extend(others);
            }
        }
        batching.add_alone(blocks, &alone);
        batching
    }

    fn add_seconds(&mut self, blocks: &[Block], indices: &[usize]) {
        let start = earliest(blocks, indices);
        let of_blocks: Vec<usize> =
            indices.iter().map(|&index| lengths_since(blocks, index, start, SECOND)).collect();
        let seconds = of_blocks.iter().max().map_or(0, |last| last + 1);
        let length = self.per_batch(seconds);
        let stage = self.stages.len();
        for (&index, second) in indices.iter().zip(of_blocks) {
            self.places[index] = Place::Measured { stage, batch: second / length };
        }
        let time = Some((start, length as u64 * SECOND));
        self.stages.push(StageBatches { count: seconds.div_ceil(length), time });
    }

    fn add_rounds(&mut self, blocks: &[Block], indices: &[usize]) {
        let of_blocks: Vec<usize> = indices
            .iter()
            .map(|&index| blocks[index].window.unwrap_or_default() as usize)
            .collect();
        let rounds = of_blocks.iter().max().map_or(0, |last| last + 1);
        let length = self.per_batch(rounds);
        let stage = self.stages.len();
        for (&index, round) in indices.iter().zip(of_blocks) {
            self.places[index] = Place::Measured { stage, batch: round / length };
        }
        self.stages.push(StageBatches { count: rounds.div_ceil(length), time: None });
    }

    fn per_batch(&self, intervals: usize) -> usize {
        match self.looks {
            Looks::Once => intervals_per_batch(intervals),
            Looks::Always => 1,
        }
    }

    /// Uses half seconds of each round of windows, counted from the round's start, because a few
    /// windows of some seconds would give too few batches of one second. Half seconds without a
    /// block are skipped.
    fn add_alone(&mut self, blocks: &[Block], indices: &[usize]) {
        let mut rounds: BTreeMap<(StageId, u32), Vec<usize>> = BTreeMap::new();
        for &index in indices {
            let block = &blocks[index];
            let round = (block.stage, block.window.unwrap_or_default());
            rounds.entry(round).or_default().push(index);
        }
        for indices in rounds.values() {
            let start = earliest(blocks, indices);
            let parts: Vec<usize> = indices
                .iter()
                .map(|&index| lengths_since(blocks, index, start, SECOND / 2))
                .collect();
            let different: BTreeSet<usize> = parts.iter().copied().collect();
            let position: BTreeMap<usize, usize> =
                different.into_iter().zip(self.alone..).collect();
            for (&index, part) in indices.iter().zip(parts) {
                self.places[index] = Place::Alone { batch: position[&part] };
            }
            self.alone += position.len();
        }
    }

    pub(crate) fn places<'a>(
        &'a self,
        blocks: &'a [Block],
    ) -> impl Iterator<Item = (Place, &'a Block)> {
        self.places.iter().copied().zip(blocks)
    }

    /// The measured blocks.
    pub(crate) fn measured<'a>(&'a self, blocks: &'a [Block]) -> impl Iterator<Item = &'a Block> {
        self.places(blocks)
            .filter(move |(place, _)| matches!(place, Place::Measured { .. }))
            .map(|(_, block)| block)
    }

    pub(crate) fn stages(&self) -> &[StageBatches] {
        &self.stages
    }

    /// Creates a default value for each batch of each stage.
    pub(crate) fn by_batch<T: Clone + Default>(&self) -> Vec<Vec<T>> {
        self.stages.iter().map(|stage| vec![T::default(); stage.count]).collect()
    }

    /// Creates a default value for each batch of the windows in which targets were loaded alone.
    pub(crate) fn by_batch_alone<T: Clone + Default>(&self) -> Vec<T> {
        vec![T::default(); self.alone]
    }

    /// Whether each target was loaded alone in all measured stages.
    pub(crate) fn is_by_turns(&self) -> bool {
        !self.stages.is_empty() && self.stages.iter().all(|stage| stage.time.is_none())
    }
}

fn earliest(blocks: &[Block], indices: &[usize]) -> u64 {
    indices.iter().map(|&index| blocks[index].start.as_u64()).min().unwrap_or_default()
}

/// Number of whole multiples of `length` from `start` to the start of a block.
fn lengths_since(blocks: &[Block], index: usize, start: u64, length: u64) -> usize {
    let nanos = blocks[index].start.as_u64().saturating_sub(start);
    usize::try_from(nanos / length).unwrap_or(usize::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::{Nanos, ScenarioId};

    fn block(stage: u16, at_ms: u64, window: Option<u32>) -> Block {
        Block {
            index: 0,
            turn: 0,
            stage: StageId(stage),
            scenario: ScenarioId(0),
            start: Nanos::from_millis(at_ms),
            window,
            turns: Vec::new(),
        }
    }

    fn places(blocks: &[Block]) -> Vec<Place> {
        Batching::of(blocks, Looks::Once).places(blocks).map(|(place, _)| place).collect()
    }

    #[test]
    fn seconds_are_counted_from_the_first_block_of_their_stage() {
        let blocks = [
            block(3, 5_500, None),
            block(3, 6_499, None),
            block(3, 6_500, None),
            block(5, 9_000, None),
        ];
        let measured = |stage, batch| Place::Measured { stage, batch };
        assert_eq!(
            places(&blocks),
            [measured(0, 0), measured(0, 0), measured(0, 1), measured(1, 0)]
        );
        let batching = Batching::of(&blocks, Looks::Once);
        assert_eq!(batching.stages()[0].time, Some((5_500_000_000, SECOND)));
        assert!(!batching.is_by_turns());
    }

    #[test]
    fn batches_of_a_long_stage_last_longer() {
        let blocks: Vec<_> = (0..130).map(|second| block(0, second * 1_000, None)).collect();
        let batching = Batching::of(&blocks, Looks::Once);
        // 130 seconds are merged in fours: 33 batches.
        assert_eq!(batching.stages()[0].count, 33);
        assert_eq!(places(&blocks)[129], Place::Measured { stage: 0, batch: 32 });
        assert_eq!(Batching::of(&blocks, Looks::Always).stages()[0].count, 130);
    }

    #[test]
    fn windows_are_the_batches_where_all_blocks_have_one() {
        let blocks = [block(0, 0, Some(0)), block(0, 9_000, Some(1)), block(0, 8_000, Some(1))];
        let measured = |batch| Place::Measured { stage: 0, batch };
        assert_eq!(places(&blocks), [measured(0), measured(1), measured(1)]);
        assert!(Batching::of(&blocks, Looks::Once).is_by_turns());
    }

    #[test]
    fn windows_within_another_stage_stand_apart() {
        let blocks = [
            block(0, 0, None),
            block(0, 1_000, Some(0)),
            block(0, 1_499, Some(0)),
            block(0, 2_500, Some(0)),
            block(0, 20_000, Some(1)),
            block(0, 30_000, None),
        ];
        let alone = |batch| Place::Alone { batch };
        let measured = |batch| Place::Measured { stage: 0, batch };
        assert_eq!(
            places(&blocks),
            [measured(0), alone(0), alone(0), alone(1), alone(2), measured(30)]
        );
        assert_eq!(Batching::of(&blocks, Looks::Once).measured(&blocks).count(), 2);
        assert_eq!(Batching::of(&blocks, Looks::Once).by_batch_alone::<u8>().len(), 3);
    }
}
