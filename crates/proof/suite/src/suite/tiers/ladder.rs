//! Where a sweep ends: at the first of its rates that breaks the bounds of a step.

use crate::result::{Figures, MeasurementResult, Unusable};

/// The bounds of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    /// Share of the planned rate that is completed.
    pub(super) achieved: f64,
    /// Highest p99 of response time.
    pub(super) p99_ms: f64,
    /// Highest share of errors.
    pub(super) errors: f64,
}

impl Bounds {
    /// Whether figures keep it; `None` if what the generator itself may have done to them decides.
    /// With too few requests for a p99, the maximum is used.
    fn kept(&self, figures: &Figures) -> Option<bool> {
        let few_errors = figures.errors as f64 <= figures.requests as f64 * self.errors;
        let parts = [Some(few_errors), self.is_achieved(figures), self.is_fast(figures)];
        if parts.contains(&Some(false)) {
            return Some(false);
        }
        parts.iter().all(Option::is_some).then_some(true)
    }

    /// A rate that the generator kept down is a lower bound.
    fn is_achieved(&self, figures: &Figures) -> Option<bool> {
        let Some((achieved, planned)) = figures.requests_per_s.zip(figures.planned_per_s) else {
            return Some(false);
        };
        let wanted = planned * self.achieved;
        match achieved.refused {
            _ if achieved.value >= wanted => Some(true),
            None if achieved.value + achieved.bound < wanted => Some(false),
            _ => None,
        }
    }

    fn is_fast(&self, figures: &Figures) -> Option<bool> {
        let Some(tail) = figures.p99_ms.or(figures.max_ms) else { return Some(false) };
        match tail.sound()? {
            value if value <= self.p99_ms => Some(true),
            value if value - tail.bound > self.p99_ms => Some(false),
            _ => None,
        }
    }

    /// Whether a result keeps it. Errors over the gate break it; `None` if that is unknown.
    pub(super) fn kept_by(&self, result: &MeasurementResult) -> Option<bool> {
        match (result.figures(), result.why_unusable()) {
            (Some(figures), _) => self.kept(&figures),
            (None, Some(Unusable::Errors(_))) => Some(false),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_metrics::{BoundedFigure, Refusal};

    const BOUNDS: Bounds = Bounds { achieved: 0.97, p99_ms: 100.0, errors: 0.001 };

    fn step(planned: f64, achieved: f64, p99: f64, errors: u64) -> MeasurementResult {
        let figures = Figures {
            requests: 1_000,
            errors,
            requests_per_s: Some(BoundedFigure::exact(achieved)),
            planned_per_s: Some(planned),
            p99_ms: Some(BoundedFigure::exact(p99)),
            ..Figures::default()
        };
        MeasurementResult {
            rate: Some(planned),
            passes: vec![figures],
            ..MeasurementResult::default()
        }
    }

    #[test]
    fn a_step_breaks_its_bounds_by_rate_tail_or_errors() {
        for (step, kept) in [
            (step(300.0, 299.0, 9.0, 0), Some(true)),
            (step(300.0, 299.0, 9.0, 1), Some(true)),
            (step(300.0, 280.0, 9.0, 0), Some(false)),
            (step(300.0, 300.0, 101.0, 0), Some(false)),
            (step(300.0, 300.0, 9.0, 2), Some(false)),
            // Fast, because half of the answers are refusals.
            (step(300.0, 300.0, 1.0, 500), Some(false)),
        ] {
            assert_eq!(BOUNDS.kept_by(&step), kept, "{step:?}");
        }
    }

    #[test]
    fn an_invalid_step_neither_keeps_nor_breaks_them() {
        let mut late = step(200.0, 100.0, 999.0, 0);
        late.passes[0].invalid = Some("late".to_owned());
        assert_eq!(BOUNDS.kept_by(&late), None);
        let refused = |achieved, p99, of_rate| {
            let mut step = step(200.0, achieved, p99, 0);
            let pass = &mut step.passes[0];
            refuse_figure(if of_rate { &mut pass.requests_per_s } else { &mut pass.p99_ms });
            BOUNDS.kept_by(&step)
        };
        assert_eq!(refused(100.0, 2.0, true), None);
        assert_eq!(refused(200.0, 2.0, true), Some(true));
        assert_eq!(refused(200.0, 2.0, false), None);
        assert_eq!(refused(200.0, 999.0, false), None);
    }

    /// Nor does one whose tail or rate must not be used; but a lower bound may be high enough.
    fn refuse_figure(figure: &mut Option<BoundedFigure>) {
        figure.as_mut().unwrap().refused = Some(Refusal::Generator);
    }
}
