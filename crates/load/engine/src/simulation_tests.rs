//! Virtual time and a scripted target, for unit tests without sleeping and without sockets.
//!
//! The engine's own tasks run unchanged. Its clock and timer show virtual time ([`world`]), its
//! connections lead to a scripted target ([`target`]), and an executor moves the time to the
//! next deadline whenever every task waits ([`executor`]). So each test has exact times, and takes
//! as long as its computations.

pub(crate) mod executor;
pub(crate) mod harness;
pub(crate) mod pool_load;
pub(crate) mod script;
pub(crate) mod serial_server;
pub(crate) mod target;
pub(crate) mod world;
