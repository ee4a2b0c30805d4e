//! Whether a running comparison may end: it was looked at every second, so ordinary intervals would
//! find differences that are not there.

use plimsoll_measure::Block;
use plimsoll_stats::sequence::Sequence;

use crate::comparisons::{comparisons, headline};
use crate::facts::Facts;
use crate::pairs::{Two, turn, value};

/// All comparisons together are wrong in at most this share of the runs.
const LEVEL: f64 = 0.05;
const SECOND: u64 = 1_000_000_000;

/// Whether every two targets are decided: what one adds to the median request is proven to differ
/// from what the other adds; or, with a margin, to differ by less than it. Blocks so far, in any
/// order; those of the last second may be incomplete and are left out.
pub fn decided(facts: &Facts, blocks: &[Block]) -> bool {
    let figure = headline(facts, blocks);
    let comparisons = comparisons(facts);
    let beside: Vec<&Block> = blocks.iter().filter(|block| block.window.is_none()).collect();
    let start = beside.iter().map(|block| block.start.as_u64()).min().unwrap_or_default();
    let second = |block: &Block| usize::try_from((block.start.as_u64() - start) / SECOND);
    let seconds = beside.iter().filter_map(|block| second(block).ok()).max().unwrap_or_default();
    let level = LEVEL / comparisons.len().max(1) as f64;
    let one = |two: &Two| {
        let mut batches = vec![Vec::new(); seconds];
        let mut times = Vec::new();
        for block in &beside {
            let of = |index| turn(block, index).and_then(|turn| value(turn, figure));
            let Some((target, reference)) = of(two.target).zip(of(two.reference)) else { continue };
            times.push(reference);
            let batch = second(block).ok().and_then(|second| batches.get_mut(second));
            if let Some(batch) = batch {
                batch.push(target - reference);
            }
        }
        let Ok(interval) = Sequence::new(batches).interval(0.5, level) else { return false };
        let median = plimsoll_stats::moments::median(&times).unwrap_or_default();
        let allowed = facts.margin.unwrap_or_default() * median;
        !interval.contains(0.0) || interval.low.abs().max(interval.high.abs()) < allowed
    };
    !comparisons.is_empty() && comparisons.iter().all(one)
}
