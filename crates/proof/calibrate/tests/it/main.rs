//! The calibration through its public interface.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod experiments;
mod merged_shards;
mod printed_intervals;
mod record;
mod screens;
mod support;
