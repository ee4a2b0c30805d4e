//! Answers from constructed evidence: expected values are computed by hand.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod joined;
mod load;
mod own_word;
mod rules;
mod shown;
mod support;
