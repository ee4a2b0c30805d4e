//! Upper limits of stages.

use plimsoll_measure::Nanos;

/// Maximum number of virtual users in a stage.
pub const MAX_USERS: u32 = 10_000_000;
/// Maximum arrival rate of a stage, per second.
pub const MAX_RATE: f64 = 100_000_000.0;
/// Maximum duration of a stage. A 64-bit float represents every number of nanoseconds up to it
/// exactly.
pub const MAX_DURATION: Nanos = Nanos::from_secs(31 * 24 * 3600);
/// Maximum number of stages of a run, because every stage has its own
/// [`plimsoll_measure::StageId`].
pub const MAX_STAGES: usize = u16::MAX as usize;
