//! Adds the shards of a run up to one result.
//!
//! - [`Shard`]: the folder of one shard, read back
//! - [`ShardSet`]: shards of one and the same run, checked; it names those that are missing
//! - [`ShardSet::merge`]: counters and histograms added up as whole numbers, bucket by bucket
//! - [`merge_rows`]: the rows of all shards in one file, read line by line
//!
//! Values are never averaged: a percentile of the whole run comes from the added histograms.

mod health;
mod merged;
mod shard;
mod shard_set;

pub use merged::{Judges, Merged, merge_rows};
pub use shard::{MergeError, Shard};
pub use shard_set::ShardSet;
