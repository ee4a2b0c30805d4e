//! `metrics.prom` of a suite.
//!
//! Every measurement says by `plimsoll_suite_usable` whether its figures may be used. Those of one
//! that may not, and single figures that were refused, are left out: an alert does not read labels.

use std::borrow::Cow;
use std::collections::BTreeMap;

use plimsoll_metrics::{BoundedFigure, Judgement};
use plimsoll_report::exposition::{Exposition, Kind, Labels};

use crate::comparison_result::ComparisonResult;
use crate::report::{Accepted, Report, SuiteOutcome};
use crate::result::{Figures, MeasurementResult, Unusable};

type Of = fn(&Figures) -> Option<BoundedFigure>;

/// Figures by quantile.
type Quantiles = &'static [(&'static str, Of)];

/// Times by quantile: name, help, and the figures in milliseconds.
const TIMES: [(&str, &str, Quantiles); 3] = [
    (
        "plimsoll_suite_time_seconds",
        "Response time; of clients that wait for each response the service time.",
        &[("0.5", |f| f.p50_ms), ("0.95", |f| f.p95_ms), ("0.99", |f| f.p99_ms)],
    ),
    (
        "plimsoll_suite_ttft_seconds",
        "Time to the first token.",
        &[("0.5", |f| f.ttft_p50_ms), ("0.99", |f| f.ttft_p99_ms)],
    ),
    ("plimsoll_suite_stream_gap_seconds", "Gaps inside streams.", &[("0.99", |f| f.gap_p99_ms)]),
];

/// Other figures: name, help, the factor to the base unit, and the figure.
const FIGURES: [(&str, &str, f64, Of); 6] = [
    ("plimsoll_suite_requests_per_second", "Expected answers per second.", 1.0, |f| {
        f.requests_per_s
    }),
    ("plimsoll_suite_mean_seconds", "Mean of the time.", 1e-3, |f| f.mean_ms),
    ("plimsoll_suite_received_bytes_per_second", "Bytes of responses.", 1e6, |f| {
        exact(f.megabytes_per_s)
    }),
    ("plimsoll_suite_gateway_cpu_seconds_per_request", "CPU time of the gateway.", 1e-6, |f| {
        exact(f.gateway_cpu_us)
    }),
    ("plimsoll_suite_gateway_resident_bytes", "Memory of the gateway at the end.", 1.0, |f| {
        exact(f.gateway_memory)
    }),
    (
        "plimsoll_suite_policy_correct_ratio",
        "Answers with the expected policy decision.",
        1.0,
        |f| exact(f.policy_correctness),
    ),
];

fn exact(value: Option<f64>) -> Option<BoundedFigure> {
    value.map(BoundedFigure::exact)
}

/// The report as Prometheus metrics.
pub fn prometheus(report: &Report) -> String {
    let mut page = Page { out: Exposition::new(&BTreeMap::new()), report };
    page.suite();
    page.usable();
    page.counts();
    for (name, help, quantiles) in TIMES {
        page.out.head(name, Kind::Summary, help);
        for (quantile, of) in quantiles {
            page.figures(name, 1e-3, Some(("quantile", quantile)), *of);
        }
    }
    for (name, help, factor, of) in FIGURES {
        page.out.head(name, Kind::Gauge, help);
        page.figures(name, factor, None, of);
    }
    page.added();
    page.bounds();
    page.out.finish() + &report.load_test
}

struct Page<'r> {
    out: Exposition,
    report: &'r Report,
}

