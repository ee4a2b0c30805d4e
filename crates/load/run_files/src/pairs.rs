//! `pairs.bin`: the blocks of a comparison, to the nanosecond. `docs/reference/pairs.md` describes
//! the layout.
//!
//! Differences between targets are far smaller than the steps of a histogram, so they are taken of
//! these. All records of a file have the same length: of one whose writer was killed, all but the
//! last can be read.

mod read;
mod write;

pub use read::{Pairs, read_pairs};
pub use write::{MOST_BLOCKS, PairsWriter};

use plimsoll_measure::{Nanos, Seed};

/// The first bytes of a file.
const MAGIC: &[u8; 8] = b"plimpair";
/// The version of the layout.
const VERSION: u32 = 2;
/// Bytes of a block, without its turns.
const BLOCK_BYTES: usize = 32;
/// Bytes of a turn.
const TURN_BYTES: usize = 128;
/// What stands for a time that there is not.
const NO_TIME: u64 = u64::MAX;
/// What stands for a window that there is not.
const NO_WINDOW: u32 = u32::MAX;

/// Flags of a turn.
const CARRIED_OUT: u8 = 1;
const REUSED: u8 = 2;
const REASONING: u8 = 4;
const TOOL_CALLS: u8 = 8;

/// What a file says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairsHeader {
    /// Names of the targets, in the order of the plan.
    pub targets: Vec<String>,
    /// Seed of the run, from which it follows which seconds are left out of a long run.
    pub seed: u64,
    /// Wall-clock time of the run clock's epoch, in nanoseconds since 1970 UTC.
    pub started_unix_ns: u64,
}

/// How often the rate was halved where one second in so many was kept.
const fn halvings(one_in: u32) -> u8 {
    if one_in == 0 { 0 } else { one_in.ilog2().to_le_bytes()[0] }
}

/// Whether the blocks that begin in the same second as this one are kept, if one second in two to
/// the power of `halvings` is: seconds of a low rate are among those of every higher one.
fn keeps(seed: u64, start: Nanos, halvings: u8) -> bool {
    let second = start.as_u64() / 1_000_000_000;
    let rank = Seed(seed).rng("seconds of pairs", second).next_u64();
    halvings == 0 || rank >> (64 - u32::from(halvings)) == 0
}
