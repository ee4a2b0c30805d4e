//! When: stages and pacers turn a spec and a seed into intended start times.
//!
//! Everything here is a pure function of (spec, seed, index). No clock is read and nothing sleeps.

pub mod spec;

pub use spec::{Arrivals, Load, StageSpec, Stages};
