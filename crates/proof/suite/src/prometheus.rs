//! `metrics.prom` of a suite, for alerts: its outcome, its bounds, and whether the figures of every
//! measurement may be used. The figures are in `suite.json`.

use std::collections::BTreeMap;

use plimsoll_metrics::Judgement;
use plimsoll_report::prometheus::{Exposition, Kind, Labels};

use crate::report::{Accepted, Report};
use crate::result::{MeasurementResult, Unusable};

/// The help of each family of metrics.
const HELP: &str = include_str!("prometheus.txt");

/// The report as Prometheus metrics.
pub fn prometheus(report: &Report) -> String {
    let mut page =
        Page { out: Exposition::new(&BTreeMap::new()), suite: &report.suite, name: String::new() };
    page.head("outcome");
    let outcome = serde_json::to_value(report.outcome(Accepted::default()));
    let outcome = outcome.ok().and_then(|word| word.as_str().map(str::to_owned));
    for word in ["pass", "complete", "fail", "inconclusive", "interrupted"] {
        page.line(&[("outcome", word)], f64::from(u8::from(outcome.as_deref() == Some(word))));
    }
    page.usable(report);
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
    fn head(&mut self, name: &str) {
        let help = HELP.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        self.name = format!("plimsoll_suite_{name}");
        self.out.head(&self.name, Kind::Gauge, help.unwrap_or_default());
    }

    fn line(&mut self, labels: &[(&'static str, &str)], value: f64) {
        let own = labels.iter().map(|(name, value)| (*name, (*value).into()));
        let labels: Labels<'_> = [("suite", self.suite.into())].into_iter().chain(own).collect();
        self.out.line(&self.name, &labels, value);
    }

    /// Writes whether the figures of each measurement and comparison may be used, and what it
    /// measured.
    fn usable(&mut self, report: &Report) {
        self.head("usable");
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

    fn bounds(&mut self, report: &Report) {
        self.head("bound");
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

#[cfg(test)]
mod tests {
    use plimsoll_metrics::BoundedFigure;

    use super::*;
    use crate::bound::BoundResult;
    use crate::comparison_result::ComparisonResult;
    use crate::result::Figures;

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
            refused: false,
        }
    }

    #[test]
    fn what_must_not_be_used_is_marked() {
        let page = prometheus(&report());
        let good = r#"suite="quick",measurement="good \"one\"""#;
        for line in [
            format!("plimsoll_suite_usable{{{good},state=\"valid\"}} 1"),
            r#"plimsoll_suite_usable{suite="quick",measurement="late",state="invalid"} 0"#.into(),
            r#"plimsoll_suite_usable{suite="quick",measurement="refused",state="errors"} 0"#.into(),
            r#"plimsoll_suite_usable{suite="quick",measurement="none",state="not_run"} 0"#.into(),
            r#"plimsoll_suite_usable{suite="quick",measurement="added",state="not_run"} 0"#.into(),
            r#"plimsoll_suite_outcome{suite="quick",outcome="fail"} 1"#.into(),
            r#"plimsoll_suite_bound{suite="quick",index="2",what="p99",bounds="< 1 ms",decides="true"} -1"#.into(),
        ] {
            assert!(page.lines().any(|found| found == line), "{line} in\n{page}");
        }
    }
}
