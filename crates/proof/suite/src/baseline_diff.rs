//! The difference to an earlier result: a drop of throughput over 20 % on the same hardware fails.

use std::fs;
use std::path::Path;

use plimsoll_metrics::{BoundedFigure, Environment, Judgement};
use plimsoll_report::format::{DASH, or_dash, percent, rate_figure};
use plimsoll_report::table::Table;

use crate::bound::{BoundResult, Requirement};
use crate::error::SuiteError;
use crate::report::{OLDER_SCHEMAS, Report, SCHEMA, Section};
use crate::result::{MeasurementResult, Unusable};

/// The largest drop of throughput that is not a regression.
const DROP: f64 = 0.2;

/// Reads an earlier result.
///
/// # Errors
/// If there is none, or one of an unknown layout or another suite.
pub(crate) fn read(path: &Path, suite: &str) -> Result<Report, SuiteError> {
    let unusable = |why: String| SuiteError::Baseline { path: path.to_owned(), why };
    let bytes = fs::read(path).map_err(|error| unusable(error.to_string()))?;
    let old: Report =
        serde_json::from_slice(&bytes).map_err(|error| unusable(error.to_string()))?;
    let known = old.schema == SCHEMA || OLDER_SCHEMAS.contains(&old.schema.as_str());
    if !known || old.suite != suite {
        let found = format!("it is the result of `{}` in layout {}", old.suite, old.schema);
        return Err(unusable(format!("{found}, not of `{suite}` in {SCHEMA}")));
    }
    Ok(old)
}

/// Compares each measurement with its predecessor: a table, and a bound for each.
pub(crate) fn compare(old: &Report, new: &Report) -> (Section, Vec<BoundResult>) {
    let other = difference(old, new);
    let mut table = Table::new(["Measurement", "before/s", "now/s", "change"]);
    let mut bounds = Vec::new();
    for result in &new.measurements {
        let Some(before) = old.measurements.iter().find(|before| before.label == result.label)
        else {
            continue;
        };
        // In the open model the throughput is that of the plan.
        if result.rate.is_some() {
            continue;
        }
        let rate = |result: &MeasurementResult| result.bounded(|f| f.requests_per_s);
        let (then, now) = (rate(before), rate(result));
        let drop = then.as_ref().ok().zip(now.as_ref().ok()).map(|(then, now)| BoundedFigure {
            value: 1.0 - now.value / then.value,
            bound: now.bound / then.value,
            refused: now.refused.or(then.refused),
        });
        let label = format!("{}{}", result.marker(), result.label);
        let per_s = |rate: Option<&BoundedFigure>| or_dash(rate, |rate| rate_figure(Some(*rate)));
        table.row([
            label,
            per_s(then.as_ref().ok()),
            per_s(now.as_ref().ok()),
            or_dash(drop.and_then(|drop| drop.usable()).map(|drop| -drop), percent),
        ]);
        let what = format!("drop since {}: {}", old.started, result.label);
        let mut bound = BoundResult::figure(
            &what,
            drop.ok_or(Unusable::NoValue),
            Requirement::at_most(DROP, percent),
        );
        let host =
            |result: &MeasurementResult| result.passes.iter().find_map(|f| f.busy_host.clone());
        let doubt = other
            .clone()
            .or_else(|| Some(format!("now, {}", now.err()?)))
            .or_else(|| Some(format!("then, {}", then.err()?)))
            .or_else(|| {
                Some(format!("the host was busy: {}", host(result).or_else(|| host(before))?))
            });
        if let Some(why) = doubt {
            bound.judgement = Judgement::Inconclusive(why);
        }
        bounds.push(bound);
    }
    let section = Section::new(format!("Against {} ({})", old.started, old.command), table).note(
        "a drop over 20 % on the same hardware fails; what to do is in docs/guides/suites.md",
    );
    (section, bounds)
}

