//! The load shapes a user can ask for, in the notation `1:10s,@100..5000:60s,w10:5s`.

use plimsoll_measure::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the open model spaces its arrivals.
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
    /// Closed model: virtual users, from the stage's start to its end on a straight line.
    Closed {
        /// Virtual users at the start.
        from: u32,
        /// Virtual users at the end; equal to `from` for a constant number.
        to: u32,
    },
    /// Open model: arrivals per second, from the stage's start to its end on a straight line.
    Open {
        /// Arrivals per second at the start.
        from: f64,
        /// Arrivals per second at the end; equal to `from` for a constant rate.
        to: f64,
    },
    /// Open model: the arrival times of the profile's trace.
    Trace,
}

/// One time slice with one load shape. Written `[w]LOAD:DURATION`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageSpec {
    /// The load shape.
    pub load: Load,
    /// How long new work is started.
    pub duration: Nanos,
    /// Recorded apart, and left out of every total and threshold.
    pub warmup: bool,
}

/// The stages of a run, one after another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stages(pub Vec<StageSpec>);
