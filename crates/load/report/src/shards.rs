//! The shards of a merged run, side by side.

use plimsoll_metrics::RunSummary;

use crate::format::{self, count, or_dash, time};
use crate::table::Table;

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
