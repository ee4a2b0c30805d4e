//! The accounting identity, by stage and by target.

use plimsoll_metrics::{Counters, RunSummary};

use crate::format;
use crate::screen::Chapter;
use crate::table::Table;

const HEADINGS: [&str; 10] = [
    "",
    "scheduled",
    "= completed",
    "+ refused",
    "+ failed",
    "+ timed out",
    "+ cancelled",
    "+ in flight",
    "+ never sent",
    "",
];

pub(super) fn chapter(summary: &RunSummary) -> Chapter {
    let mut chapter = Chapter::new("Accounting (in flight: without a response at the end)");
    let mut table = Table::new(HEADINGS);
    for group in &summary.results.by_stage {
        let name = group.stage.as_deref().unwrap_or_default();
        let label = if group.warmup { format!("{name} (warm-up)") } else { name.to_owned() };
        table.row(row(label, &group.counters));
    }
    if summary.results.by_target.len() > 1 {
        for group in &summary.results.by_target {
            let name = group.target.as_deref().unwrap_or_default();
            table.row(row(format!("to {name}"), &group.counters));
        }
    }
    table.row(row("all".to_owned(), &summary.results.accounting()));
    chapter.table(&table);
    chapter
}

fn row(label: String, a: &Counters) -> Vec<String> {
    let terms = [
        a.scheduled,
        a.completed,
        a.rejected,
        a.failed,
        a.timed_out,
        a.cancelled,
        a.in_flight,
        a.never_sent,
    ];
    let mut cells = vec![label];
    cells.extend(terms.map(format::count));
    cells.push(if a.balanced() { String::new() } else { "WRONG".to_owned() });
    cells
}
