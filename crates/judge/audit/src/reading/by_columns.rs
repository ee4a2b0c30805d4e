//! Tables whose columns are quantities, and whose rows are measurements.

use super::{Place, Terms, change_number, understood, value};
use crate::document::Grid;
use crate::heading::{self, Meaning, Quantity};
use crate::number::{Locale, Number};
use crate::record::{Change, Record, Table, Value};
use crate::unit::Dimension;

/// How many columns are understood and have figures.
pub(super) fn known(grid: &Grid, terms: Terms<'_>) -> usize {
    let columns = grid.header.iter().enumerate();
    columns.filter(|(at, heading)| has_figures(grid, *at, heading, terms)).count()
}

fn has_figures(grid: &Grid, at: usize, heading: &str, terms: Terms<'_>) -> bool {
    let Some(meaning) = terms.meaning(heading) else { return false };
    grid.rows.iter().any(|(line, row)| {
        let number = row.get(at).and_then(|cell| Number::parse(cell, terms.locale));
        let place = Place { line: *line, cell: String::new() };
        number.is_some_and(|number| value(&meaning, &number, place).is_some())
    })
}

pub(super) fn table(grid: &Grid, terms: Terms<'_>) -> Table {
    let locale = terms.locale;
    let meanings: Vec<Option<Meaning>> =
        grid.header.iter().map(|heading| terms.meaning(heading)).collect();
    let mut table = Table::default();
    for (heading, meaning) in grid.header.iter().zip(&meanings) {
        match meaning {
            Some(meaning) => table.read.push(understood(heading, meaning)),
            None if !heading.is_empty() => table.not_read.push(heading.clone()),
            None => {}
        }
    }
    let records: Vec<Record> =
        grid.rows.iter().map(|(line, row)| record(grid, &meanings, *line, row, locale)).collect();
    table.changes = changes(grid, &records, locale);
    table.records = records.into_iter().filter(|record| !record.values.is_empty()).collect();
    table
}

fn record(
    grid: &Grid,
    meanings: &[Option<Meaning>],
    line: usize,
    row: &[String],
    locale: Locale,
) -> Record {
    let label = label(row, meanings, locale);
    let mut record = Record { label, line, ..Record::default() };
    for (at, cell) in row.iter().enumerate() {
        let heading = grid.header.get(at).map(String::as_str).unwrap_or_default();
        let number = Number::parse(cell, locale);
        let meaning = meanings.get(at).and_then(Option::as_ref);
        let figure = number.as_ref().and_then(|number| {
            let place = Place { line, cell: format!("{}, {heading}", record.label) };
            match meaning {
                Some(meaning) => value(meaning, number, place),
                None => by_unit(number, place),
            }
        });
        match figure {
            Some(figure) => record.values.push(figure),
            None => record.words.push((heading.to_owned(), cell.clone())),
        }
    }
    record
}

/// The first cells that are no figures; else the first cell.
fn label(row: &[String], meanings: &[Option<Meaning>], locale: Locale) -> String {
    let words = row.iter().enumerate().filter(|(at, cell)| {
        meanings.get(*at).is_none_or(Option::is_none)
            && !cell.is_empty()
            && (*at == 0 || Number::parse(cell, locale).is_none())
    });
    let words: Vec<&str> = words.map(|(_, cell)| cell.as_str()).take(2).collect();
    if words.is_empty() { row.first().cloned().unwrap_or_default() } else { words.join(" ") }
}

/// `961 req/s` is a rate below any heading.
fn by_unit(number: &Number, place: Place) -> Option<Value> {
    let quantity = match number.unit?.dimension {
        Dimension::Rate => Quantity::Rate,
        Dimension::DataRate => Quantity::DataRate,
        _ => return None,
    };
    value(&Meaning { quantity, of: String::new(), unit: None, sure: true }, number, place)
}

/// Changes against the row that says that it is the baseline.
fn changes(grid: &Grid, records: &[Record], locale: Locale) -> Vec<Change> {
    let mut changes = Vec::new();
    for (at, heading) in grid.header.iter().enumerate() {
        if !heading::is_change(heading) {
            continue;
        }
        let Some(base) = baseline(grid, at) else { continue };
        for (row, (line, cells)) in grid.rows.iter().enumerate() {
            let number = cells.get(at).and_then(|cell| change_number(cell, locale));
            let (Some(number), Some(base), Some(own)) =
                (number, records.get(base), records.get(row))
            else {
                continue;
            };
            let groups = pairs(base, own);
            if row != 0 && !groups.is_empty() {
                let cell = format!("{}, {heading}", own.label);
                changes.push(Change { number, line: *line, cell, groups });
            }
        }
    }
    changes
}

/// The row without a change, or with the word.
fn baseline(grid: &Grid, at: usize) -> Option<usize> {
    let mut rows = grid.rows.iter().enumerate().filter(|(_, (_, row))| {
        let cell = row.get(at).map(|cell| cell.to_lowercase()).unwrap_or_default();
        matches!(
            cell.as_str(),
            "-" | "\u{2014}" | "\u{2013}" | "baseline" | "base" | "reference" | ""
        )
    });
    let (row, _) = rows.next()?;
    rows.next().is_none().then_some(row)
}

fn pairs(base: &Record, own: &Record) -> Vec<Vec<Number>> {
    let matches = own.values.iter().filter_map(|value| {
        let old =
            base.values.iter().find(|old| old.quantity == value.quantity && old.of == value.of)?;
        Some(vec![old.number.clone(), value.number.clone()])
    });
    matches.collect()
}