impl<'r> Page<'r> {
    fn labels(&self) -> Labels<'r> {
        vec![("suite", self.report.suite.as_str().into())]
    }

    fn labels_of(&self, label: &'r str) -> Labels<'r> {
        let mut labels = self.labels();
        labels.push(("measurement", label.into()));
        labels
    }

    fn suite(&mut self) {
        let (name, mut labels) = ("plimsoll_suite_info", self.labels());
        let version = env!("CARGO_PKG_VERSION");
        labels.push(("version", version.into()));
        labels.push(("started", self.report.started.as_str().into()));
        labels.push(("quick", self.report.quick.to_string().into()));
        labels.push(("debug_build", self.report.debug_build.to_string().into()));
        self.out.head(name, Kind::Gauge, "The suite of these figures.");
        self.out.line(name, &labels, 1);
        let name = "plimsoll_suite_outcome";
        self.out.head(name, Kind::Gauge, "1 for the outcome of the suite, 0 for the others.");
        let outcome = self.report.outcome(Accepted::default());
        for (word, one) in [
            ("pass", SuiteOutcome::Pass),
            ("complete", SuiteOutcome::Complete),
            ("fail", SuiteOutcome::Fail),
            ("inconclusive", SuiteOutcome::Inconclusive),
            ("interrupted", SuiteOutcome::Interrupted),
        ] {
            let mut labels = self.labels();
            labels.push(("outcome", word.into()));
            self.out.line(name, &labels, u8::from(one == outcome));
        }
    }

    /// Whether the figures of each measurement and comparison may be used, and what it was.
    fn usable(&mut self) {
        let name = "plimsoll_suite_usable";
        let help = "1 if the figures of the measurement may be used. 0: its state says why, and \
                    they are left out.";
        self.out.head(name, Kind::Gauge, help);
        for result in &self.report.measurements {
            let state = state(result);
            let mut labels = self.labels_of(&result.label);
            labels.push(("state", state.into()));
            self.out.line(name, &labels, u8::from(state == "valid"));
        }
        for result in &self.report.comparisons {
            let state = match (&result.versus, result.why_unusable()) {
                (_, None) => "valid",
                (None, _) => "not_run",
                (Some(_), _) => "invalid",
            };
            let mut labels = self.labels_of(&result.label);
            labels.push(("state", state.into()));
            self.out.line(name, &labels, u8::from(state == "valid"));
        }
    }

    /// Counts, which are true of every measurement that was carried out.
    fn counts(&mut self) {
        let rows: Vec<_> = self
            .report
            .measurements
            .iter()
            .filter(|result| !result.passes.is_empty())
            .map(|result| {
                (
                    &*result.label,
                    sum_of_passes(result, |f| f.requests),
                    sum_of_passes(result, |f| f.errors),
                )
            })
            .collect();
        let name = "plimsoll_suite_requests";
        self.out.head(name, Kind::Gauge, "Planned requests of all passes, without warm-up.");
        for (label, requests, _) in &rows {
            let labels = self.labels_of(label);
            self.out.line(name, &labels, requests);
        }
        let name = "plimsoll_suite_errors";
        self.out.head(name, Kind::Gauge, "Those of them without the expected answer.");
        for (label, _, errors) in &rows {
            let labels = self.labels_of(label);
            self.out.line(name, &labels, errors);
        }
    }

    /// A line for each measurement whose figure may be used.
    fn figures(
        &mut self,
        name: &str,
        factor: f64,
        more: Option<(&'static str, &'static str)>,
        of: Of,
    ) {
        for result in &self.report.measurements {
            let Ok(value) = result.figure(of) else { continue };
            let mut labels = self.labels_of(&result.label);
            labels.extend(more.map(|(key, value)| (key, Cow::from(value))));
            self.out.line(name, &labels, rounded(value * factor));
        }
    }

    /// What targets add to a request, with its interval.
    fn added(&mut self) {
        let name = "plimsoll_suite_added_seconds";
        let help = "Median of what a target adds to a request, and its 95 % interval with what the generator may have added.";
        self.out.head(name, Kind::Gauge, help);
        for result in &self.report.comparisons {
            self.added_of(name, result);
        }
    }

    fn added_of(&mut self, name: &str, result: &'r ComparisonResult) {
        for target in result.compared() {
            let Ok(millis) = result.added(target) else { continue };
            for (bound, millis) in ["value", "low", "high"].into_iter().zip(millis) {
                let mut labels = self.labels_of(&result.label);
                labels.push(("target", target.into()));
                labels.push(("reference", result.reference().into()));
                labels.push(("bound", bound.into()));
                self.out.line(name, &labels, rounded(millis / 1e3));
            }
        }
    }

    fn bounds(&mut self) {
        let name = "plimsoll_suite_bound";
        let help = "A bound of the suite: 1 kept, 0 broken, -1 inconclusive.";
        self.out.head(name, Kind::Gauge, help);
        for (index, bound) in self.report.bounds.iter().enumerate() {
            let kept = match bound.judgement {
                Judgement::Pass => 1,
                Judgement::Fail => 0,
                Judgement::Inconclusive(_) => -1,
            };
            let mut labels = self.labels();
            labels.push(("index", (index + 1).to_string().into()));
            labels.push(("what", bound.what.as_str().into()));
            labels.push(("bounds", bound.bound.as_str().into()));
            labels.push(("decides", bound.decides.to_string().into()));
            self.out.line(name, &labels, kept);
        }
    }
}

