//! Answers from constructed evidence: expected values are computed by hand.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod answers;
mod joined;
mod levels;
mod load;
mod own_word;
mod processes;
mod shown;
mod support;
