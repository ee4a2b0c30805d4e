//! Rates, shares and volumes: one line per group.

use plimsoll_metrics::{Counters, Group, RunSummary, StageInfo};

use super::Labelled;
use crate::format;
use crate::screen::Chapter;
use crate::table::Table;

const HEADINGS: [&str; 13] = [
    "",
    "time",
    "planned/s",
    "sent/s",
    "done/s",
    "peak",
    "ok",
    "rejected",
    "failed",
    "timeout",
    "tokens/s",
    "in/s",
    "out/s",
];

pub(super) fn table(groups: &[Labelled<'_>], stages: &[StageInfo]) -> Table {
    let mut table = Table::new(HEADINGS);
    for (label, group) in groups {
        table.row(row(label, group, stages));
    }
    table
}

fn row(label: &str, group: &Group, stages: &[StageInfo]) -> Vec<String> {
    let rates = &group.rates;
    vec![
        label.to_owned(),
        format::seconds(group.duration_s),
        format::rate(rates.planned_rate_per_s),
        format::rate_figure(group.named_rate("achieved_rate")),
        format::rate_figure(group.named_rate("throughput")),
        peak(group, stages).map(format::count).unwrap_or_default(),
        format::share_of(group.counters.ok_share()),
        format::share_of(rates.reject_rate),
        format::share_of(rates.failure_rate),
        format::share_of(rates.timeout_rate),
        tokens(group).unwrap_or_default(),
        per_second(group, group.counters.bytes_in),
        per_second(group, group.counters.bytes_out),
    ]
}

fn per_second(group: &Group, bytes: u64) -> String {
    if group.duration_s > 0.0 {
        format::bytes(bytes as f64 / group.duration_s)
    } else {
        "n/a".to_owned()
    }
}

/// The peak of a stage, or of all measured stages; it is not known of scenarios and targets.
fn peak(group: &Group, stages: &[StageInfo]) -> Option<u64> {
    if group.scenario.is_some() || group.target.is_some() {
        return None;
    }
    stages
        .iter()
        .filter(|stage| match &group.stage {
            Some(name) => stage.name == *name,
            None => !stage.warmup,
        })
        .filter_map(|stage| stage.peak_in_flight)
        .max()
}

/// Output tokens per second; `None` without any.
pub(super) fn tokens(group: &Group) -> Option<String> {
    group.token_rate().map(|tokens| format::token_rate(&tokens, format::rate_figure))
}

// The accounting identity, by stage and by target.

const ACCOUNTING_HEADINGS: [&str; 10] = [
    "",
    "scheduled",
    "= completed",
    "+ rejected",
    "+ failed",
    "+ timed out",
    "+ cancelled",
    "+ in flight",
    "+ never sent",
    "",
];

pub(super) fn accounting_chapter(summary: &RunSummary) -> Chapter {
    let mut chapter = Chapter::new("Accounting (in flight: without a response at the end)");
    let mut table = Table::new(ACCOUNTING_HEADINGS);
    for group in &summary.results.by_stage {
        let name = group.stage.as_deref().unwrap_or_default();
        let mark = match (group.warmup, name.starts_with('w')) {
            (false, _) => "",
            (true, true) => " (warm-up)",
            (true, false) => " (cut off)",
        };
        table.row(accounting_row(format!("{name}{mark}"), &group.counters));
    }
    if summary.results.by_target.len() > 1 {
        for group in &summary.results.by_target {
            let name = group.target.as_deref().unwrap_or_default();
            table.row(accounting_row(format!("to {name}"), &group.counters));
        }
    }
    table.row(accounting_row("all".to_owned(), &summary.results.accounting()));
    chapter.table(&table);
    chapter
}

fn accounting_row(label: String, a: &Counters) -> Vec<String> {
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
