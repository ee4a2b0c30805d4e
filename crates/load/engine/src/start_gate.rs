//! Gates that decide when a run begins.

use std::fmt;

use plimsoll_measure::{Moment, MonotonicClock};

use crate::control::Control;

/// Says when a run begins, once all of its workers are ready: shards of one run begin together.
pub trait StartGate: fmt::Debug + Send {
    /// Waits until shortly before the start, and gives it; `None` where the run is not to begin.
    fn wait(&mut self, clock: &MonotonicClock, control: &Control) -> Option<Moment>;
}
