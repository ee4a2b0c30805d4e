//! Clocks, memory and randomness. Everything above may use them; they know nobody.

pub(crate) mod clock;
pub(crate) mod memory;
pub(crate) mod poll_or_spawn;
pub(crate) mod rng;
