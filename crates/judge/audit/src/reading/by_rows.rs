//! Tables and lists whose rows are quantities, and whose columns are measurements.

use super::{Place, Terms, change_number, is_limit, is_status, understood, value};
use crate::document::Grid;
use crate::heading::{self, Meaning};
use crate::number::{Bound, Locale, Number};
use crate::record::{Band, Change, Check, Record, Table, Value};

/// What a column is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Value,
    Limit,
    Critical,
    Degraded,
    Status,
    Change,
}

/// How many rows are understood and have figures.
pub(super) fn known(grid: &Grid, terms: Terms<'_>) -> usize {
    grid.rows
        .iter()
        .filter(|(line, row): &&(usize, Vec<String>)| {
            let Some(meaning) = row.first().and_then(|heading| terms.meaning(heading)) else {
                return false;
            };
            row.iter().enumerate().skip(1).any(|(at, cell)| {
                let place = Place { line: *line, cell: String::new() };
                let number = number_of(grid, at, cell, terms.locale);
                number.is_some_and(|number| value(&meaning, &number, place).is_some())
            })
        })
        .count()
}

/// A column's heading may have the unit: `Latency (ms)`.
fn number_of(grid: &Grid, at: usize, cell: &str, locale: Locale) -> Option<Number> {
    let mut number = Number::parse(cell, locale)?;
    if number.unit.is_none() {
        let heading = grid.header.get(at)?;
        let inner = heading.rsplit_once('(').and_then(|(_, inner)| inner.strip_suffix(')'));
        number.unit = inner.and_then(crate::unit::named);
    }
    Some(number)
}

fn roles(grid: &Grid) -> Vec<Role> {
    grid.header
        .iter()
        .map(|heading: &String| {
            let name = heading.to_lowercase();
            match name.as_str() {
                _ if name.starts_with("critical") => Role::Critical,
                _ if name.starts_with("degraded") || name.starts_with("warning") => Role::Degraded,
                _ if is_limit(heading) => Role::Limit,
                _ if is_status(heading) => Role::Status,
                _ if heading::is_change(heading) => Role::Change,
                _ => Role::Value,
            }
        })
        .collect()
}

pub(super) fn table(grid: &Grid, terms: Terms<'_>) -> Table {
    let locale = terms.locale;
    let roles = roles(grid);
    let columns =
        grid.rows.iter().map(|(_, row)| row.len()).max().unwrap_or(0).max(grid.header.len());
    let title = |at: usize| grid.header.get(at).cloned().unwrap_or_default();
    let mut records: Vec<Record> = (0..columns.min(200))
        .map(|at| Record { label: title(at), line: grid.line, ..Record::default() })
        .collect();
    let mut table = Table::default();
    for (line, row) in &grid.rows {
        let Some(heading) = row.first() else { continue };
        change(grid, &roles, (*line, row), locale, &mut table);
        let Some(meaning) = terms.meaning(heading) else {
            if !heading.is_empty() {
                table.not_read.push(heading.clone());
            }
            continue;
        };
        table.read.push(understood(heading, &meaning));
        let mut first = None;
        for (at, cell) in row.iter().enumerate().skip(1) {
            let number = number_of(grid, at, cell, locale);
            let role = roles.get(at).copied().unwrap_or(Role::Value);
            let (Some(number), Role::Value, Some(record)) = (number, role, records.get_mut(at))
            else {
                continue;
            };
            let place = Place { line: *line, cell: format!("{heading}, {}", title(at)) };
            let Some(figure) = value(&meaning, &number, place) else { continue };
            first.get_or_insert_with(|| figure.clone());
            record.values.push(figure);
        }
        limits(grid, &roles, (*line, row), (&meaning, first, locale), &mut table);
    }
    table.records = records.into_iter().filter(|record| !record.values.is_empty()).collect();
    table
}

fn cell_of<'row>(roles: &[Role], row: &'row [String], wanted: Role) -> Option<&'row String> {
    let at = roles.iter().position(|role| *role == wanted)?;
    row.get(at)
}

/// The limits of a row: a target with a status, or bands.
fn limits(
    grid: &Grid,
    roles: &[Role],
    (line, row): (usize, &[String]),
    (meaning, result, locale): (&Meaning, Option<Value>, Locale),
    table: &mut Table,
) {
    let limit = |role| {
        let number = Number::parse(cell_of(roles, row, role)?, locale)?;
        let place = Place { line, cell: String::new() };
        value(meaning, &number, place).map(|value| value.number)
    };
    if let (Some(result), Some(limit)) = (result, limit(Role::Limit)) {
        let status = cell_of(roles, row, Role::Status).cloned().unwrap_or_default();
        table.checks.push(Check { result, limit, status });
    }
    let Some(critical) = limit(Role::Critical) else { return };
    if matches!(critical.bound, Bound::Above | Bound::Below) {
        let heading = row.first().cloned().unwrap_or_default();
        table.bands.push(Band {
            quantity: meaning.quantity,
            of: meaning.of.clone(),
            text: critical.text.clone(),
            critical,
            name: heading,
            line: grid.rows.iter().find(|(at, _)| *at == line).map_or(line, |(at, _)| *at),
        });
    }
}

/// A change beside the figures that it compares.
fn change(
    grid: &Grid,
    roles: &[Role],
    (line, row): (usize, &[String]),
    locale: Locale,
    table: &mut Table,
) {
    let Some(at) = roles.iter().position(|role| *role == Role::Change) else { return };
    let heading = grid.header.get(at).map(|name| name.to_lowercase()).unwrap_or_default();
    let elsewhere = ["since", "last", "previous", "prior", "yoy", "vs", "target"];
    if heading.split_whitespace().any(|word| elsewhere.contains(&word.trim_matches('.'))) {
        return;
    }
    let Some(number) = row.get(at).and_then(|cell| change_number(cell, locale)) else { return };
    let is_value = |at: usize| at > 0 && roles.get(at) == Some(&Role::Value);
    let values = row.iter().enumerate().filter(|(at, _)| is_value(*at));
    let numbers: Vec<Number> = values
        .filter_map(|(at, cell)| number_of(grid, at, cell, locale))
        .map(|number| {
            let scale = number.unit.map_or(1.0, |unit| unit.scale);
            number.scaled(scale)
        })
        .collect();
    let units: Vec<_> =
        numbers.iter().map(|number| number.unit.map(|unit| unit.dimension)).collect();
    let alike = units.windows(2).all(|two| two[0] == two[1]);
    if numbers.len() == 2 && alike && numbers.iter().all(Number::is_plain) {
        let label = row.first().map(String::as_str).unwrap_or_default();
        let cell =
            format!("{label}, {}", grid.header.get(at).map(String::as_str).unwrap_or_default());
        table.changes.push(Change { number, line, cell, groups: vec![numbers] });
    }
}