fn sum_of_passes(result: &MeasurementResult, of: fn(&Figures) -> u64) -> u64 {
    result.passes.iter().map(of).sum()
}

fn state(result: &MeasurementResult) -> &'static str {
    match result.why_unusable() {
        None => "valid",
        Some(Unusable::NotMeasured(_)) => "not_run",
        Some(Unusable::Invalid(_)) => "invalid",
        Some(_) => "errors",
    }
}

/// Twelve significant digits: 60.2 ms is 0.0602, and not 0.060200000000000004.
fn rounded(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::Refusal;

    use super::*;
    use crate::bound::BoundResult;

    fn measurement(label: &str, pass: Figures) -> MeasurementResult {
        MeasurementResult {
            label: label.to_owned(),
            passes: vec![pass],
            ..MeasurementResult::default()
        }
    }

    fn failed_comparison() -> ComparisonResult {
        ComparisonResult {
            label: "added".to_owned(),
            error: Some("no".to_owned()),
            ..ComparisonResult::default()
        }
    }

    fn report() -> Report {
        let good = Figures {
            requests: 1_000,
            errors: 2,
            requests_per_s: Some(BoundedFigure::exact(2_500.0)),
            p50_ms: Some(BoundedFigure::exact(60.2)),
            p99_ms: Some(BoundedFigure {
                value: 777.0,
                bound: 500.0,
                interval: None,
                refused: Some(Refusal::Generator),
            }),
            ..Figures::default()
        };
        let late = Figures { invalid: Some("late".to_owned()), ..good.clone() };
        let refused = Figures { errors: 900, ..good.clone() };
        let bound = |what: &str, judgement| BoundResult {
            in_doubt_if_busy: false,
            what: what.to_owned(),
            measured: String::new(),
            bound: "< 1 ms".to_owned(),
            judgement,
            decides: true,
        };
        Report {
            schema: String::new(),
            suite: "quick".to_owned(),
            title: String::new(),
            started: "20260102T030405Z".to_owned(),
            settings: String::new(),
            load_test: String::new(),
            command: String::new(),
            quick: true,
            debug_build: false,
            interrupted: false,
            setup: Vec::new(),
            environment: plimsoll_metrics::Environment::default(),
            measurements: vec![
                measurement("good \"one\"", good),
                measurement("late", late),
                measurement("refused", refused),
                MeasurementResult { label: "none".to_owned(), ..MeasurementResult::default() },
            ],
            comparisons: vec![failed_comparison()],
            knees: Vec::new(),
            sections: Vec::new(),
            findings: Vec::new(),
            bounds: vec![
                bound("p50", Judgement::Pass),
                bound("p99", Judgement::Inconclusive("few".to_owned())),
            ],
            sizing: None,
            references: Vec::new(),
            skipped: Vec::new(),
            missing: Vec::new(),
            absent: Vec::new(),
        }
    }

    #[test]
    fn what_must_not_be_used_is_marked_and_has_no_figure() {
        let page = prometheus(&report());
        let good = r#"suite="quick",measurement="good \"one\"""#;
        for line in [
            format!("plimsoll_suite_usable{{{good},state=\"valid\"}} 1"),
            r#"plimsoll_suite_usable{suite="quick",measurement="late",state="invalid"} 0"#.into(),
            r#"plimsoll_suite_usable{suite="quick",measurement="refused",state="errors"} 0"#.into(),
            r#"plimsoll_suite_usable{suite="quick",measurement="none",state="not_run"} 0"#.into(),
            r#"plimsoll_suite_usable{suite="quick",measurement="added",state="not_run"} 0"#.into(),
            format!("plimsoll_suite_requests_per_second{{{good}}} 2500"),
            format!("plimsoll_suite_time_seconds{{{good},quantile=\"0.5\"}} 0.0602"),
            r#"plimsoll_suite_errors{suite="quick",measurement="refused"} 900"#.into(),
            r#"plimsoll_suite_outcome{suite="quick",outcome="inconclusive"} 1"#.into(),
            r#"plimsoll_suite_bound{suite="quick",index="2",what="p99",bounds="< 1 ms",decides="true"} -1"#.into(),
        ] {
            assert!(page.lines().any(|found| found == line), "{line} in\n{page}");
        }
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let is_figure = line.contains("seconds") || line.contains("per_second");
            assert!(!is_figure || line.contains("good"), "{line}");
            assert!(!line.contains("777") && !line.contains("0.777"), "refused: {line}");
        }
    }
}
