//! Tests the schedule through its public API, in virtual time.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod arrivals;
mod fingerprint;
mod notation;
mod pairs;
mod virtual_users;
