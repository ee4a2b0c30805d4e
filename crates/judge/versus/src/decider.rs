//! Ends a run as soon as it is decided.
//!
//! The decider tests the blocks repeatedly while they arrive. It uses always-valid intervals,
//! because repeated tests with intervals of fixed length would find differences that do not exist.

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

/// Error probability of all statements of a run together.
const LEVEL: f64 = 0.05;
/// Maximum number of statements on two targets: two figures, a tail, failures and CPU time.
const SENTENCES: usize = 5;
/// Workers report once a second. A block is complete once blocks have ended that began this much
/// later, plus the longest turn so far.
const REPORTED: Nanos = Nanos::from_secs(2);
const SECOND: u64 = 1_000_000_000;
/// Tests become rarer: the next one follows after 1/50 of the data so far, so that they cost a
/// constant share of the time.
const RARER: u64 = 50;

/// Receives the blocks of a run while they arrive, and decides when to end it.
#[derive(Clone, Debug)]
pub struct Decider {
    facts: Facts,
    blocks: Vec<Block>,
    /// Duration of the longest turn so far.
    longest: Nanos,
    /// Number of seconds of data at which the next test is due.
    next: u64,
    so_far: Vec<DifferenceSoFar>,
}

/// Overhead of a target compared with another, per request, as of the last test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DifferenceSoFar {
    /// Index of the target.
    pub target: usize,
    /// Index of the target it is compared with.
    pub reference: usize,
    /// The compared time: the report's headline figure.
    pub figure: Figure,
    /// Median of the differences and the ends of its interval, in nanoseconds. The 95 % interval
    /// holds at all tests together. `None` if there are too few data.
    pub added_ns: Option<[f64; 3]>,
}

impl Decider {
    /// Creates a decider from the facts known before the load.
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

    /// Adds finished blocks, and returns the time since the run's start at which the run was
    /// decided, if it was. A run is decided when the headline figure shows for any two targets
    /// which is slower (or, with a margin, that they differ by less than it), and when every
    /// threshold has passed or failed.
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

    /// Differences as of the last test; empty before the first.
    pub fn so_far(&self) -> &[DifferenceSoFar] {
        &self.so_far
    }

    /// Start of the first block, and the end of the last whole second whose blocks have all ended,
    /// in nanoseconds.
    fn whole_seconds(&self) -> Option<(u64, u64)> {
        let starts = self.blocks.iter().map(|block| block.start.as_u64());
        let (first, last) = (starts.clone().min()?, starts.max()?);
        let ended = last.checked_sub((self.longest + REPORTED).as_u64())?;
        let seconds = ended.checked_sub(first)? / SECOND;
        Some((first, first + seconds * SECOND))
    }
}

/// The headline figure, and the overhead per request of every comparison.
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
    // A difference at this level is also significant among all statements of the report.
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
