//! Intent: parse, merge (file < environment < flags), validate, resolve to an immutable [`Plan`].

pub mod plan;

pub use plan::{Lane, Limits, Overflow, Plan, Secret, TlsPlan};
