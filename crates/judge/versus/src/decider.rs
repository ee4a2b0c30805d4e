//! Ends a run as soon as it is decided.
//!
//! Looks at the blocks while they come, with intervals that hold at all looks together; with others
//! it would find differences that are not there.

use plimsoll_measure::{Block, Nanos};
use plimsoll_metrics::Judgement;
use plimsoll_stats::Looks;
use plimsoll_stats::interval::Estimate;
use plimsoll_stats::looks::FIRST_LOOK;

use crate::batching::Batching;
use crate::comparisons::{comparisons, headline};
use crate::facts::Facts;
use crate::figure::Figure;
use crate::judge::judge;
use crate::pairs::{Run, Two};

/// All sentences together are wrong in at most this share of the runs.
const LEVEL: f64 = 0.05;
/// Sentences on two targets at most: two figures, a tail, failures and CPU time.
const SENTENCES: usize = 5;
/// A block is known to have ended when later ones have that began so much after it, and the longest
/// one so far would have: workers report once a second.
const REPORTED: Nanos = Nanos::from_secs(2);
const SECOND: u64 = 1_000_000_000;
/// Looks become rarer: one in so many seconds of what there is, so that they cost a constant share.
const RARER: u64 = 50;

/// Takes the blocks of a run while they come, and tells when it is decided.
#[derive(Clone, Debug)]
pub struct Decider {
    facts: Facts,
    blocks: Vec<Block>,
    /// The longest turn.
    longest: Nanos,
    /// Seconds that there must be at the next look.
    next: u64,
    so_far: Vec<DifferenceSoFar>,
}

/// What a target adds to another, request by request, at the last look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DifferenceSoFar {
    /// Index of the target.
    pub target: usize,
    /// Index of the target that it is measured against.
    pub reference: usize,
    /// The time that is compared: the one that heads the report.
    pub figure: Figure,
    /// The median of the differences, and the ends of its interval, in nanoseconds. The interval
    /// holds at all looks together at 95 %. `None` if there is too little.
    pub added_ns: Option<[f64; 3]>,
}

impl Decider {
    /// For a run of which this is known before the load.
    pub fn new(facts: &Facts) -> Self {
        let facts = Facts { looks: Looks::Always, ..facts.clone() };
        Self {
            facts,
            blocks: Vec::new(),
            longest: Nanos::ZERO,
            next: FIRST_LOOK.into(),
            so_far: Vec::new(),
        }
    }

    /// Adds blocks that ended. Tells when the run was decided, after its start, if it is: of each
    /// two compared targets and of each one with the reference, it can be said in the headline
    /// figure which is slower, or with a margin that they differ by less; and every bound is kept
    /// or broken.
    pub fn add(&mut self, blocks: &[Block]) -> Option<Nanos> {
        let turns = blocks.iter().flat_map(|block| block.turns.iter().flatten());
        let longest = turns.filter_map(|turn| turn.response.max(turn.service)).max();
        self.longest = self.longest.max(longest.unwrap_or_default());
        self.blocks.extend_from_slice(blocks);
        let (first, last) = self.whole_seconds()?;
        let seconds = (last - first) / SECOND;
        if seconds < self.next {
            return None;
        }
        self.next = seconds + (seconds / RARER).max(1);
        self.blocks.sort_by_key(|block| block.start);
        let seen = self.blocks.partition_point(|block| block.start.as_u64() < last);
        let (figure, found) = estimates(&self.facts, &self.blocks[..seen]);
        self.so_far = found.iter().map(|(two, found)| so_far(*two, figure, *found)).collect();
        decided(&self.facts, &self.blocks[..seen], figure, &found).then_some(Nanos::new(last))
    }

    /// How the targets differ, as of the last look; empty before the first.
    pub fn so_far(&self) -> &[DifferenceSoFar] {
        &self.so_far
    }

    /// From the first block to the end of the last second whose blocks have all ended.
    fn whole_seconds(&self) -> Option<(u64, u64)> {
        let starts = self.blocks.iter().map(|block| block.start.as_u64());
        let (first, last) = (starts.clone().min()?, starts.max()?);
        let ended = last.checked_sub((self.longest + REPORTED).as_u64())?;
        let seconds = ended.checked_sub(first)? / SECOND;
        Some((first, first + seconds * SECOND))
    }
}

/// What is added to each request, for every comparison, and by which figure.
fn estimates(facts: &Facts, blocks: &[Block]) -> (Figure, Vec<(Two, Option<Estimate>)>) {
    let batching = Batching::of(blocks, Looks::Always);
    let run = Run { blocks, batching: &batching };
    let figure = headline(facts, blocks);
    (
        figure,
        comparisons(facts)
            .into_iter()
            .map(|two: Two| (two, run.added(two, figure).estimate(0.5).ok()))
            .collect(),
    )
}

fn so_far(two: Two, figure: Figure, found: Option<Estimate>) -> DifferenceSoFar {
    let Two { target, reference } = two;
    let added_ns = found.map(|found| [found.value, found.interval.low, found.interval.high]);
    DifferenceSoFar { target, reference, figure, added_ns }
}

fn decided(
    facts: &Facts,
    blocks: &[Block],
    figure: Figure,
    estimates: &[(Two, Option<Estimate>)],
) -> bool {
    let batching = Batching::of(blocks, Looks::Always);
    let run = Run { blocks, batching: &batching };
    // What holds at this level, holds among all sentences of the report.
    let level = LEVEL / (SENTENCES * estimates.len()).max(1) as f64;
    let all = !estimates.is_empty()
        && estimates.iter().all(|(two, found): &(Two, Option<Estimate>)| {
            let Some(found) = found else { return false };
            let allowed = facts.margin.unwrap_or_default();
            let median = run.own(two.reference, figure).value(0.5).unwrap_or_default();
            let most = found.interval.low.abs().max(found.interval.high.abs());
            found.p_zero < level || most < allowed * median
        });
    let bounded = facts.margin.is_some() || !facts.thresholds.is_empty();
    all && (!bounded || bounds_are_judged(facts, blocks))
}

fn bounds_are_judged(facts: &Facts, blocks: &[Block]) -> bool {
    !matches!(judge(facts, blocks).judgement_of_bounds(), Judgement::Inconclusive(_))
}
