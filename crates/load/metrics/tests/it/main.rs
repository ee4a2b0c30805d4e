//! Tests of the crate through its public API.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod accounting;
mod confidence;
mod effect;
mod examples;
mod limits;
mod operations;
mod policy;
mod rates;
mod recording;
mod reference;
mod rules;
mod server_metrics;
mod server_report;
mod server_timing;
mod summary;
mod support;
mod tasks;
mod thresholds;
mod time_series;
