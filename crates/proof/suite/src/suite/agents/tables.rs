//! The table of a mixed day.

use plimsoll_report::format::{count, digits, or_dash};
use plimsoll_report::table::Table;

use super::{Day, Row, named};
use crate::report::Section;
use crate::suite::columns;

pub(super) fn day(day: &Day) -> Section {
    let heads = [
        "Kind",
        "planned/s",
        "good answers",
        "p50",
        "p99",
        "Max",
        "added, median",
        "errors",
        "errors by code",
        "with warm-up: client / mock",
    ];
    let mut table = Table::new(heads);
    for row in &day.rows {
        table.row(cells(day, row));
    }
    let all: f64 = day.rows.iter().filter_map(|row| row.result.rate).sum();
    let title = format!("{}: {}/s in all", named("A mixed day", day.store), digits(all));
    let mut section = Section::new(title, table)
        .note("all kinds at the same time, by arrivals that wait for nobody; times are response times from the intended start");
    if !day.added.is_empty() {
        section = section.note("added: extra time compared with a request sent directly to the upstream, see the table of what each kind adds");
    }
    if day.rows.iter().any(|row| !row.kind.has_direct_way) {
        section = section.note("approvals have no direct way: their time is all of it");
    }
    if day.store.is_some() {
        section = section.note("the mock answers at once: with a real model and real tools these times would be theirs. Its log is read when it has ended: good answers there and here must be as many, but for requests that failed here");
    }
    section.notes.extend(day.rows.first().map(busy));
    section
}

fn cells(day: &Day, row: &Row) -> [String; 10] {
    let result = &row.result;
    let shown = result.shown();
    let label = named(row.kind.name, day.store);
    let added = day.added.iter().find(|compared| compared.label == label);
    let added = added.and_then(|added| Some(added.marked_added(added.compared().first()?)));
    [
        columns::marked(result, row.kind.name),
        or_dash(result.rate, digits),
        or_dash(shown.as_ref(), |figures| count(figures.expected())),
        columns::time(result, |f| f.p50_ms),
        columns::time(result, |f| f.p99_ms),
        columns::time(result, |f| f.max_ms),
        or_dash(added, |cell| cell),
        columns::errors(result),
        or_dash(shown.and_then(|figures| figures.error_kinds), |kinds| kinds),
        or_dash(row.logged, |logged| format!("{} / {}", count(row.counts.good), count(logged))),
    ]
}

/// How busy the processes were, with all kinds together.
fn busy(row: &Row) -> String {
    format!(
        "all kinds together: gateway core {}, load core {}",
        columns::gateway_busy(&row.result),
        columns::load_busy(&row.result)
    )
}
