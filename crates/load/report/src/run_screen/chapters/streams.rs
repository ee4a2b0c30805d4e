//! How the streams of each target came and ended.

use plimsoll_metrics::{Group, RunSummary, StreamDiagnosis};

use super::{Labelled, several};
use crate::format::{count, digits, or_dash, time};
use crate::screen::Chapter;
use crate::table::Table;

type Column = (&'static str, fn(&StreamDiagnosis) -> String);

const COLUMNS: [Column; 13] = [
    ("begun", |streams| count(streams.begun)),
    ("intact", |streams| count(streams.intact)),
    ("in lumps", |streams| count(streams.merged)),
    ("events a read", |streams| or_dash(streams.events_per_read, digits)),
    ("in one piece", |streams| count(streams.buffered_whole)),
    ("40 ms waits", |streams| count(streams.stalled)),
    ("read late", |streams| count(streams.read_late)),
    ("stalled", |streams| count(streams.paused)),
    ("stall mean", |streams| or_dash(streams.pause_ms, time)),
    ("stall max", |streams| or_dash(streams.longest_pause_ms, time)),
    ("cut", |streams| count(streams.cut)),
    ("no end", |streams| count(streams.no_end)),
    ("no finish reason", |streams| count(streams.no_finish_reason)),
];

pub(super) fn chapter(summary: &RunSummary) -> Chapter {
    let mut chapter = Chapter::new("Streams");
    let mut groups: Vec<Labelled<'_>> =
        several(super::labelled(&summary.results.by_target, |group| group.target.as_deref()));
    groups.push(("total", &summary.results.total));
    let rows: Vec<_> = groups.iter().filter_map(|(name, group)| row(name, group)).collect();
    if !rows.is_empty() {
        let head = ["", "finish reasons"].into_iter().chain(COLUMNS.map(|(title, _)| title));
        let mut table = Table::new(head);
        for row in rows {
            table.row(row);
        }
        chapter.table(&table);
    }
    chapter
}

fn row(name: &str, group: &Group) -> Option<Vec<String>> {
    let streams = group.streams.as_ref()?;
    let reasons = group.finish_reasons.iter().map(|(reason, n)| format!("{reason} {}", count(*n)));
    let reasons = reasons.collect::<Vec<_>>().join(", ");
    let cells = COLUMNS.iter().map(|(_, cell)| cell(streams));
    Some([name.to_owned(), reasons].into_iter().chain(cells).collect())
}
