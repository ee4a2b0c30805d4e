//! The difference to an earlier result: a drop of throughput over 20 % on the same hardware fails.

use std::path::Path;

use plimsoll_compare::machine::{Difference, of_machines};
use plimsoll_metrics::{Bias, BoundedFigure, Judgement};
use plimsoll_report::format::{or_dash, percent, rate_with_share};
use plimsoll_report::table::Table;

use crate::bound::BoundResult;
use crate::error::SuiteError;
use crate::ratio::Ratio;
use crate::report::{Report, Section};
use crate::result::{MeasurementResult, Unusable};

/// The largest drop of throughput that is not a regression.
const DROP: f64 = 0.2;

/// Reads an earlier result.
///
/// # Errors
/// The file is missing, has an unknown layout, or belongs to another suite.
pub(crate) fn read(path: &Path, suite: &str) -> Result<Report, SuiteError> {
    let unusable =
        |why: String| SuiteError::Usage(format!("cannot compare with {}: {why}", path.display()));
    let bytes = plimsoll_input::read(path).map_err(|error| unusable(error.to_string()))?;
    let old = Report::read_json(&bytes).map_err(|error| unusable(error.to_string()))?;
    if old.suite == suite {
        return Ok(old);
    }
    Err(unusable(format!("it is the result of `{}`, not of `{suite}`", old.suite)))
}

/// Compares each measurement with its predecessor: a table, and a bound for each. The limits of a
/// change are the passes that lie furthest apart, including the generator's overhead. A bound fails
/// or passes only if both limits do.
pub(crate) fn compare(old: &Report, new: &Report) -> (Section, Vec<BoundResult>) {
    let other = difference(old, new);
    let mut table = Table::new(["Measurement", "before/s", "now/s", "change"]);
    let mut bounds = Vec::new();
    // In the open model the plan sets the throughput.
    for now in new.measurements.iter().filter(|result| result.rate.is_none()) {
        let Some(before) = old.measurements.iter().find(|before| before.label == now.label) else {
            continue;
        };
        let rates = [rate(before), rate(now)];
        let change = change(&rates, before, now);
        let cell = or_dash(change, |ratio| ratio.map(|ratio| ratio - 1.0).text(percent));
        let [then, today] = rates.clone().map(|rate| rate_with_share(rate.ok()));
        table.row([format!("{}{}", now.marker(), now.label), then, today, cell]);
        let judgement = match other.clone().or_else(|| busy_host(before, now)) {
            Some(why) => Judgement::Inconclusive(why),
            None => judgement(&rates, change),
        };
        bounds.push(BoundResult::new(
            &format!("drop since {}: {}", old.started, now.label),
            or_dash(change, |ratio| ratio.map(|ratio| 1.0 - ratio).text(percent)),
            format!("<= {}", percent(DROP)),
            judgement,
        ));
    }
    let title = format!("Against {} ({})", old.started, old.command);
    (Section::new(title, table), bounds)
}

/// The throughput of a measurement, or why it is not available.
type Rate = Result<BoundedFigure, Unusable>;

fn rate(result: &MeasurementResult) -> Rate {
    result.bounded(|f| f.requests_per_s)
}

/// Ratio of the throughput now to the throughput before. Where too many answers are unexpected now,
/// only the expected ones count: fewer of them are a drop, whatever came in their place.
fn change(rates: &[Rate; 2], before: &MeasurementResult, now: &MeasurementResult) -> Option<Ratio> {
    let (then, today) = match rates {
        [Ok(then), Ok(today)] => (*then, *today),
        [Ok(then), Err(Unusable::Errors(_))] => (*then, now.expected_per_s()?),
        _ => return None,
    };
    let ratio = Ratio::new(today, then, Bias::Takes)?;
    let ([least, most], [low, high]) = (limits(before, then), limits(now, today));
    Some(Ratio { low: low / most, high: high / least, ..ratio })
}

