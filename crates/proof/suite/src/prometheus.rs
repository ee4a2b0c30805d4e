//! `metrics.prom` of a suite.
//!
//! `plimsoll_suite_usable` says for every measurement whether its figures may be used. Unusable
//! measurements and single refused figures are left out, because an alert does not read labels.

use std::collections::BTreeMap;

use plimsoll_metrics::{BoundedFigure, Judgement};
use plimsoll_report::exposition::{Exposition, Kind, Labels};

use crate::report::{Accepted, Report};
use crate::result::{Figures, MeasurementResult, Unusable};

type Of = fn(&Figures) -> Option<BoundedFigure>;

/// The help of each family of metrics.
const HELP: &str = include_str!("prometheus.txt");

/// Figures: name, the factor to the base unit, and the figures, each with its quantile or as the
/// only one.
type Family = (&'static str, f64, &'static [(&'static str, Of)]);

const FAMILIES: [Family; 9] = [
    (
        "time_seconds",
        1e-3,
        &[("0.5", |f| f.p50_ms), ("0.95", |f| f.p95_ms), ("0.99", |f| f.p99_ms)],
    ),
    ("ttft_seconds", 1e-3, &[("0.5", |f| f.ttft_p50_ms), ("0.99", |f| f.ttft_p99_ms)]),
    ("stream_gap_seconds", 1e-3, &[("0.99", |f| f.gap_p99_ms)]),
    ("requests_per_second", 1.0, &[("", |f| f.requests_per_s)]),
    ("mean_seconds", 1e-3, &[("", |f| f.mean_ms)]),
    ("received_bytes_per_second", 1e6, &[("", |f| exact(f.megabytes_per_s))]),
    ("gateway_cpu_seconds_per_request", 1e-6, &[("", |f| exact(f.gateway_cpu_us))]),
    ("gateway_resident_bytes", 1.0, &[("", |f| exact(f.gateway_memory))]),
    ("policy_correct_ratio", 1.0, &[("", |f| exact(f.policy_correctness))]),
];

fn exact(value: Option<f64>) -> Option<BoundedFigure> {
    value.map(BoundedFigure::exact)
}

/// The report as Prometheus metrics.
pub fn prometheus(report: &Report) -> String {
    let mut page =
        Page { out: Exposition::new(&BTreeMap::new()), suite: &report.suite, name: String::new() };
    page.head("info", Kind::Gauge);
    let (quick, debug_build) = (report.quick.to_string(), report.debug_build.to_string());
    let version = ("version", env!("CARGO_PKG_VERSION"));
    let build = [("quick", &*quick), ("debug_build", &debug_build)];
    page.line(&[version, ("started", &report.started), build[0], build[1]], 1.0);
    page.head("outcome", Kind::Gauge);
    let outcome = serde_json::to_value(report.outcome(Accepted::default()));
    let outcome = outcome.ok().and_then(|word| word.as_str().map(str::to_owned));
    for word in ["pass", "complete", "fail", "inconclusive", "interrupted"] {
        page.line(&[("outcome", word)], f64::from(u8::from(outcome.as_deref() == Some(word))));
    }
    page.usable(report);
    page.counts("requests", report, |f| f.requests);
    page.counts("errors", report, |f| f.errors);
    for (name, factor, figures) in FAMILIES {
        let has_quantiles = figures.iter().any(|(quantile, _)| !quantile.is_empty());
        page.head(name, if has_quantiles { Kind::Summary } else { Kind::Gauge });
        let results = &report.measurements;
        let all = figures.iter().flat_map(|figure| results.iter().map(move |one| (figure, one)));
        for ((quantile, of), result) in all {
            let Ok(value) = result.figure(of) else { continue };
            let labels = [("measurement", &*result.label), ("quantile", quantile)];
            page.line(if has_quantiles { &labels } else { &labels[..1] }, value * factor);
        }
    }
    page.added(report);
    page.bounds(report);
    page.out.finish() + &report.load_test
}

struct Page<'r> {
    out: Exposition,
    suite: &'r str,
    /// The name of the family that is written.
    name: String,
}

impl Page<'_> {
    fn head(&mut self, name: &str, kind: Kind) {
        let help = HELP.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        self.name = format!("plimsoll_suite_{name}");
        self.out.head(&self.name, kind, help.unwrap_or_default());
    }

    fn line(&mut self, labels: &[(&'static str, &str)], value: f64) {
        let own = labels.iter().map(|(name, value)| (*name, (*value).into()));
        let labels: Labels<'_> = [("suite", self.suite.into())].into_iter().chain(own).collect();
        self.out.line(&self.name, &labels, rounded(value));
    }

    /// Writes whether the figures of each measurement and comparison may be used, and what it
    /// measured.
    fn usable(&mut self, report: &Report) {
        self.head("usable", Kind::Gauge);
        let measured = report.measurements.iter().map(|result| (&*result.label, state(result)));
        let compared = report.comparisons.iter().map(|result| {
            let state = match (&result.versus, result.why_unusable()) {
                (_, None) => "valid",
                (None, _) => "not_run",
                (Some(_), _) => "invalid",
            };
            (&*result.label, state)
        });
        for (label, state) in measured.chain(compared) {
            let labels = [("measurement", label), ("state", state)];
            self.line(&labels, f64::from(u8::from(state == "valid")));
        }
    }

    /// Writes counts, which are true of every measurement that ran.
    fn counts(&mut self, name: &str, report: &Report, of: fn(&Figures) -> u64) {
        self.head(name, Kind::Gauge);
        for result in report.measurements.iter().filter(|result| !result.passes.is_empty()) {
            let sum: u64 = result.passes.iter().map(of).sum();
            self.line(&[("measurement", &*result.label)], sum as f64);
        }
    }

    /// Writes the overhead of targets per request, with its interval.
    fn added(&mut self, report: &Report) {
        self.head("added_seconds", Kind::Gauge);
        let compared = report.comparisons.iter();
        let compared =
            compared.flat_map(|result| result.compared().into_iter().map(move |t| (result, t)));
        for (result, target) in compared {
            let Ok(millis) = result.added(target) else { continue };
            let (label, target) = (("measurement", &*result.label), ("target", target));
            let reference = ("reference", result.reference());
            for (bound, millis) in ["value", "low", "high"].into_iter().zip(millis) {
                self.line(&[label, target, reference, ("bound", bound)], millis / 1e3);
            }
        }
    }

    fn bounds(&mut self, report: &Report) {
        self.head("bound", Kind::Gauge);
        for (index, bound) in report.bounds.iter().enumerate() {
            let kept = match bound.judgement {
                Judgement::Pass => 1.0,
                Judgement::Fail => 0.0,
                Judgement::Inconclusive(_) => -1.0,
            };
            let (index, decides) = ((index + 1).to_string(), bound.decides.to_string());
            let (what, limit) = (("what", &*bound.what), ("bounds", &*bound.bound));
            self.line(&[("index", &index), what, limit, ("decides", &decides)], kept);
        }
    }
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
    use crate::comparison_result::ComparisonResult;

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
            gateways: None,
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
            r#"plimsoll_suite_outcome{suite="quick",outcome="fail"} 1"#.into(),
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
