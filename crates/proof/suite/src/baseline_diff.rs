//! The difference to an earlier result: a drop of throughput over 20 % on the same hardware fails.

use std::path::Path;

use plimsoll_compare::gates::{Judged, Repeated, repeats};
use plimsoll_compare::machine::{Difference, of_machines};
use plimsoll_metrics::{Bias, BoundedFigure, Judgement, Margin, Worse};
use plimsoll_report::format::{digits, or_dash, percent, rate_with_share};
use plimsoll_report::table::Table;

use crate::bound::BoundResult;
use crate::error::SuiteError;
use crate::ratio::Ratio;
use crate::report::{Report, SCHEMA, Section};
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
    if old.schema != SCHEMA || old.suite != suite {
        let found = format!("it is the result of `{}` in layout {}", old.suite, old.schema);
        return Err(unusable(format!("{found}, not of `{suite}` in {SCHEMA}")));
    }
    Ok(old)
}

/// Compares each measurement with its predecessor: a table, and a bound for each. Passes are
/// repeats, so that from two on each side a drop must be proven; a single pass on a side leaves
/// only the simple rule. Either is asked at the limits of the rates.
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
    let mut judged = judge_repeats(&pairs).into_iter();
    let mut table = Table::new(["Measurement", "before/s", "now/s", "change [95 %]"]);
    let (mut bounds, mut simple) = (Vec::new(), false);
    for pair in &pairs {
        let judged = pair.has_repeats().then(|| judged.next()).flatten();
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
    if pairs.iter().any(Pair::has_limits) {
        section = section.note(
            "where the generator may have held a rate back, the change has limits in brackets, and it fails or passes only where both do",
        );
    }
    (section, bounds)
}

