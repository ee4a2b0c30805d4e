//! Answers from constructed evidence: expected values are computed by hand.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod joined;
mod load;
mod rules;
mod server_timing;
mod shown;
mod support;
