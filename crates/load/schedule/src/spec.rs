//! Stages and their load shapes, in the notation `1:10s,@100..5000:60s,w10:5s`.

mod notation;
mod parse;

use plimsoll_measure::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::StageFault;
use crate::limits::{MAX_DURATION, MAX_RATE, MAX_USERS};

/// Spacing of arrivals in the open model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Evenly spaced.
    #[default]
    Constant,
    /// A Poisson process: independent exponential gaps.
    Poisson,
}

/// The load of one stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Closed model: virtual users, changing linearly from the stage's start to its end.
    Closed {
        /// Virtual users at the start.
        from: u32,
        /// Virtual users at the end; equal to `from` for a constant number.
        to: u32,
    },
    /// Open model: arrivals per second, changing linearly from the stage's start to its end.
    Open {
        /// Arrivals per second at the start.
        from: f64,
        /// Arrivals per second at the end; equal to `from` for a constant rate.
        to: f64,
    },
    /// Open model: the arrival times of the profile's trace, from its beginning.
    Trace,
}

/// A period with one load shape. Written `[w]LOAD:DURATION`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageSpec {
    /// The load shape.
    pub load: Load,
    /// Time for which new work is started. Optional for a [`Load::Trace`] stage, which lasts no
    /// longer than its trace.
    pub duration: Option<Nanos>,
    /// Whether it is a warm-up: recorded separately, and excluded from every total and threshold.
    pub warmup: bool,
}

impl StageSpec {
    /// All problems of this stage.
    pub(crate) fn faults(&self) -> impl Iterator<Item = StageFault> {
        self.load.fault().into_iter().chain(duration_fault(self.duration, self.load == Load::Trace))
    }
}

fn duration_fault(duration: Option<Nanos>, optional: bool) -> Option<StageFault> {
    match duration {
        None => (!optional).then_some(StageFault::NoDuration),
        Some(Nanos::ZERO) => Some(StageFault::ZeroDuration),
        Some(duration) => (duration > MAX_DURATION).then_some(StageFault::LongDuration),
    }
}

impl Load {
    fn fault(&self) -> Option<StageFault> {
        match *self {
            Self::Closed { from: 0, to: 0 } => Some(StageFault::NoUsers),
            Self::Closed { from, to } => {
                (from.max(to) > MAX_USERS).then_some(StageFault::TooManyUsers)
            }
            Self::Open { from, to } => rate_fault(from, to),
            Self::Trace => None,
        }
    }
}

fn rate_fault(from: f64, to: f64) -> Option<StageFault> {
    if let Some(bad) = [from, to].into_iter().find(|rate| !rate.is_finite() || *rate < 0.0) {
        return Some(StageFault::BadRate(bad));
    }
    let highest = from.max(to);
    if highest == 0.0 {
        return Some(StageFault::NoRate);
    }
    (highest > MAX_RATE).then_some(StageFault::TooFast)
}

/// The stages of a run, one after another. A single string in files and flags, see
/// [`Stages::from_str`].
///
/// [`Stages::from_str`]: std::str::FromStr::from_str
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stages(pub Vec<StageSpec>);

impl Stages {
    /// Whether a stage plays the trace.
    pub fn play_trace(&self) -> bool {
        self.0.iter().any(|stage| stage.load == Load::Trace)
    }
}
