//! Upper limits of what a stage may ask for.

use plimsoll_measure::Nanos;

/// The most virtual users of a stage.
pub const MAX_USERS: u32 = 10_000_000;
/// The highest arrival rate of a stage, per second.
pub const MAX_RATE: f64 = 100_000_000.0;
/// The longest duration of a stage. A 64-bit float holds every number of nanoseconds up to it.
pub const MAX_DURATION: Nanos = Nanos::from_secs(31 * 24 * 3600);
/// The most stages of a run: every stage has its own [`plimsoll_measure::StageId`].
pub const MAX_STAGES: usize = u16::MAX as usize;
