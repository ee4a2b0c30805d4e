//! Bounds that decide whether a suite passes.

use plimsoll_metrics::Judgement;
use serde::{Deserialize, Serialize};

use crate::cell::{Figures, MeasurementResult};

/// A bound and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// What is bounded.
    pub what: String,
    /// What was measured, with its unit.
    pub measured: String,
    /// The bound, with its unit.
    pub bound: String,
    /// Pass, fail, or no telling and why.
    pub judgement: Judgement,
    /// Does a failure fail the suite, or is it a target that the report only shows?
    pub decides: bool,
}

/// Which side of a bound is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Below,
    AtMost,
    AtLeast,
}

/// One bound on one figure.
#[derive(Clone, Copy)]
pub(crate) struct Bound {
    pub(crate) side: Side,
    pub(crate) value: f64,
    /// How a value is written.
    pub(crate) words: fn(Option<f64>) -> String,
}

impl Bound {
    pub(crate) const fn below(value: f64, words: fn(Option<f64>) -> String) -> Self {
        Self { side: Side::Below, value, words }
    }

    pub(crate) const fn at_most(value: f64, words: fn(Option<f64>) -> String) -> Self {
        Self { side: Side::AtMost, value, words }
    }

    pub(crate) const fn at_least(value: f64, words: fn(Option<f64>) -> String) -> Self {
        Self { side: Side::AtLeast, value, words }
    }

    fn holds(&self, measured: f64) -> bool {
        match self.side {
            Side::Below => measured < self.value,
            Side::AtMost => measured <= self.value,
            Side::AtLeast => measured >= self.value,
        }
    }

    pub(crate) fn text(&self) -> String {
        let sign = match self.side {
            Side::Below => "<",
            Side::AtMost => "<=",
            Side::AtLeast => ">=",
        };
        format!("{sign} {}", (self.words)(Some(self.value)))
    }
}

impl Gate {
    /// Judges a figure of a cell. An invalid measurement is never a pass and never a failure.
    pub(crate) fn of(
        what: &str,
        cell: &MeasurementResult,
        figure: impl Fn(&Figures) -> Option<f64>,
        bound: Bound,
    ) -> Self {
        let measured = cell.figures().as_ref().and_then(figure);
        let judgement = if cell.passes.is_empty() {
            Judgement::Inconclusive("not measured".to_owned())
        } else if cell.is_invalid() {
            Judgement::Inconclusive("the measurement is invalid".to_owned())
        } else {
            judge(measured, bound)
        };
        Self::new(what, measured, bound, judgement)
    }

    /// Judges a value that may be missing.
    pub(crate) fn value(what: &str, measured: Option<f64>, bound: Bound) -> Self {
        Self::new(what, measured, bound, judge(measured, bound))
    }

    fn new(what: &str, measured: Option<f64>, bound: Bound, judgement: Judgement) -> Self {
        Self {
            what: what.to_owned(),
            measured: (bound.words)(measured),
            bound: bound.text(),
            judgement,
            decides: true,
        }
    }

    /// A target that the report shows, and that decides nothing.
    pub(crate) fn target(self) -> Self {
        Self { decides: false, ..self }
    }

    /// The Status column.
    pub(crate) const fn word(&self) -> &'static str {
        match (&self.judgement, self.decides) {
            (Judgement::Pass, true) => "PASS",
            (Judgement::Pass, false) => "met",
            (Judgement::Fail, true) => "FAIL",
            (Judgement::Fail, false) => "missed",
            (Judgement::Inconclusive(_), _) => "no telling",
        }
    }
}

fn judge(measured: Option<f64>, bound: Bound) -> Judgement {
    match measured {
        None => Judgement::Inconclusive("too few samples, or not measured".to_owned()),
        Some(measured) if bound.holds(measured) => Judgement::Pass,
        Some(_) => Judgement::Fail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::millis;

    fn cell(p99: Option<f64>, invalid: bool) -> MeasurementResult {
        let invalid = invalid.then(|| "late".to_owned());
        MeasurementResult {
            passes: vec![Figures { p99_ms: p99, invalid, ..Figures::default() }],
            ..MeasurementResult::default()
        }
    }

    #[test]
    fn bounds_are_three_valued() {
        let bound = Bound::below(100.0, millis);
        for (cell, word) in [
            (cell(Some(99.9), false), "PASS"),
            (cell(Some(100.0), false), "FAIL"),
            (cell(None, false), "no telling"),
            (cell(Some(1.0), true), "no telling"),
            (MeasurementResult::default(), "no telling"),
        ] {
            let gate = Gate::of("p99", &cell, |f| f.p99_ms, bound);
            assert_eq!(gate.word(), word, "{cell:?}");
            assert_eq!(gate.bound, "< 100 ms");
        }
    }

    #[test]
    fn sides_hold_at_their_edges() {
        let at = |side| Bound { side, value: 2.0, words: millis };
        for (side, below, on, above) in [
            (Side::Below, true, false, false),
            (Side::AtMost, true, true, false),
            (Side::AtLeast, false, true, true),
        ] {
            assert_eq!([1.0, 2.0, 3.0].map(|value| at(side).holds(value)), [below, on, above]);
        }
    }
}