/// Lowest and highest rate of any pass, including the generator's overhead.
fn limits(result: &MeasurementResult, rate: BoundedFigure) -> [f64; 2] {
    let [low, high] = rate.limits(Bias::Takes);
    let spread = result.spread(|f| f.requests_per_s);
    spread.map_or([low, high], |spread| [low.min(spread.low), high.max(spread.high)])
}

fn judgement(rates: &[Rate; 2], change: Option<Ratio>) -> Judgement {
    let is_kept = change.map(|ratio| ratio.holds(|ratio| 1.0 - ratio <= DROP));
    match (rates, is_kept) {
        (_, Some(Some(false))) => Judgement::Fail,
        // An unchanged number of expected answers with too many extra errors proves nothing.
        ([_, Err(why)], _) => Judgement::Inconclusive(format!("now, {why}")),
        ([Err(why), _], _) => Judgement::Inconclusive(format!("then, {why}")),
        (_, Some(Some(true))) => Judgement::Pass,
        (_, Some(None)) => Judgement::Inconclusive("the passes differ".to_owned()),
        (_, None) => Judgement::Inconclusive("no rate".to_owned()),
    }
}

fn busy_host(before: &MeasurementResult, now: &MeasurementResult) -> Option<String> {
    let busy = now.busy_in_any_pass().or_else(|| before.busy_in_any_pass())?;
    Some(format!("busy host: {busy}"))
}

