//! The connection pool that turns use: the transport's, which leads to the target, or in unit tests
//! to a scripted target in virtual time.

#[cfg(not(test))]
pub(crate) type TargetOpener = plimsoll_transport::TargetOpener<crate::clock::WorkerClock>;

#[cfg(test)]
pub(crate) use crate::simulation_tests::target::ScriptedOpener as TargetOpener;

/// The connections to one target.
pub(crate) type Pool = plimsoll_transport::Pool<TargetOpener>;

/// A wait for a connection that ended.
pub(crate) type Acquired<'p> = plimsoll_transport::Acquired<'p, TargetOpener>;

/// A connection of a pool that is in use.
pub(crate) type Lease<'p> = plimsoll_transport::Lease<'p, TargetOpener>;
