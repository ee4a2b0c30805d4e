//! Judges the whole by the findings about its shards.

use plimsoll_metrics::{Judgement, Level, RunSummary};

/// Findings of shards that did not carry the planned load.
const SHARDS: [u16; 2] = [109, 110];

