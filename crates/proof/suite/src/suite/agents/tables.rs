//! The table of a mixed day.

use plimsoll_report::format::{count, digits, or_dash};

use super::{Day, Row, named};
use crate::report::Section;
use crate::suite::columns::{self, Column, ERRORS, GW_CORE, LOAD_CORE, MAX, P50, P99, PLANNED};

pub(super) fn day(day: &Day) -> Section {
    let columns: [Column<Row>; 10] = [
        ("Kind", |row| columns::marked(&row.result, row.kind.name)),
        (PLANNED.0, |row| PLANNED.1(&row.result)),
        ("good answers", |row| columns::shown_cell(&row.result, |f| Some(f.expected()), count)),
        (P50.0, |row| P50.1(&row.result)),
        (P99.0, |row| P99.1(&row.result)),
        (MAX.0, |row| MAX.1(&row.result)),
        ("added, median", |row| or_dash(row.added.clone(), |added| added)),
        (ERRORS.0, |row| ERRORS.1(&row.result)),
        ("errors by code", |row| {
            columns::shown_cell(&row.result, |f| f.error_kinds.clone(), |kinds| kinds)
        }),
        ("with warm-up: client / mock", |row| {
            or_dash(row.logged, |logged| format!("{} / {}", count(row.counts.good), count(logged)))
        }),
    ];
    let table = columns::table(&columns, &day.rows);
    let all: f64 = day.rows.iter().filter_map(|row| row.result.rate).sum();
    let title = format!("{}: {}/s in all", named("A mixed day", day.store), digits(all));
    let mut section = Section::new(title, table);
    section.notes.extend(day.rows.first().map(busy));
    section
}

/// How busy the processes were, with all kinds together.
fn busy(row: &Row) -> String {
    format!("gateway core {}, load core {}", GW_CORE.1(&row.result), LOAD_CORE.1(&row.result))
}
