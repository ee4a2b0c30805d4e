//! Clocks, memory and randomness, for all other modules; they depend on none.

pub(crate) mod clock;
pub(crate) mod memory;
pub(crate) mod poll_or_spawn;
pub(crate) mod rng;
