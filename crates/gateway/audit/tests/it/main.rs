//! The audit as a whole: what is accepted is accounted for, whatever happens to the sink.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests may fail loudly, look at the clock and wait for other threads and processes"
)]

mod accounting;
mod clickhouse;
mod fake_clickhouse;
mod file;
mod kill;
mod support;
