//! How a table was measured, from the command or the sentence beside it.

use std::ops::Range;

use crate::document::{Grid, Line};
use crate::heading::Quantity;
use crate::number::{Bound, Locale, Number, short};
use crate::record::{Record, Table, Value};
use crate::unit;

/// A stated condition: `-c100` is 100 clients.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    pub(super) quantity: Quantity,
    pub(super) value: f64,
}

/// Adds the conditions to each record that does not state its own.
pub(super) fn apply(table: &mut Table, grid: &Grid, lines: &[Line]) {
    if table.tool.is_some() {
        return;
    }
    let Some((line, found)) = beside(grid, lines) else { return };
    // A number of requests may be that of all rows together.
    let several = table
        .records
        .iter()
        .filter(|record: &&Record| record.values.iter().any(|value| value.number.is_plain()))
        .count()
        > 1;
    for record in &mut table.records {
        for condition in &found {
            let stated = record.values.iter().any(|value| value.quantity == condition.quantity);
            // The label names other connections than the command, or other clients.
            let labelled = record.label.contains("conn") || states_clients(&record.label);
            let of_all = several && condition.quantity == Quantity::Requests;
            if !(stated || of_all || labelled && condition.quantity == Quantity::Clients) {
                record.values.push(stated_value(condition, line));
            }
        }
    }
}

/// `GET /metrics, 256 clients`
fn states_clients(label: &str) -> bool {
    let words: Vec<&str> = label.split_whitespace().collect();
    sentence(&words).iter().any(|condition| condition.quantity == Quantity::Clients)
}

fn stated_value(condition: &Condition, line: &Line) -> Value {
    let value = condition.value;
    let is_time = condition.quantity == Quantity::Duration;
    let text = if is_time { format!("{value}s") } else { format!("{value}") };
    // A test of 30 s takes a little more: what is on its way is waited for.
    let slack = if is_time { 0.5_f64.max(value * 0.02) } else { 0.0 };
    let number = Number {
        low: value - slack,
        value,
        high: value + slack,
        unit: None,
        bound: Bound::Is,
        text,
        rest: String::new(),
        whole: true,
    };
    let (quantity, of) = (condition.quantity, String::new());
    let cell = short(&line.text);
    Value { quantity, of, number, has_unit: true, sure: true, line: line.number, cell }
}

/// The line above or below the table, or the only one of its section, that states conditions. One
/// that touches the table comes first; with one that touches it on each side, nobody knows which is
/// its own.
fn beside<'doc>(grid: &Grid, lines: &'doc [Line]) -> Option<(&'doc Line, Vec<Condition>)> {
    let above = first_stated(grid, lines, grid.line.saturating_sub(1)..grid.line);
    let below = first_stated(grid, lines, grid.end..grid.end + 1);
    match (above, below) {
        (Some(above), Some(below)) if above.1 != below.1 => return None,
        (Some(found), _) | (None, Some(found)) => return Some(found),
        (None, None) => {}
    }
    let further = first_stated(grid, lines, grid.line.saturating_sub(2)..grid.line)
        .or_else(|| first_stated(grid, lines, grid.end..grid.end + 3));
    if further.is_some() {
        return further;
    }
    let section = lines
        .iter()
        .filter(|line| line.section == grid.section)
        .filter(|line: &&Line| !(grid.line..grid.end).contains(&line.number));
    let mut found = section.filter_map(stated);
    let only = found.next()?;
    found.next().is_none().then_some(only)
}

/// The conditions that a line states, if any.
fn stated(line: &Line) -> Option<(&Line, Vec<Condition>)> {
    let found = read(&line.text);
    (!found.is_empty()).then_some((line, found))
}

fn first_stated<'doc>(
    grid: &Grid,
    lines: &'doc [Line],
    range: Range<usize>,
) -> Option<(&'doc Line, Vec<Condition>)> {
    lines
        .iter()
        .filter(|line| line.section == grid.section && range.contains(&line.number))
        .find_map(stated)
}

