//! The table of everything but times.

use plimsoll_report::format;
use plimsoll_report::table::Table;

use crate::result::{TargetResult, Versus};

/// A column: its heading, and its cell, if the target has it.
type Column = (&'static str, fn(&TargetResult) -> Option<String>);

/// A column that no target has is left out.
const COLUMNS: [Column; 10] = [
    ("turns", |target| Some(format::count(target.turns))),
    ("per s", |target| target.throughput.map(format::digits)),
    ("failed", |target| Some(format::count(target.failed))),
    ("correct", |target| target.correct.map(format::share)),
    ("CPU/req", |target| target.cpu_ns_per_request.map(|nanos| format::time(nanos / 1e6))),
    ("memory", |target| target.memory_bytes.map(|bytes| format::bytes(bytes as f64))),
    ("start-up", |target| target.startup_ns.map(|nanos| format::time(nanos as f64 / 1e6))),
    ("image", |target| target.image_bytes.map(|bytes| format::bytes(bytes as f64))),
    ("reused", |target| target.reused.map(format::share)),
    ("sent late", |target| target.dispatch_lag_p99_ns.map(|nanos| format::time(nanos / 1e6))),
];

pub(super) fn table(versus: &Versus) -> Table {
    let columns: Vec<&Column> = COLUMNS
        .iter()
        .filter(|column: &&Column| versus.targets.iter().any(|target| column.1(target).is_some()))
        .collect();
    let head = [""].into_iter().chain(columns.iter().map(|column| column.0));
    let mut table = Table::new(head);
    for target in &versus.targets {
        let cells = columns.iter().map(|column| format::or_dash(column.1(target), |cell| cell));
        let first = target.name.clone();
        table.row([first].into_iter().chain(cells));
    }
    table
}

/// How turns of targets failed, and which targets were taken out.
pub(super) fn failures(versus: &Versus) -> Vec<String> {
    let failed = versus.targets.iter().filter(|target| !target.failures.is_empty());
    let failed = failed.map(|target| {
        let parts: Vec<_> = target
            .failures
            .iter()
            .map(|(word, count): (&String, &u64)| format!("{} {word}", format::count(*count)))
            .collect();
        format!("{} failed: {}", target.name, parts.join(", "))
    });
    let taken_out = versus.targets.iter().filter_map(|target| {
        target.taken_out.as_ref().map(|why| format!("{} was taken out {why}", target.name))
    });
    failed.chain(taken_out).collect()
}