/// Why two results cannot be compared; `None` if they can.
pub(crate) fn difference(old: &Report, new: &Report) -> Option<String> {
    let machines = of_machines(&old.environment, &new.environment);
    if !machines.is_empty() {
        let words: Vec<_> = machines.iter().map(Difference::words).collect();
        return Some(format!("other machine: {}", words.join(", ")));
    }
    (old.debug_build != new.debug_build).then(|| "debug build".to_owned())
}
#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::report::SCHEMA;
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

    /// The limits by hand: the lowest rate now over the highest before, and the other way round.
    #[test]
    fn a_drop_that_depends_on_the_pass_neither_fails_nor_passes() {
        for (then, now, word) in [
            ([99.0, 100.0, 101.0], [89.0, 90.0, 91.0], "PASS"),
            ([99.0, 100.0, 101.0], [69.0, 70.0, 71.0], "FAIL"),
            ([99.0, 100.0, 101.0], [80.0, 81.0, 82.0], "inconclusive"),
            ([85.0, 100.0, 115.0], [85.0, 100.0, 115.0], "inconclusive"),
            ([85.0, 100.0, 115.0], [60.0, 75.0, 90.0], "inconclusive"),
        ] {
            let (section, bounds) = compare(&passes(&then), &passes(&now));
            assert_eq!(bounds[0].status(), word, "{then:?} and {now:?}: {:?}", bounds[0]);
            assert!(section.table.rows[0][3].contains(" to "), "{:?}", section.table.rows);
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
    }

    /// A rate that the generator may have held back by `bound`.
    fn held_back(rate: f64, bound: f64) -> Report {
        let mut report = report(rate, "a");
        let figure = report.measurements[0].passes[0].requests_per_s.as_mut().unwrap();
        (figure.bound, figure.refused) = (bound, Some(plimsoll_metrics::Refusal::Generator));
        report
    }

    /// The limits by hand: a rate of `r` may have been `r + bound` without the generator.
    #[test]
    fn rates_that_the_generator_held_back_are_judged_at_their_limits() {
        for (then, now, word, change) in [
            // 10 to 10.6 of 100: all but the last percent of the drop is the gateway's.
            (report(100.0, "a"), held_back(10.0, 0.6), "FAIL", "-90.0% (-90.0% to -89.4%)"),
            (report(100.0, "a"), held_back(0.01, 0.000_5), "FAIL", "-100%"),
            // 70 to 90 of 100.
            (
                report(100.0, "a"),
                held_back(70.0, 20.0),
                "inconclusive",
                "-30.0% (-30.0% to -10.0%)",
            ),
            (report(100.0, "a"), held_back(85.0, 20.0), "PASS", "-15.0% (-15.0% to 5.00%)"),
            // 79 of 100 to 130.
            (held_back(100.0, 30.0), report(79.0, "a"), "FAIL", "-21.0% (-39.2% to -21.0%)"),
            (
                held_back(100.0, 30.0),
                report(90.0, "a"),
                "inconclusive",
                "-10.0% (-30.8% to -10.0%)",
            ),
            // A rise, whatever the generator held back before or now.
            (held_back(100.0, 30.0), report(1_000.0, "a"), "PASS", "900% (669% to 900%)"),
            (report(100.0, "a"), held_back(1_000.0, 600.0), "PASS", "900% (900% to 1,500%)"),
        ] {
            let (section, bounds) = compare(&then, &now);
            let row = &section.table.rows[0];
            assert_eq!(bounds[0].status(), word, "{row:?}: {:?}", bounds[0]);
            assert_eq!(row[3], change, "{row:?}");
            assert!(row[1].contains(" (+") || row[2].contains(" (+"), "{row:?}");
        }
    }

    /// The same of repeats, whose spread is far below the limits.
    #[test]
    fn repeats_that_the_generator_held_back_are_judged_at_their_limits() {
        for (now, bound, word) in
            [(10.0, 0.6, "FAIL"), (70.0, 20.0, "inconclusive"), (95.0, 20.0, "PASS")]
        {
            let mut new = passes(&[now * 0.99, now, now * 1.01]);
            for pass in &mut new.measurements[0].passes {
                let rate = pass.requests_per_s.as_mut().unwrap();
                (rate.bound, rate.refused) = (bound, Some(plimsoll_metrics::Refusal::Generator));
            }
            let (_, bounds) = compare(&passes(&[99.0, 100.0, 101.0]), &new);
            assert_eq!(bounds[0].status(), word, "{now}: {:?}", bounds[0]);
        }
    }

    /// The rate counts expected answers. Errors in their place are a drop, and no reason to leave
    /// it open: a bisection would pass over the very commit that broke the gateway.
    #[test]
    fn errors_in_place_of_answers_are_a_drop_and_never_a_gain() {
        for (requests, errors, rate, word) in [
            (1_000, 1_000, None, "FAIL"),
            (1_000, 500, Some(50.0), "FAIL"),
            // An unchanged number of good answers, with additional refusals.
            (1_000, 500, Some(100.0), "inconclusive"),
            (10_000, 9_000, Some(1_000.0), "inconclusive"),
            (1_000, 5, Some(100.0), "PASS"),
        ] {
            let mut now = report(1.0, "a");
            let pass = &mut now.measurements[0].passes[0];
            (pass.requests, pass.errors) = (requests, errors);
            pass.requests_per_s = rate.map(BoundedFigure::exact);
            let (section, bounds) = compare(&report(100.0, "a"), &now);
            let row = &section.table.rows[0];
            assert_eq!(bounds[0].status(), word, "{errors} of {requests}: {row:?}");
            assert_eq!(row[0].starts_with("[ERRORS] "), errors > 5, "{row:?}");
            now.measurements[0].passes[0].busy_host = Some("12.0% was stolen".to_owned());
            let (_, bounds) = compare(&report(100.0, "a"), &now);
            assert_eq!(bounds[0].status(), "inconclusive", "the host was busy");
        }
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
    fn a_file_of_another_layout_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("suite.json");
        let json = serde_json::to_string(&report(100.0, "a")).unwrap();
        fs::write(&path, &json).unwrap();
        assert_eq!(read(&path, "baseline").unwrap(), report(100.0, "a"));
        fs::write(&path, json.replace(SCHEMA, "plimsoll.suite/9")).unwrap();
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
