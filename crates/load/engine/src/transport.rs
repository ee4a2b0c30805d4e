//! The connection pool that turns use: the transport's, or in unit tests one to a scripted target
//! in virtual time.

#[cfg(not(test))]
pub(crate) use plimsoll_transport::Pool;

#[cfg(test)]
pub(crate) use crate::simulation::target::ScriptedPool as Pool;
