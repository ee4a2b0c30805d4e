//! Tests with generated runs and logs, and planted differences.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod files;
mod large;
mod matching;
mod planted;
mod reference;
mod robust;
mod support;
mod wrong;
