//! Shards in folders, merged, against one process that counted everything.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod refusals;
mod sums;
mod support;