/// What repeats say of each pair that has them: as measured, and whether the limits of the rates
/// say the same.
fn judge_repeats(pairs: &[Pair<'_>]) -> Vec<Judged> {
    let repeated: Vec<_> = pairs.iter().filter(|pair| pair.has_repeats()).collect();
    let largest = judge_at(&repeated, Limit::LargestDrop).into_iter();
    let limits = largest.zip(judge_at(&repeated, Limit::SmallestDrop));
    let judged = judge_at(&repeated, Limit::AsMeasured).into_iter().zip(limits);
    judged
        .map(|(measured, (largest, smallest))| {
            let same = [&largest, &smallest].iter().all(|limit| {
                std::mem::discriminant(&limit.judgement)
                    == std::mem::discriminant(&measured.judgement)
            });
            if same { measured } else { Judged { judgement: limits_decide(), ..measured } }
        })
        .collect()
}

fn judge_at(pairs: &[&Pair<'_>], limit: Limit) -> Vec<Judged> {
    let figures: Vec<_> = pairs.iter().map(|pair| pair.repeated(limit)).collect();
    repeats(&figures)
}

/// One limit of the rates keeps the bound, and the other one breaks it.
fn limits_decide() -> Judgement {
    Judgement::Inconclusive("the generator itself may have held a rate back, which decides".into())
}

/// Which of the rates that the generator may have held back are compared.
#[derive(Clone, Copy)]
enum Limit {
    AsMeasured,
    /// The highest before, and the lowest now.
    LargestDrop,
    SmallestDrop,
}

impl Limit {
    /// Values of the rates before and now.
    fn values(self, before: &[BoundedFigure], now: &[BoundedFigure]) -> [Vec<f64>; 2] {
        match self {
            Self::AsMeasured => {
                [before, now].map(|rates| rates.iter().map(|rate| rate.value).collect())
            }
            Self::LargestDrop => [limits_of(before, 1), limits_of(now, 0)],
            Self::SmallestDrop => [limits_of(before, 0), limits_of(now, 1)],
        }
    }
}

fn limits_of(rates: &[BoundedFigure], limit: usize) -> Vec<f64> {
    rates.iter().map(|rate| rate.limits(Bias::Takes)[limit]).collect::<Vec<_>>()
}

/// Whether a ratio to the throughput before is no regression.
fn is_kept(ratio: f64) -> bool {
    1.0 - ratio <= DROP
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

    /// Whether both sides have repeats.
    fn has_repeats(&self) -> bool {
        [self.before, self.now].iter().all(|result| rates_of_passes(result).len() >= 2)
    }

    /// The throughput of the passes.
    fn repeated(&self, limit: Limit) -> Repeated {
        let (before, now) = (rates_of_passes(self.before), rates_of_passes(self.now));
        let [base, new] = limit.values(&before, &now);
        Repeated {
            base,
            new,
            margin: Margin::Relative(DROP),
            worse: Worse::Lower,
            history: None,
            trials: None,
        }
    }

    /// The throughput now over that before.
    fn ratio(&self) -> Option<Ratio> {
        let [Ok(before), Ok(now)] = &self.rates else { return None };
        Ratio::new(*now, *before, Bias::Takes)
    }

    /// The same of the expected answers alone, where the others are too many now.
    fn ratio_of_expected(&self) -> Option<Ratio> {
        let [Ok(before), Err(Unusable::Errors(_))] = &self.rates else { return None };
        Ratio::new(self.now.expected_per_s()?, *before, Bias::Takes)
    }

    fn has_limits(&self) -> bool {
        self.ratio().is_some_and(|ratio| change(&ratio).contains('('))
    }

    fn row(&self, judged: Option<&Judged>) -> [String; 4] {
        let change = match judged {
            Some(judged) if !self.has_limits() => judged.shown(Margin::Relative(DROP)),
            _ => or_dash(self.ratio().or_else(|| self.ratio_of_expected()), |r| change(&r)),
        };
        let label = format!("{}{}", self.now.marker(), self.now.label);
        let expected = self.now.expected_per_s().filter(|_| self.ratio_of_expected().is_some());
        let now = expected.map_or_else(|| rate_cell(&self.rates[1]), |rate| digits(rate.value));
        [label, rate_cell(&self.rates[0]), now, change]
    }

    fn bound(&self, since: &str, judged: Option<Judged>, other: Option<&str>) -> BoundResult {
        let ratio = self.ratio().or_else(|| self.ratio_of_expected());
        let measured = or_dash(ratio, |ratio| {
            Ratio { value: 1.0 - ratio.value, low: 1.0 - ratio.high, high: 1.0 - ratio.low }
                .text(percent)
        });
        BoundResult {
            what: format!("drop since {since}: {}", self.now.label),
            measured,
            bound: format!("<= {}", percent(DROP)),
            judgement: self.judgement(judged, other),
            decides: true,
            in_doubt_if_busy: false,
        }
    }

    fn judgement(&self, judged: Option<Judged>, other: Option<&str>) -> Judgement {
        if let Some(why) = other.map(str::to_owned).or_else(|| self.busy_host()) {
            return Judgement::Inconclusive(why);
        }
        // Fewer expected answers are a drop, whatever came in their place; as many are no proof of
        // the contrary.
        if self.ratio_of_expected().and_then(|ratio| ratio.holds(is_kept)) == Some(false) {
            return Judgement::Fail;
        }
        if let Some(why) = self.unusable() {
            return Judgement::Inconclusive(why);
        }
        match (judged, self.ratio().map(|ratio| ratio.holds(is_kept))) {
            (Some(judged), _) => judged.judgement,
            (None, Some(Some(true))) => Judgement::Pass,
            (None, Some(Some(false))) => Judgement::Fail,
            (None, Some(None)) => limits_decide(),
            (None, None) => Judgement::Inconclusive("nothing to compare with".to_owned()),
        }
    }

    /// Why a rate must not be used.
    fn unusable(&self) -> Option<String> {
        let [before, now] = &self.rates;
        let now = now.as_ref().err().map(|why| format!("now, {why}"));
        now.or_else(|| Some(format!("then, {}", before.as_ref().err()?)))
    }

    fn busy_host(&self) -> Option<String> {
        let busy = busy_host_of(self.now).or_else(|| busy_host_of(self.before))?;
        Some(format!("the host was busy: {busy}"))
    }
}

/// A change with its limits.
fn change(ratio: &Ratio) -> String {
    Ratio { value: ratio.value - 1.0, low: ratio.low - 1.0, high: ratio.high - 1.0 }.text(percent)
}

/// The rates of the passes that may be used. Where two carry a statement alone, the others are left
/// out, as invalid passes are.
fn rates_of_passes(result: &MeasurementResult) -> Vec<BoundedFigure> {
    let all: Vec<_> = result.usable_figures(|f| f.requests_per_s).into_iter().flatten().collect();
    let sound: Vec<_> = all.iter().filter(|rate| rate.refused.is_none()).copied().collect();
    if sound.len() >= 2 { sound } else { all }
}

fn rate_cell(rate: &Result<BoundedFigure, Unusable>) -> String {
    rate_with_share(rate.as_ref().ok().copied())
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
            let (section, bounds) = compare(&passes(&[99.0, 100.0, 101.0]), &new);
            assert_eq!(bounds[0].status(), word, "{now}: {:?}", bounds[0]);
            assert!(!section.notes.iter().any(|note| note.contains("simple rule")));
        }
    }

    /// The rate counts expected answers. Errors in their place are a drop, and no reason to leave
    /// it open: a bisection would pass over the very commit that broke the gateway.
    #[test]
    fn errors_in_place_of_answers_are_a_drop_and_never_a_gain() {
        for (requests, errors, rate, word) in [
            (1_000, 1_000, None, "FAIL"),
            (1_000, 500, Some(50.0), "FAIL"),
            // As many good answers, and refusals besides.
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
