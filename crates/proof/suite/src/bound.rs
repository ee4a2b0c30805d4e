//! Bounds that decide whether a suite passes.

use plimsoll_harness::Bound;
use plimsoll_metrics::Judgement;
use plimsoll_report::format::or_dash;
use serde::{Deserialize, Serialize};

use crate::result::{Figures, MeasurementResult};

/// A bound, the figure that it was applied to, and the judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoundResult {
    /// Name of the figure.
    pub what: String,
    /// Its value, with its unit.
    pub measured: String,
    /// The bound, with its unit.
    pub bound: String,
    /// Pass, fail, or inconclusive and why.
    pub judgement: Judgement,
    /// Whether a failure fails the suite. If not, it is a goal that the report only shows.
    pub decides: bool,
}

/// A bound, and the format of its value.
#[derive(Clone, Copy)]
pub(crate) struct Requirement {
    bound: Bound,
    format: fn(f64) -> String,
}

impl Requirement {
    pub(crate) const fn below(value: f64, format: fn(f64) -> String) -> Self {
        Self { bound: Bound::Below(value), format }
    }

    pub(crate) const fn at_most(value: f64, format: fn(f64) -> String) -> Self {
        Self { bound: Bound::AtMost(value), format }
    }

    pub(crate) const fn at_least(value: f64, format: fn(f64) -> String) -> Self {
        Self { bound: Bound::AtLeast(value), format }
    }

    fn judge(&self, measured: Option<f64>) -> Judgement {
        match measured {
            None => Judgement::Inconclusive("too few samples, or not measured".to_owned()),
            Some(measured) if self.bound.holds(measured) => Judgement::Pass,
            Some(_) => Judgement::Fail,
        }
    }

    fn text(&self) -> String {
        let value = |value| (self.format)(value);
        match self.bound {
            Bound::Within { truth, tolerance } => {
                format!("{} ± {}", value(truth), value(tolerance))
            }
            Bound::Below(limit) => format!("< {}", value(limit)),
            Bound::AtMost(limit) => format!("<= {}", value(limit)),
            Bound::AtLeast(limit) => format!(">= {}", value(limit)),
        }
    }
}

impl BoundResult {
    /// Judges a figure of a measurement. An invalid measurement neither passes nor fails.
    pub(crate) fn of(
        what: &str,
        result: &MeasurementResult,
        figure: impl Fn(&Figures) -> Option<f64>,
        requirement: Requirement,
    ) -> Self {
        let measured = result.figures().as_ref().and_then(figure);
        let judgement = if result.passes.is_empty() {
            Judgement::Inconclusive("not measured".to_owned())
        } else if result.is_invalid() {
            Judgement::Inconclusive("the measurement is invalid".to_owned())
        } else {
            requirement.judge(measured)
        };
        Self::new(what, measured, requirement, judgement)
    }

    /// Judges a value that may be missing.
    pub(crate) fn value(what: &str, measured: Option<f64>, requirement: Requirement) -> Self {
        Self::new(what, measured, requirement, requirement.judge(measured))
    }

    fn new(
        what: &str,
        measured: Option<f64>,
        requirement: Requirement,
        judgement: Judgement,
    ) -> Self {
        Self {
            what: what.to_owned(),
            measured: or_dash(measured, requirement.format),
            bound: requirement.text(),
            judgement,
            decides: true,
        }
    }

    /// A goal: the report shows it, and it decides nothing.
    pub(crate) fn into_goal(self) -> Self {
        Self { decides: false, ..self }
    }

    /// The Status column.
    pub(crate) const fn status(&self) -> &'static str {
        match (&self.judgement, self.decides) {
            (Judgement::Pass, true) => "PASS",
            (Judgement::Pass, false) => "met",
            (Judgement::Fail, true) => "FAIL",
            (Judgement::Fail, false) => "missed",
            (Judgement::Inconclusive(_), _) => "inconclusive",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_report::format::{percent, time};

    fn result(p99: Option<f64>, invalid: bool) -> MeasurementResult {
        let invalid = invalid.then(|| "late".to_owned());
        MeasurementResult {
            passes: vec![Figures { p99_ms: p99, invalid, ..Figures::default() }],
            ..MeasurementResult::default()
        }
    }

    #[test]
    fn bounds_are_three_valued() {
        let requirement = Requirement::below(100.0, time);
        for (result, status) in [
            (result(Some(99.9), false), "PASS"),
            (result(Some(100.0), false), "FAIL"),
            (result(None, false), "inconclusive"),
            (result(Some(1.0), true), "inconclusive"),
            (MeasurementResult::default(), "inconclusive"),
        ] {
            let bound = BoundResult::of("p99", &result, |f| f.p99_ms, requirement);
            assert_eq!(bound.status(), status, "{result:?}");
            assert_eq!(bound.bound, "< 100ms");
        }
    }

    #[test]
    fn requirements_hold_at_their_edges_and_are_written_with_their_unit() {
        for (requirement, text, below, on, above) in [
            (Requirement::below(2.0, time), "< 2.00ms", true, false, false),
            (Requirement::at_most(2.0, percent), "<= 200%", true, true, false),
            (Requirement::at_least(2.0, time), ">= 2.00ms", false, true, true),
        ] {
            let passes = |value| requirement.judge(Some(value)) == Judgement::Pass;
            assert_eq!([1.0, 2.0, 3.0].map(passes), [below, on, above], "{text}");
            assert_eq!(requirement.text(), text);
        }
    }

    #[test]
    fn a_goal_is_met_or_missed_and_decides_nothing() {
        let requirement = Requirement::at_least(50.0, time);
        for (measured, status) in
            [(Some(60.0), "met"), (Some(40.0), "missed"), (None, "inconclusive")]
        {
            let goal = BoundResult::value("x", measured, requirement).into_goal();
            assert_eq!((goal.status(), goal.decides), (status, false));
        }
    }
}
