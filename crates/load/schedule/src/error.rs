//! Errors in the stages of a run.

use std::fmt;

use plimsoll_measure::{Nanos, ParseNanosError};

/// All problems of the stages of a run, in the order of the stages.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", Lines(.0))]
pub struct ScheduleError(Vec<StageProblem>);

impl ScheduleError {
    /// Returns `Err` unless the list is empty.
    pub(crate) fn unless_empty(problems: Vec<StageProblem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self(problems)) }
    }

    /// The problems, one by one; never empty.
    pub fn problems(&self) -> &[StageProblem] {
        &self.0
    }
}

struct Lines<'a>(&'a [StageProblem]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(line, problem)| {
            let separator = if line == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")
        })
    }
}

/// A problem of one stage.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("stage {position} `{text}`: {fault}")]
pub struct StageProblem {
    /// Position of the stage, counted from 1.
    pub position: usize,
    /// The stage as written.
    pub text: String,
    /// The fault.
    pub fault: StageFault,
}

/// Why a stage cannot be scheduled. The message ends with the fix.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StageFault {
    /// A stage is empty. Remedy: write one, or remove the comma.
    #[error(
        "the stage is empty: write stages like `100:60s` or `@500:60s`, separated by single commas"
    )]
    Empty,
    /// The duration is missing. Remedy: append `:` and a duration.
    #[error("the duration is missing: write `LOAD:DURATION`, like `100:60s` or `@500:60s`")]
    NoDuration,
    /// The duration is invalid. Remedy: write a number with its unit.
    #[error(transparent)]
    Duration(#[from] ParseNanosError),
    /// The duration is zero. Remedy: give it a duration, or remove the stage.
    #[error("the duration is zero: give the stage some time, like `30s`, or remove it")]
    ZeroDuration,
    /// The stage is longer than a schedule covers. Remedy: split the run.
    #[error("the duration is longer than {MAX_DURATION}: was another unit meant?")]
    LongDuration,
    /// The number of virtual users is invalid. Remedy: write an integer, or `@` for a rate.
    #[error(
        "`{0}` is not a number of virtual users: write a whole number like `100`, or `@100` for arrivals per second"
    )]
    Users(String),
    /// The number of virtual users is zero. Remedy: request at least one.
    #[error("the stage has no virtual users: request at least one, like `1:30s` or `0..10:30s`")]
    NoUsers,
    /// More virtual users than any host or fleet can run. Remedy: request fewer.
    #[error("more than {MAX_USERS} virtual users: ask for fewer")]
    TooManyUsers,
    /// The rate is invalid. Remedy: write a number of arrivals per second.
    #[error("`{0}` is not a rate: write arrivals per second after the `@`, like `@500` or `@0.5`")]
    Rate(String),
    /// The rate is negative or not finite. Remedy: write a number from 0 up.
    #[error("a rate of {0} cannot be paced: write arrivals per second from 0 up, like `@500`")]
    BadRate(f64),
    /// The rate is zero. Remedy: request a rate above zero at one end at least.
    #[error("the rate is zero all the time: ask for more, like `@500:60s` or `@0..500:60s`")]
    NoRate,
    /// A higher rate than any generator reaches. Remedy: request less.
    #[error("more than {MAX_RATE} arrivals per second: ask for fewer")]
    TooFast,
    /// The stage plays a trace, but the profile has none. Remedy: name a trace in the profile.
    #[error("the profile has no trace to play: add a `trace` with `file` and `format`")]
    NoTrace,
    /// The trace has no row. Remedy: widen its window.
    #[error("the trace is empty: widen its `from`..`to` window")]
    EmptyTrace,
    /// The trace goes back in time. Remedy: sort its rows.
    #[error("the trace goes back in time at row {0}: sort its rows by time")]
    UnsortedTrace(usize),
    /// More stages than there are ids. Remedy: write fewer.
    #[error("this is one stage more than {MAX_STAGES}: write fewer, or use ramps")]
    TooManyStages,
}

// Upper limits of stages.

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