/// Why two results cannot be compared; `None` if they can.
fn difference(old: &Report, new: &Report) -> Option<String> {
    let hardware =
        |e: &Environment| (e.cpu_model.clone(), e.cpu_count, e.cpu_quota.map(f64::to_bits));
    let (before, now) = (hardware(&old.environment), hardware(&new.environment));
    if before != now {
        let text = |(model, count, _): (Option<String>, Option<u32>, Option<u64>)| {
            let count = count.map_or_else(|| DASH.to_owned(), |count| count.to_string());
            format!("{} x {}", count, model.unwrap_or_else(|| DASH.to_owned()))
        };
        let (before, now) = (text(before), text(now));
        return Some(format!("other hardware: {before} then, {now} now"));
    }
    let builds = (old.debug_build, new.debug_build);
    (builds.0 != builds.1).then(|| "one of the two is a debug build".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Figures;

    fn report(rate: f64, cpu: &str) -> Report {
        let figures = Figures {
            requests: 10,
            requests_per_s: Some(BoundedFigure::exact(rate)),
            ..Figures::default()
        };
        let result = MeasurementResult {
            label: "live".to_owned(),
            passes: vec![figures],
            ..MeasurementResult::default()
        };
        let json = serde_json::json!({
            "schema": SCHEMA, "suite": "baseline", "title": "", "started": "S", "command": "c",
            "quick": false, "debug_build": false, "interrupted": false, "setup": [],
            "environment": {"cpu_model": cpu, "cpu_count": 2},
            "measurements": [result], "sections": [], "findings": [], "bounds": [], "sizing": null,
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
            (10.0, "b", "inconclusive"),
        ] {
            let (section, bounds) = compare(&report(100.0, "a"), &report(now, cpu));
            assert_eq!(bounds.len(), 1);
            assert_eq!(bounds[0].status(), word, "{now} on {cpu}: {:?}", bounds[0]);
            assert_eq!(section.table.rows.len(), 1);
        }
    }

    #[test]
    fn an_invalid_measurement_is_inconclusive() {
        let mut now = report(10.0, "a");
        now.measurements[0].passes[0].invalid = Some("late".to_owned());
        assert_eq!(compare(&report(100.0, "a"), &now).1[0].status(), "inconclusive");
        let pass = &mut now.measurements[0].passes[0];
        (pass.invalid, pass.busy_host) = (None, Some("12.0% was stolen".to_owned()));
        assert_eq!(compare(&report(100.0, "a"), &now).1[0].status(), "inconclusive");
        // A rate that the generator kept down shows neither a drop nor that there is none.
        for now_is_low in [true, false] {
            let (mut then, mut now) = (report(100.0, "a"), report(10.0, "a"));
            let low = if now_is_low { &mut now } else { &mut then };
            let rate = &mut low.measurements[0].passes[0].requests_per_s;
            rate.as_mut().unwrap().refused = Some(plimsoll_metrics::Refusal::Generator);
            let (section, bounds) = compare(&then, &now);
            assert_eq!(bounds[0].status(), "inconclusive");
            let row = &section.table.rows[0];
            assert_eq!(row[3], "-");
            assert!(row[if now_is_low { 2 } else { 1 }].ends_with('!'), "{row:?}");
        }
        // Ten times as many refusals are no gain.
        let mut refused = report(1_000.0, "a");
        refused.measurements[0].passes[0].errors = 10;
        let (section, bounds) = compare(&report(100.0, "a"), &refused);
        assert_eq!(bounds[0].status(), "inconclusive");
        assert_eq!(section.table.rows[0][0], "[ERRORS] live");
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

    #[test]
    fn a_file_of_version_0_1_0_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("suite.json");
        let mut old = serde_json::to_value(report(100.0, "a")).unwrap();
        let fields = old.as_object_mut().unwrap();
        fields.insert("schema".to_owned(), "plimsoll.suite/1".into());
        for (new, old) in [("measurements", "cells"), ("bounds", "gates"), ("setup", "subject")] {
            let value = fields.remove(new).unwrap();
            fields.insert(old.to_owned(), value);
        }
        let cell = fields["cells"][0].as_object_mut().unwrap();
        for (new, old) in [("error", "fault"), ("errors_expected", "errors_wanted")] {
            let value = cell.remove(new).unwrap();
            cell.insert(old.to_owned(), value);
        }
        cell.insert("fault".to_owned(), "no port".into());
        fs::write(&path, old.to_string()).unwrap();
        let read_back = read(&path, "baseline").unwrap();
        assert_eq!(read_back.measurements[0].error.as_deref(), Some("no port"));
        assert_eq!(compare(&read_back, &report(70.0, "a")).1[0].status(), "FAIL");

        fs::write(&path, old.to_string().replace("suite/1", "suite/9")).unwrap();
        let error = read(&path, "baseline").unwrap_err().to_string();
        assert!(error.contains("plimsoll.suite/9"), "{error}");
    }

    #[test]
    fn only_measurements_of_the_closed_model_that_both_have_are_compared() {
        let mut now = report(50.0, "a");
        now.measurements[0].rate = Some(100.0);
        assert!(compare(&report(100.0, "a"), &now).1.is_empty(), "its rate is planned");
        now.measurements[0].rate = None;
        now.measurements[0].label = "new".to_owned();
        assert!(compare(&report(100.0, "a"), &now).1.is_empty(), "it has no predecessor");
    }

    #[test]
    fn a_debug_build_is_not_compared_with_another_build() {
        let mut now = report(50.0, "a");
        now.debug_build = true;
        assert_eq!(compare(&report(100.0, "a"), &now).1[0].status(), "inconclusive");
    }
}