/// The conditions of a command or a sentence.
pub(super) fn read(text: &str) -> Vec<Condition> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let tool = words.iter().position(|word| {
        let name = word.trim_matches(|c: char| !c.is_alphanumeric());
        matches!(name, "wrk" | "hey" | "oha" | "ab" | "bombardier")
    });
    let mut found = match tool {
        Some(at) => command(words.get(at..).unwrap_or_default()),
        None => Vec::new(),
    };
    if found.is_empty() {
        found = sentence(&words);
    }
    found
}

/// `-c100`, `-c 100`, `-d30s`
fn command(words: &[&str]) -> Vec<Condition> {
    let name = words.first().copied().unwrap_or_default();
    let name = name.trim_matches(|c: char| !c.is_alphanumeric());
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let Some(flag) = word.get(..2).filter(|flag| flag.starts_with('-')) else { continue };
        let own = word.get(2..).unwrap_or_default().trim_start_matches('=');
        let text =
            if own.is_empty() { words.get(at + 1).copied().unwrap_or_default() } else { own };
        let quantity = match (flag, name) {
            ("-c", _) => Quantity::Clients,
            ("-t", "wrk") => Quantity::Threads,
            ("-n", "hey" | "oha" | "ab" | "bombardier") => Quantity::Requests,
            ("-d", "wrk" | "bombardier") | ("-z", "hey" | "oha") => Quantity::Duration,
            _ => continue,
        };
        found.extend(number(text).map(|value| Condition { quantity, value }));
    }
    found
}

fn number(text: &str) -> Option<f64> {
    let text = text.trim_matches(|c: char| !c.is_alphanumeric());
    let number = Number::parse(text, Locale::Point).filter(|number| number.rest.is_empty())?;
    Some(number.value * number.unit.map_or(1.0, |unit| unit.scale))
}

/// `30 concurrent workers, 600 requests`
fn sentence(words: &[&str]) -> Vec<Condition> {
    let mut found: Vec<Condition> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let plain = word.trim_matches(|c: char| !c.is_alphanumeric());
        let Some(value) = number(plain).filter(|_| unit::named(plain).is_none()) else { continue };
        let [one, two] = [1, 2].map(|by| {
            let word = words.get(at + by).copied().unwrap_or_default().to_lowercase();
            word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned()
        });
        let noun =
            if matches!(one.as_str(), "concurrent" | "parallel" | "virtual") { two } else { one };
        let quantity = match noun.as_str() {
            "workers" | "clients" | "connections" | "users" | "vus" => Quantity::Clients,
            "requests" => Quantity::Requests,
            _ => continue,
        };
        if plain.chars().all(|c| c.is_ascii_digit() || c == ',') {
            found.push(Condition { quantity, value });
        }
    }
    let once = found.iter().filter(|condition| {
        found.iter().filter(|other| other.quantity == condition.quantity).count() == 1
    });
    once.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_sentences_state_conditions() {
        let of = |text: &str| -> Vec<(Quantity, f64)> {
            read(text).into_iter().map(|found| (found.quantity, found.value)).collect()
        };
        assert_eq!(
            of("Test: `wrk -t4 -c100 -d1m http://localhost/`"),
            [(Quantity::Threads, 4.0), (Quantity::Clients, 100.0), (Quantity::Duration, 60.0)]
        );
        assert_eq!(
            of("hey -n 2000 -c 50 http://x/"),
            [(Quantity::Requests, 2000.0), (Quantity::Clients, 50.0)]
        );
        assert_eq!(
            of("./load.sh 30 600 \u{2014} 30 concurrent workers, 600 requests, warmed"),
            [(Quantity::Clients, 30.0), (Quantity::Requests, 600.0)]
        );
        assert_eq!(of("from 20 clients to 200 clients"), []);
        assert_eq!(of("wrk 4.2.0 (10 threads, 200-500 connections, 30s duration)"), []);
    }
}
