//! The result of an attempt to open a connection.

use plimsoll_measure::ConnectPhases;

use crate::failure::Failure;

/// A new connection or the failure to open it, with the duration of each phase.
#[derive(Debug)]
pub struct Opened<C> {
    /// Durations of the phases that took place.
    pub phases: ConnectPhases,
    /// The connection.
    pub connection: Result<C, Failure>,
}
