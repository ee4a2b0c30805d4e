//! Is it slower than it was? The rule of the baseline seed: a drop over 20 % on the same hardware fails.

use std::fs;
use std::path::Path;

use plimsoll_metrics::{Environment, Judgement};

use crate::error::SuiteError;
use crate::gate::{Bound, Gate};
use crate::report::{Report, SCHEMA, Section};
use crate::table::Table;
use crate::words::{percent, rate};

/// The drop of throughput that is still no regression.
const DROP: f64 = 0.2;

/// Reads an earlier result.
///
/// # Errors
/// Where there is none, or one of another layout or suite.
pub(crate) fn read(path: &Path, suite: &str) -> Result<Report, SuiteError> {
    let refuse = |why: String| SuiteError::Baseline { path: path.to_owned(), why };
    let bytes = fs::read(path).map_err(|error| refuse(error.to_string()))?;
    let old: Report = serde_json::from_slice(&bytes).map_err(|error| refuse(error.to_string()))?;
    if old.schema != SCHEMA || old.suite != suite {
        let is = format!("it is the result of `{}` in layout {}", old.suite, old.schema);
        return Err(refuse(format!("{is}, not of `{suite}` in {SCHEMA}")));
    }
    Ok(old)
}

/// Compares cell by cell: the table, and a bound for each.
pub(crate) fn compare(old: &Report, new: &Report) -> (Section, Vec<Gate>) {
    let other = difference(old, new);
    let mut table = Table::new(["MeasurementResult", "before/s", "now/s", "change"]);
    let mut gates = Vec::new();
    for cell in &new.cells {
        let Some(before) = old.cells.iter().find(|before| before.label == cell.label) else {
            continue;
        };
        let of = |figures: Option<crate::cell::Figures>| figures.and_then(|f| f.requests_per_s);
        let (then, now) = (of(before.figures()), of(cell.figures()));
        // Where the load sets the rate, throughput says nothing about the gateway.
        if cell.rate.is_some() {
            continue;
        }
        let drop = then.zip(now).map(|(then, now)| 1.0 - now / then);
        table.row([cell.label.clone(), rate(then), rate(now), percent(drop.map(|drop| -drop))]);
        let what = format!("drop since {}: {}", old.started, cell.label);
        let mut gate = Gate::value(&what, drop, Bound::at_most(DROP, percent));
        let unsound = before.is_invalid() || cell.is_invalid();
        if let Some(why) =
            other.clone().or_else(|| unsound.then(|| "a measurement is invalid".to_owned()))
        {
            gate.judgement = Judgement::Inconclusive(why);
        }
        gates.push(gate);
    }
    let section = Section::new(format!("Against {} ({})", old.started, old.command), table).note(
        "a drop over 20 % on the same hardware fails; the play-book is in docs/guides/suites.md",
    );
    (section, gates)
}

/// Why two results cannot be compared; `None` where they can.
fn difference(old: &Report, new: &Report) -> Option<String> {
    let hardware =
        |e: &Environment| (e.cpu_model.clone(), e.cpu_count, e.cpu_quota.map(f64::to_bits));
    let (before, now) = (hardware(&old.environment), hardware(&new.environment));
    if before != now {
        let words = |(model, count, _): (Option<String>, Option<u32>, Option<u64>)| {
            let count = count.map_or_else(crate::words::dash, |count| count.to_string());
            format!("{} x {}", count, model.unwrap_or_else(crate::words::dash))
        };
        let (before, now) = (words(before), words(now));
        return Some(format!("other hardware: {before} then, {now} now"));
    }
    let builds = (old.debug_build, new.debug_build);
    (builds.0 != builds.1).then(|| "one of the two is a debug build".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Figures, MeasurementResult};

    fn report(rate: f64, cpu: &str) -> Report {
        let figures = Figures { requests_per_s: Some(rate), ..Figures::default() };
        let cell = MeasurementResult {
            label: "live".to_owned(),
            passes: vec![figures],
            ..MeasurementResult::default()
        };
        let json = serde_json::json!({
            "schema": SCHEMA, "suite": "baseline", "title": "", "started": "S", "command": "c",
            "quick": false, "debug_build": false, "interrupted": false, "subject": [],
            "environment": {"cpu_model": cpu, "cpu_count": 2},
            "cells": [cell], "sections": [], "findings": [], "gates": [], "sizing": null,
            "references": [], "skipped": [],
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_drop_over_a_fifth_on_the_same_hardware_fails() {
        for (now, cpu, word) in [
            (100.0, "a", "PASS"),
            (80.5, "a", "PASS"),
            (79.0, "a", "FAIL"),
            (150.0, "a", "PASS"),
            (10.0, "b", "no telling"),
        ] {
            let (section, gates) = compare(&report(100.0, "a"), &report(now, cpu));
            assert_eq!(gates.len(), 1);
            assert_eq!(gates[0].word(), word, "{now} on {cpu}: {:?}", gates[0]);
            assert_eq!(section.table.rows.len(), 1);
        }
    }

    #[test]
    fn an_invalid_measurement_proves_no_regression() {
        let mut now = report(10.0, "a");
        now.cells[0].passes[0].invalid = Some("late".to_owned());
        assert_eq!(compare(&report(100.0, "a"), &now).1[0].word(), "no telling");
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("suite.json");
        assert!(read(&path, "baseline").is_err());
        fs::write(&path, serde_json::to_vec(&report(1.0, "a")).unwrap()).unwrap();
        assert!(read(&path, "baseline").is_ok());
        let error = read(&path, "quick").unwrap_err().to_string();
        assert!(error.contains("the result of `baseline`"), "{error}");
    }
}
