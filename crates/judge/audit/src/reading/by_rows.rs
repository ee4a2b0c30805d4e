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
    let mut records: Vec<Record> = (0..columns.min(200))
        .map(|at| {
            let label = grid.header.get(at).cloned().unwrap_or_default();
            Record { label, line: grid.line, ..Record::default() }
        })
        .collect();
    let mut table = Table::default();
    for (line, row) in &grid.rows {
        let Some(heading) = row.first() else { continue };
        change(grid, &roles, *line, row, locale, &mut table);
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
            let title = grid.header.get(at).map_or("", String::as_str);
            let place = Place { line: *line, cell: format!("{heading}, {title}") };
            let Some(figure) = value(&meaning, &number, place) else { continue };
            first.get_or_insert_with(|| figure.clone());
            record.values.push(figure);
        }
        let limits = Limits {
            line: *line,
            meaning: &meaning,
            limit: cell_of(&roles, row, Role::Limit),
            critical: cell_of(&roles, row, Role::Critical),
            status: cell_of(&roles, row, Role::Status),
            locale,
        };
        table.checks.extend(first.and_then(|result| limits.check(result)));
        table.bands.extend(limits.band(heading));
    }
    table.records = records.into_iter().filter(|record| !record.values.is_empty()).collect();
    table
}

fn cell_of<'row>(roles: &[Role], row: &'row [String], wanted: Role) -> Option<&'row String> {
    let at = roles.iter().position(|role| *role == wanted)?;
    row.get(at)
}

/// The limits of a row: a target with a status, or bands.
struct Limits<'a> {
    line: usize,
    meaning: &'a Meaning,
    limit: Option<&'a String>,
    critical: Option<&'a String>,
    status: Option<&'a String>,
    locale: Locale,
}

impl Limits<'_> {
    fn check(&self, result: Value) -> Option<Check> {
        let limit = self.number(self.limit?)?;
        Some(Check { result, limit, status: self.status.cloned().unwrap_or_default() })
    }

    fn band(&self, name: &str) -> Option<Band> {
        let critical = self.number(self.critical?)?;
        matches!(critical.bound, Bound::Above | Bound::Below).then(|| Band {
            quantity: self.meaning.quantity,
            of: self.meaning.of.clone(),
            text: critical.text.clone(),
            critical,
            name: name.to_owned(),
            line: self.line,
        })
    }

    fn number(&self, cell: &str) -> Option<Number> {
        let number = Number::parse(cell, self.locale)?;
        let place = Place { line: self.line, cell: String::new() };
        value(self.meaning, &number, place).map(|value| value.number)
    }
}

/// A change beside the figures that it compares.
fn change(
    grid: &Grid,
    roles: &[Role],
    line: usize,
    row: &[String],
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
    let values =
        row.iter().enumerate().filter(|(at, _)| *at > 0 && roles.get(*at) == Some(&Role::Value));
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
