//! The difference to an earlier result: a drop of throughput over 20 % on the same hardware fails.

use std::path::Path;

use plimsoll_compare::gates::{Judged, Repeated, repeats};
use plimsoll_compare::machine::{Difference, of_machines};
use plimsoll_metrics::{BoundedFigure, Judgement, Margin, Worse};
use plimsoll_report::format::{or_dash, percent, rate_figure};
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
    let bytes = plimsoll_input::read(path).map_err(|error| unusable(error.to_string()))?;
    let old: Report =
        serde_json::from_slice(&bytes).map_err(|error| unusable(error.to_string()))?;
    let known = old.schema == SCHEMA || OLDER_SCHEMAS.contains(&old.schema.as_str());
    if !known || old.suite != suite {
        let found = format!("it is the result of `{}` in layout {}", old.suite, old.schema);
        return Err(unusable(format!("{found}, not of `{suite}` in {SCHEMA}")));
    }
    Ok(old)
}

/// Compares each measurement with its predecessor: a table, and a bound for each. Passes are
/// repeats, so that from two on each side a drop must be proven; a single pass on a side leaves
/// only the simple rule.
pub(crate) fn compare(old: &Report, new: &Report) -> (Section, Vec<BoundResult>) {
    let other = difference(old, new);
    // In the open model the throughput is that of the plan.
    let closed = new.measurements.iter().filter(|result| result.rate.is_none());
    let pairs: Vec<_> = closed
        .filter_map(|now| {
            let before = old.measurements.iter().find(|before| before.label == now.label)?;
            Some(Pair::new(before, now))
        })
        .collect();
    let repeated: Vec<_> = pairs.iter().filter_map(Pair::repeated).collect();
    let mut judged = repeats(&repeated).into_iter();
    let mut table = Table::new(["Measurement", "before/s", "now/s", "change [95 %]"]);
    let (mut bounds, mut simple) = (Vec::new(), false);
    for pair in &pairs {
        let judged = pair.repeated().and_then(|_| judged.next());
        simple |= judged.is_none();
        table.row(pair.row(judged.as_ref()));
        bounds.push(pair.bound(&old.started, judged, other.as_deref()));
    }
    let title = format!("Against {} ({})", old.started, old.command);
    let mut section = Section::new(title, table).note(
        "a drop over 20 % on the same hardware fails; what to do is in docs/guides/suites.md",
    );
    if simple {
        section = section.note(
            "without an interval: the simple rule, two numbers of one pass each; make more with --passes",
        );
    }
    (section, bounds)
}

/// A measurement and its predecessor.
struct Pair<'a> {
    before: &'a MeasurementResult,
    now: &'a MeasurementResult,
    /// Their throughput, or why there is none.
    rates: [Result<BoundedFigure, Unusable>; 2],
}

impl<'a> Pair<'a> {
    fn new(before: &'a MeasurementResult, now: &'a MeasurementResult) -> Self {
        let rates = [before, now].map(|result| result.bounded(|f| f.requests_per_s));
        Self { before, now, rates }
    }

    /// The throughput of the passes, if both sides have repeats whose rates may be used.
    fn repeated(&self) -> Option<Repeated> {
        let (base, new) = (number_of_passes(self.before), number_of_passes(self.now));
        (base.len().min(new.len()) >= 2).then_some(Repeated {
            base,
            new,
            margin: Margin::Relative(DROP),
            worse: Worse::Lower,
            history: None,
            trials: None,
        })
    }

    /// The drop of the medians.
    fn drop(&self) -> Option<BoundedFigure> {
        let [Ok(before), Ok(now)] = &self.rates else { return None };
        Some(BoundedFigure {
            value: 1.0 - now.value / before.value,
            bound: now.bound / before.value,
            refused: now.refused.or(before.refused),
        })
    }

    fn row(&self, judged: Option<&Judged>) -> [String; 4] {
        let usable = self.drop().and_then(|drop| drop.sound());
        let change = match judged {
            Some(judged) if usable.is_some() => judged.shown(Margin::Relative(DROP)),
            _ => or_dash(usable.map(|drop| -drop), percent),
        };
        let label = format!("{}{}", self.now.marker(), self.now.label);
        [label, rate_cell(&self.rates[0]), rate_cell(&self.rates[1]), change]
    }

