//! The shards of a merged run, side by side, and which of them is unlike the others.

use plimsoll_metrics::{RunSummary, ShardPart, ShardState};

use crate::format::{self, count, or_dash, percent, time};
use crate::table::Table;

/// A shard is unlike the others if a figure of it is so many times outside of their range.
const UNLIKE: f64 = 1.5;
/// Shares of failures that differ by less are not named.
const FAILURES: f64 = 0.01;
/// Requests of which a median is compared.
const LEAST: u64 = 100;

/// A row for each shard; `None` of a run that was not divided.
pub fn shard_table(summary: &RunSummary) -> Option<Table> {
    if summary.shards.is_empty() {
        return None;
    }
    let head =
        ["shard", "state", "began", "counted", "scheduled", "completed", "failed", "p50", "p99"];
    let mut table = Table::new(head);
    for part in &summary.shards {
        table.row([
            part.shard.clone(),
            part.state.to_string(),
            or_dash(part.start_s, |start| format!("+{}", time(start * 1e3))),
            or_dash(part.counted_s, format::seconds),
            count(part.scheduled),
            count(part.completed),
            count(part.unexpected),
            format::time_or_dash(part.p50_ms),
            format::time_or_dash(part.p99_ms),
        ]);
    }
    Some(table)
}

/// A sentence for each shard that is unlike all others. Of two nobody knows which one is odd.
pub fn odd_shards(summary: &RunSummary) -> Vec<String> {
    let done = summary.shards.iter().filter(|part| part.state == ShardState::Done);
    let done: Vec<&ShardPart> = done.filter(|part| part.scheduled >= LEAST).collect();
    if done.len() < 3 {
        return Vec::new();
    }
    done.iter().filter_map(|part| odd(part, &done)).collect()
}

fn odd(part: &ShardPart, all: &[&ShardPart]) -> Option<String> {
    let others: Vec<&ShardPart> =
        all.iter().copied().filter(|other| other.shard != part.shard).collect();
    let found: Vec<String> = [
        unlike("p50", part.p50_ms, others.iter().map(|other| other.p50_ms)),
        unlike("p99", part.p99_ms, others.iter().map(|other| other.p99_ms)),
        more_failures(part, &others),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!found.is_empty()).then(|| {
        format!(
            "shard {} is unlike the others: {}; look at its host, and at its way to the target",
            part.shard,
            found.join(", ")
        )
    })
}

/// `p50 12.1ms, theirs 4.90ms to 5.20ms`; `None` within their range, or where one is not known.
fn unlike(
    what: &str,
    own: Option<f64>,
    others: impl Iterator<Item = Option<f64>>,
) -> Option<String> {
    let (own, others) = (own?, others.collect::<Option<Vec<f64>>>()?);
    let least = others.iter().copied().fold(f64::INFINITY, f64::min);
    let most = others.iter().copied().fold(0.0, f64::max);
    let is_odd = own > most * UNLIKE || own * UNLIKE < least;
    is_odd.then(|| format!("{what} {}, theirs {} to {}", time(own), time(least), time(most)))
}

fn more_failures(part: &ShardPart, others: &[&ShardPart]) -> Option<String> {
    let share = |part: &ShardPart| part.unexpected as f64 / part.scheduled.max(1) as f64;
    let most = others.iter().map(|other| share(other)).fold(0.0, f64::max);
    let own = share(part);
    (own > most * UNLIKE && own - most > FAILURES)
        .then(|| format!("{} failed, of theirs at most {}", percent(own), percent(most)))
}
