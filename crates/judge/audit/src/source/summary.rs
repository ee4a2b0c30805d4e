//! `summary.json` of Plimsoll: its distributions and counts as tables.

use serde_json::Value;

use crate::document::{Document, Grid, Tool};
use crate::error::AuditError;

/// Lists of groups in the file.
const GROUPS: [&str; 7] =
    ["by_stage", "by_scenario", "by_category", "by_lane", "by_target", "by_operation", "cells"];
/// The statistics of a distribution, with the headings under which they are read.
const STATISTICS: [(&str, &str); 9] = [
    ("count", "samples"),
    ("mean", "mean (ms)"),
    ("min", "min (ms)"),
    ("p50", "p50 (ms)"),
    ("p90", "p90 (ms)"),
    ("p95", "p95 (ms)"),
    ("p99", "p99 (ms)"),
    ("p99_9", "p99.9 (ms)"),
    ("max", "max (ms)"),
];

pub(super) fn read(text: &str) -> Result<Document, AuditError> {
    let value: Value = serde_json::from_str(text).map_err(|_| AuditError::Json)?;
    let schema = value.get("schema").and_then(Value::as_str).unwrap_or_default();
    if !schema.starts_with("plimsoll.summary/") {
        return Err(AuditError::Json);
    }
    let mut document = Document::default();
    if let Some(total) = value.get("total") {
        group("total", total, &mut document);
    }
    for name in GROUPS {
        let list = value.get(name).and_then(Value::as_array);
        for (at, one) in list.into_iter().flatten().enumerate() {
            group(&format!("{name}[{at}]"), one, &mut document);
        }
    }
    Ok(document)
}

fn group(name: &str, group: &Value, document: &mut Document) {
    let distributions = group.get("distributions").and_then(Value::as_object);
    let rows: Vec<(usize, Vec<String>)> = distributions
        .into_iter()
        .flatten()
        .map(|(metric, figures)| (1, row(&format!("{name}.{metric}"), figures)))
        .collect();
    let names = STATISTICS.iter().map(|(_, heading)| (*heading).to_owned());
    let header = std::iter::once(String::new()).chain(names).collect();
    let tool = Some(Tool::Plimsoll);
    document.grid(Grid { line: 1, header, rows, tool, ..Grid::default() });
    counts(name, group, document);
}

fn row(label: &str, figures: &Value) -> Vec<String> {
    let cells = STATISTICS.iter().map(|(key, _)| match figures.get(key) {
        Some(Value::Number(number)) => format!("{}", number.as_f64().unwrap_or(f64::NAN)),
        _ => String::new(),
    });
    std::iter::once(label.to_owned()).chain(cells).collect()
}

/// Requests of the stage, its time and its rate.
fn counts(name: &str, group: &Value, document: &mut Document) {
    let figures = [
        ("/counters/completed_in_stage", "requests"),
        ("/duration_s", "test duration (s)"),
        ("/rates/throughput_per_s", "requests/s"),
    ];
    let pairs = figures.iter().filter_map(|(pointer, heading)| {
        let value = group.pointer(pointer)?.as_f64()?;
        Some((1, (*heading).to_owned(), format!("{value}")))
    });
    let pairs: Vec<(usize, String, String)> = pairs.collect();
    document.pairs(Some(Tool::Plimsoll), pairs);
    let grid = document.grids.last_mut().filter(|grid| grid.header.len() == 2);
    if let Some(title) = grid.and_then(|grid| grid.header.last_mut()) {
        name.clone_into(title);
    }
}
