//! The shards of a merged run, side by side.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a shard ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShardState {
    /// It ended, and all of its files are there.
    Done,
    /// A signal ended its load early; or it was cut off: in its load, and its counts go up to a
    /// second before that, or while it wrote its files; or files of it are damaged.
    Partial,
    /// It was ready only after the common start, and sent nothing.
    Late,
    /// None of its files were found.
    #[default]
    Missing,
}

impl fmt::Display for ShardState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done => "done",
            Self::Partial => "partial",
            Self::Late => "late",
            Self::Missing => "missing",
        })
    }
}

/// A signal that ended the load of a shard before its end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interruption {
    /// When, in seconds after the start of its load.
    pub at_s: f64,
    /// Planned length of its load, in seconds.
    pub of_s: f64,
}

/// One shard of a merged run.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShardPart {
    /// Which part of the run, `k/n` with k from 0.
    pub shard: String,
    /// How it ended.
    pub state: ShardState,
    /// Start of its load after the first shard's, in seconds, by the wall clocks of their hosts,
    /// corrected by the clock difference that a launcher measured.
    pub start_s: Option<f64>,
    /// By how much its host's clock may differ from the launcher's after that, in seconds; left out
    /// if nobody compared them.
    pub clock_uncertainty_s: Option<f64>,
    /// How long after the common start it was ready, in seconds, if it was late.
    pub late_by_s: Option<f64>,
    /// The signal that ended its load early, if one did.
    pub interrupted: Option<Interruption>,
    /// Which of its files are damaged, and how; what they hold is not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
    /// Planned length of its load, in seconds.
    #[serde(default)]
    pub planned_s: f64,
    /// How far its counts go after its start, in seconds.
    pub counted_s: Option<f64>,
    /// Whether these are all of its counts: it sent its whole load, with any end after that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counted_all: bool,
    /// Requests that its schedule asked for, outside of warm-up.
    pub scheduled: u64,
    /// Part of these that completed.
    pub completed: u64,
    /// Part of these without a good answer.
    pub unexpected: u64,
    /// Median of the time that heads the report, in milliseconds.
    pub p50_ms: Option<f64>,
    /// Its 99th percentile.
    pub p99_ms: Option<f64>,
    /// Whether the shard by itself is valid; left out if it was cut off.
    pub valid: Option<bool>,
}

/// The shards that did not complete their part of the load with all of their files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Losses {
    /// Whether there are any.
    pub any: bool,
    /// The part of the load that is not counted.
    pub below: f64,
    /// The same with every shard of which a file is damaged.
    share: f64,
}

impl Losses {
    /// The losses of a load that is divided among these shards.
    pub fn of<'p>(parts: impl Iterator<Item = &'p ShardPart>) -> Self {
        let (mut losses, mut all) = (Self::default(), 0.0);
        for part in parts {
            let below = missing_part(part);
            losses.any |= part.state != ShardState::Done;
            losses.below += below;
            losses.share += if part.damaged.is_empty() { below } else { 1.0 };
            all += 1.0;
        }
        Self { below: losses.below / all, share: losses.share / all, ..losses }
    }

    /// Whether at most this part of the load is missing.
    pub fn are_within(self, most: f64) -> bool {
        most > 0.0 && self.share <= most + f64::EPSILON
    }
}

/// The part of its own load that a shard did not count.
fn missing_part(part: &ShardPart) -> f64 {
    match (part.state, part.interrupted, part.counted_s) {
        (ShardState::Done, ..) => 0.0,
        (_, Some(Interruption { at_s, of_s }), _) => 1.0 - (at_s / of_s).min(1.0),
        _ if part.counted_all => 0.0,
        (.., Some(counted_s)) if part.planned_s > 0.0 => {
            1.0 - (counted_s / part.planned_s).min(1.0)
        }
        _ => 1.0,
    }
}
