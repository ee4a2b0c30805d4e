//! The highest rate of a sweep that keeps an objective.

use plimsoll_report::format::digits;

use crate::result::{Figures, MeasurementResult, Unusable};

/// The bounds of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Objective {
    /// Share of the planned rate that is completed.
    pub(super) achieved: f64,
    /// Highest p99 of response time.
    pub(super) p99_ms: f64,
    /// Highest share of errors.
    pub(super) errors: f64,
}

impl Objective {
    /// Whether figures keep it. With too few requests for a p99, the maximum is used.
    pub(super) fn kept(&self, figures: &Figures) -> bool {
        let achieved = figures.requests_per_s.zip(figures.planned_per_s);
        let tail = figures.p99_ms.or(figures.max_ms);
        achieved.is_some_and(|(achieved, planned)| achieved >= planned * self.achieved)
            && tail.is_some_and(|tail| tail <= self.p99_ms)
            && figures.errors as f64 <= figures.requests as f64 * self.errors
    }

    /// Whether a result keeps it. Errors over the gate break it; `None` if it was not valid.
    pub(super) fn kept_by(&self, result: &MeasurementResult) -> Option<bool> {
        match (result.figures(), result.why_unusable()) {
            (Some(figures), _) => Some(self.kept(&figures)),
            (None, Some(Unusable::Errors(_))) => Some(false),
            _ => None,
        }
    }
}

/// The knee of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Knee {
    /// The highest rate that keeps the objective.
    pub(super) rate: f64,
    /// The lowest rate above it that does not; `None` if no rate of the sweep breaks it.
    pub(super) broken: Option<f64>,
}

impl Knee {
    pub(super) fn text(&self) -> String {
        let kept = digits(self.rate);
        match self.broken {
            Some(broken) => format!("{kept} .. {}", digits(broken)),
            None => format!(">= {kept}"),
        }
    }
}

/// The knee of a sweep; `None` if even the lowest step breaks the objective, or nothing valid was
/// measured.
pub(super) fn knee(steps: &[MeasurementResult], objective: Objective) -> Option<Knee> {
    let mut kept = None;
    for result in steps {
        match objective.kept_by(result) {
            Some(true) => kept = result.rate,
            Some(false) => return kept.map(|rate| Knee { rate, broken: result.rate }),
            None => {}
        }
    }
    kept.map(|rate| Knee { rate, broken: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECTIVE: Objective = Objective { achieved: 0.97, p99_ms: 100.0, errors: 0.001 };

    fn step(planned: f64, achieved: f64, p99: f64, errors: u64) -> MeasurementResult {
        let figures = Figures {
            requests: 1_000,
            errors,
            requests_per_s: Some(achieved),
            planned_per_s: Some(planned),
            p99_ms: Some(p99),
            ..Figures::default()
        };
        MeasurementResult {
            rate: Some(planned),
            passes: vec![figures],
            ..MeasurementResult::default()
        }
    }

    #[test]
    fn the_knee_is_the_last_step_before_the_first_broken_one() {
        let good = [step(100.0, 100.0, 2.0, 0), step(200.0, 199.0, 5.0, 1)];
        for (last, expected) in [
            (step(300.0, 299.0, 9.0, 0), (300.0, None)),
            (step(300.0, 280.0, 9.0, 0), (200.0, Some(300.0))),
            (step(300.0, 300.0, 101.0, 0), (200.0, Some(300.0))),
            (step(300.0, 300.0, 9.0, 2), (200.0, Some(300.0))),
            // Fast, because half of the answers are refusals.
            (step(300.0, 300.0, 1.0, 500), (200.0, Some(300.0))),
        ] {
            let steps = [&good[..], &[last]].concat();
            let found = knee(&steps, OBJECTIVE).unwrap();
            assert_eq!((found.rate, found.broken), expected);
        }
        assert_eq!(knee(&[step(100.0, 50.0, 2.0, 0)], OBJECTIVE), None);
        assert_eq!(knee(&[], OBJECTIVE), None);
    }

    #[test]
    fn an_invalid_step_neither_keeps_nor_breaks_the_objective() {
        let mut late = step(200.0, 100.0, 999.0, 0);
        late.passes[0].invalid = Some("late".to_owned());
        let found = knee(&[step(100.0, 100.0, 2.0, 0), late], OBJECTIVE).unwrap();
        assert_eq!(found.text(), ">= 100");
    }
}