    fn bound(&self, since: &str, judged: Option<Judged>, other: Option<&str>) -> BoundResult {
        let what = format!("drop since {since}: {}", self.now.label);
        let drop = self.drop();
        let refused = drop.is_some_and(|drop| drop.refused.is_some());
        let requirement = Requirement::at_most(DROP, percent);
        let mut bound = BoundResult::figure(&what, drop.ok_or(Unusable::NoValue), requirement);
        if refused {
            let why = "more than 5 % of a rate may have been held back by the generator";
            bound.judgement = Judgement::Inconclusive(why.to_owned());
        } else if let Some(judged) = judged {
            bound.judgement = judged.judgement;
        }
        if let Some(why) = other.map(str::to_owned).or_else(|| self.doubt()) {
            bound.judgement = Judgement::Inconclusive(why);
        }
        bound
    }

    /// Why the two measurements cannot be compared.
    fn doubt(&self) -> Option<String> {
        let [before, now] = &self.rates;
        let now = now.as_ref().err().map(|why| format!("now, {why}"));
        now.or_else(|| Some(format!("then, {}", before.as_ref().err()?))).or_else(|| {
            let busy = busy_host_of(self.now).or_else(|| busy_host_of(self.before))?;
            Some(format!("the host was busy: {busy}"))
        })
    }
}

fn number_of_passes(result: &MeasurementResult) -> Vec<f64> {
    let rates = result.usable_figures(|f| f.requests_per_s.and_then(|rate| rate.sound()));
    rates.into_iter().flatten().collect::<Vec<_>>()
}

fn rate_cell(rate: &Result<BoundedFigure, Unusable>) -> String {
    or_dash(rate.as_ref().ok(), |rate| rate_figure(Some(*rate)))
}

fn busy_host_of(result: &MeasurementResult) -> Option<String> {
    result.passes.iter().find_map(|f| f.busy_host.clone())
}

/// Why two results cannot be compared; `None` if they can.
fn difference(old: &Report, new: &Report) -> Option<String> {
    let machines = of_machines(&old.environment, &new.environment);
    if !machines.is_empty() {
        let words: Vec<_> = machines.iter().map(Difference::words).collect();
        return Some(format!("another machine or build: {}", words.join(", ")));
    }
    let builds = (old.debug_build, new.debug_build);
    (builds.0 != builds.1).then(|| "one of the two is a debug build".to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

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

    /// A result whose passes have these rates.
    fn passes(rates: &[f64]) -> Report {
        let mut report = report(1.0, "a");
        let one = report.measurements[0].passes[0].clone();
        report.measurements[0].passes = rates
            .iter()
            .map(|rate| Figures {
                requests_per_s: Some(BoundedFigure::exact(*rate)),
                ..one.clone()
            })
            .collect();
        report
    }

    /// t(0.975, 4) = 2.78; with a spread of 1 % the interval is +-2.3 %, with 15 % it is +-34 %.
    #[test]
    fn several_passes_must_prove_a_drop_or_its_absence() {
        for (then, now, word) in [
            ([99.0, 100.0, 101.0], [89.0, 90.0, 91.0], "PASS"),
            ([99.0, 100.0, 101.0], [69.0, 70.0, 71.0], "FAIL"),
            ([99.0, 100.0, 101.0], [80.0, 81.0, 82.0], "inconclusive"),
            ([85.0, 100.0, 115.0], [85.0, 100.0, 115.0], "inconclusive"),
            ([85.0, 100.0, 115.0], [60.0, 75.0, 90.0], "inconclusive"),
        ] {
            let (section, bounds) = compare(&passes(&then), &passes(&now));
            assert_eq!(bounds[0].status(), word, "{then:?} and {now:?}: {:?}", bounds[0]);
            assert!(section.table.rows[0][3].contains('['), "{:?}", section.table.rows);
            assert_eq!(section.notes.len(), 1, "{:?}", section.notes);
        }
        let (section, _) = compare(&passes(&[100.0]), &passes(&[99.0, 101.0]));
        assert!(section.notes[1].contains("simple rule"), "{:?}", section.notes);
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
