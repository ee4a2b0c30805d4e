//! The result of a measurement: its passes, and which of their figures may be used.

use plimsoll_metrics::{BoundedFigure, Metric, Refusal, half_failed};
use plimsoll_stats::descriptive::Spread;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

pub use crate::figures::{BusyShares, Figures};

/// The share of requests without an expected answer above which the figures of a measurement must
/// not be used, unless its suite says otherwise: a refusal is fast, and would be taken for speed.
pub const ERROR_GATE: f64 = 0.01;

/// Why a figure must not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// No pass ran.
    #[error("not measured{0}")]
    NotMeasured(String),
    /// Plimsoll did not keep up.
    #[error("the measurement is invalid: {0}")]
    Invalid(String),
    /// Too few of the requests had the expected answer.
    #[error("{0}")]
    Errors(String),
    /// The figure has no value: too few samples, or it was not measured.
    #[error("too few samples, or not measured")]
    NoValue,
    /// Other processes and machines used the host; the report says once by how much.
    #[error("the host was busy")]
    BusyHost(String),
    /// This figure alone must not be used.
    #[error("{}", .0.words())]
    Refused(Refusal),
}

/// The passes of a measurement.
#[derive(Clone, Debug, SmartDefault, PartialEq, Serialize, Deserialize)]
pub struct MeasurementResult {
    /// Its name in the report; unique in its suite, and the same from run to run.
    pub label: String,
    /// Clients, in the closed model.
    pub clients: Option<u32>,
    /// Planned requests per second, in the open model.
    pub rate: Option<f64>,
    /// Each pass.
    pub passes: Vec<Figures>,
    /// Files with the whole summary of each pass, relative to the folder of `suite.json`.
    pub files: Vec<String>,
    /// The highest share of requests without an expected answer with which figures may be used.
    #[serde(default = "error_gate")]
    #[default(ERROR_GATE)]
    pub error_gate: f64,
    /// Whether errors are expected, and not a fault of the gateway.
    #[serde(default)]
    pub errors_expected: bool,
    /// Whether it is a step of a search for the highest load.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub explores: bool,
    /// Why a pass did not run.
    pub error: Option<String>,
}

const fn error_gate() -> f64 {
    ERROR_GATE
}

impl MeasurementResult {
    /// The highest share of errors with which its figures may be used.
    pub(crate) fn gate(&self) -> f64 {
        if self.errors_expected { 1.0 } else { self.error_gate }
    }

    /// Whether the target failed 45 % of the requests of the last pass or more: it may have died.
    pub(crate) fn has_failed(&self) -> bool {
        let last = self.passes.last().filter(|pass| pass.invalid.is_none());
        !self.errors_expected
            && last.is_some_and(|pass: &Figures| half_failed(pass.errors, pass.requests))
    }

    /// Why the figures of a pass must not be used.
    fn refusal(&self, pass: &Figures) -> Option<Unusable> {
        let invalid = pass.invalid.clone().map(Unusable::Invalid);
        invalid.or_else(|| pass.gated(self.gate()).map(Unusable::Errors))
    }

    /// The errors of the first pass in which the target failed.
    fn errors(&self) -> Option<String> {
        let mut passes = (1_u32..).zip(&self.passes);
        let (number, why) = passes.find_map(|(n, pass)| Some((n, pass.gated(self.gate())?)))?;
        Some(if self.passes.len() == 1 { why } else { format!("pass {number}: {why}") })
    }

    /// The passes with usable figures; empty if the target failed in any pass, because the others
    /// do not represent a target that died half-way.
    pub(crate) fn usable(&self) -> Vec<&Figures> {
        if self.errors().is_some() { Vec::new() } else { self.valid() }
    }

    /// The valid passes, whatever the target answered.
    fn valid(&self) -> Vec<&Figures> {
        self.passes.iter().filter(|pass| pass.invalid.is_none()).collect()
    }

    /// The medians over the usable passes, for findings, bounds, sizes and comparisons. `None` if
    /// no pass may be used.
    pub fn figures(&self) -> Option<Figures> {
        let usable = self.usable();
        (!usable.is_empty()).then(|| Figures::median(&usable))
    }

    /// The throughput with its limits, of the usable passes.
    pub(crate) fn throughput(&self) -> Option<BoundedFigure> {
        self.bounded(|f| f.requests_per_s).ok()
    }

    /// A figure that may be used, of the usable passes. Everything that concludes something asks
    /// here.
    ///
    /// # Errors
    /// Returns the reason if the figure is missing.
    pub fn figure(&self, of: impl Fn(&Figures) -> Option<BoundedFigure>) -> Result<f64, Unusable> {
        let figure = self.bounded(of)?;
        figure.refused.map_or(Ok(figure.value), |why| Err(Unusable::Refused(why)))
    }

    /// The same with its bound, even if this figure alone must not be used.
    pub(crate) fn bounded(
        &self,
        of: impl Fn(&Figures) -> Option<BoundedFigure>,
    ) -> Result<BoundedFigure, Unusable> {
        match self.figures() {
            Some(figures) => of(&figures).ok_or(Unusable::NoValue),
            None => Err(self.why_unusable().unwrap_or(Unusable::NoValue)),
        }
    }

    /// A figure that counts errors: many of them are its message, not a reason to refuse it. But
    /// where no answer at all was the expected one, the wrong thing was asked.
    ///
    /// # Errors
    /// Returns the reason if the figure is missing.
    pub fn error_figure(&self, of: impl Fn(&Figures) -> Option<f64>) -> Result<f64, Unusable> {
        let valid = self.valid();
        if valid.is_empty() || valid.iter().all(|pass| pass.expected() == 0) {
            return Err(self.why_unusable().unwrap_or(Unusable::NoValue));
        }
        of(&Figures::median(&valid)).ok_or(Unusable::NoValue)
    }

    /// Expected answers per second, whatever else was answered; 0 where no answer was. `None` if no
    /// pass is valid.
    pub(crate) fn expected_per_s(&self) -> Option<BoundedFigure> {
        let valid = self.valid();
        valid.iter().find(|pass| pass.requests > 0)?;
        if valid.iter().all(|pass| pass.expected() == 0) {
            return Some(BoundedFigure::exact(0.0));
        }
        Figures::median(&valid).requests_per_s
    }

    /// Why no pass may be used; `None` if one may.
    pub fn why_unusable(&self) -> Option<Unusable> {
        if !self.usable().is_empty() {
            return None;
        }
        // The target's answers are more informative than late passes.
        let errors = self.errors().map(Unusable::Errors);
        let why = errors.or_else(|| self.passes.iter().find_map(|pass| self.refusal(pass)));
        let error = self.error.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        why.or(Some(Unusable::NotMeasured(error)))
    }

    /// Whether a step of a search exceeded the generator's capacity on this host: that ends the
    /// search without a gap in the results. Unknown where other processes used the host.
    pub(crate) fn is_past_the_generator(&self) -> bool {
        self.explores
            && matches!(self.why_unusable(), Some(Unusable::Invalid(_)))
            && self.busy_in_any_pass().is_none()
    }

    /// Why the suite lacks this measurement: like [`Self::why_unusable`], except for steps that
    /// only ended a search.
    pub(crate) fn why_lacking(&self) -> Option<Unusable> {
        self.why_unusable().filter(|_| !self.is_past_the_generator())
    }

    /// Load of other processes and machines on the host in a usable pass. The figures may be due to
    /// them, so neither a pass nor a failure follows. `None` if the host was quiet.
    pub(crate) fn busy_host(&self) -> Option<String> {
        self.usable().iter().find_map(|pass| pass.busy_host.clone())
    }

    /// The metric whose disturbance applies to the percentiles. A failed request has no time, so
    /// the times of an open load with failures are as doubtful as the times of a closed one.
    pub(crate) fn time(&self) -> Metric {
        let failed = self.passes.iter().any(|pass| pass.errors > 0);
        if self.rate.is_some() && !failed { Metric::ResponseTime } else { Metric::ServiceTime }
    }

    /// The same for any pass, usable or not, because most disturbed passes are unusable.
    pub(crate) fn busy_in_any_pass(&self) -> Option<&String> {
        self.passes.iter().find_map(|pass| pass.busy_host.as_ref())
    }

    /// Whether a late generator is the only objection to a pass.
    fn came_late(&self, pass: &Figures) -> bool {
        pass.invalid.is_some() && pass.gated(self.gate()).is_none()
    }

    /// Whether the generator alone spoiled every pass on an otherwise idle host: then another pass
    /// may succeed. Rates in a search are not repeated.
    pub(crate) fn is_spoiled(&self) -> bool {
        let all = !self.passes.is_empty() && self.passes.iter().all(|pass| self.came_late(pass));
        all && !self.explores && self.busy_in_any_pass().is_none()
    }

    /// Whether some pass is refused only because Plimsoll was late.
    pub(crate) fn is_only_invalid(&self) -> bool {
        self.passes.iter().any(|pass| self.came_late(pass))
    }

    /// The figures for a table, which shows measured values and marks unusable ones.
    pub(crate) fn shown(&self) -> Option<Figures> {
        let (usable, valid) = (self.usable(), self.valid());
        let passes = [usable, valid].into_iter().find(|passes| !passes.is_empty());
        let passes = passes.unwrap_or_else(|| self.passes.iter().collect());
        (!passes.is_empty()).then(|| Figures::median(&passes))
    }

    /// Whether no pass is valid.
    pub fn is_invalid(&self) -> bool {
        self.passes.iter().all(|pass| pass.invalid.is_some())
    }

    /// Median and extremes of a figure over the passes in which it is usable.
    pub(crate) fn spread(&self, of: impl Fn(&Figures) -> Option<BoundedFigure>) -> Option<Spread> {
        let figures: Option<Vec<_>> = self.usable().into_iter().map(of).collect();
        let values: Vec<_> = figures?.iter().filter_map(BoundedFigure::sound).collect();
        Spread::from_values(&values)
    }

    /// The mark before its label in tables, where a narrow column cannot cut it off.
    pub(crate) fn marker(&self) -> &'static str {
        match self.why_unusable() {
            Some(Unusable::NotMeasured(_)) => "[NOT RUN] ",
            Some(Unusable::Invalid(_)) => "[INVALID] ",
            Some(_) => "[ERRORS] ",
            None if self.figures().is_some_and(|figures| figures.limited) => "[>=] ",
            None => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(rate: f64, invalid: bool) -> Figures {
        let invalid = invalid.then(|| "late".to_owned());
        Figures {
            requests: 10,
            requests_per_s: Some(BoundedFigure::exact(rate)),
            max_ms: Some(BoundedFigure::exact(rate)),
            invalid,
            ..Figures::default()
        }
    }

    fn result(passes: &[Figures]) -> MeasurementResult {
        MeasurementResult { passes: passes.to_vec(), ..MeasurementResult::default() }
    }

    #[test]
    fn invalid_passes_are_left_out_where_there_are_valid_ones() {
        for (passes, rate, invalid) in [
            (vec![pass(1.0, false), pass(3.0, false), pass(2.0, false)], 2.0, false),
            (vec![pass(1.0, false), pass(9.0, true), pass(9.0, true)], 1.0, false),
            (vec![pass(4.0, true), pass(8.0, true)], 6.0, true),
        ] {
            let result = result(&passes);
            let figures = result.shown().unwrap();
            assert_eq!(figures.requests_per_s, Some(BoundedFigure::exact(rate)));
            assert_eq!((result.is_invalid(), figures.invalid.is_some()), (invalid, invalid));
            assert_eq!(result.figures().is_none(), invalid, "shown, and used for nothing");
            assert_eq!(result.figure(|f| f.requests_per_s).is_err(), invalid);
        }
        assert_eq!(result(&[]).figures(), None);
    }

    #[test]
    fn counts_are_added_up_and_the_largest_is_of_all() {
        let figures = result(&[pass(1.0, false), pass(5.0, false)]).figures().unwrap();
        assert_eq!((figures.requests, figures.max_ms), (20, Some(BoundedFigure::exact(5.0))));
    }

    #[test]
    fn a_figure_that_one_pass_lacks_has_no_median() {
        let mut short = pass(1.0, false);
        short.requests_per_s = None;
        assert_eq!(result(&[short, pass(5.0, false)]).figures().unwrap().requests_per_s, None);
    }

    #[test]
    fn errors_above_the_gate_refuse_every_figure_but_those_of_errors() {
        for (requests, errors, usable, share) in [
            (1_000, 0, true, Some(0.0)),
            (1_000, 10, true, Some(0.01)),
            (1_000, 11, false, Some(0.011)),
            (1_000, 1_000, false, None),
            (0, 0, false, None),
        ] {
            let error_share = Some(errors as f64 / requests.max(1) as f64);
            let pass = Figures { requests, errors, error_share, ..pass(1.0, false) };
            let mut result = result(&[pass]);
            assert_eq!(result.figure(|f| f.max_ms).is_ok(), usable, "{errors} of {requests}");
            assert_eq!(result.error_figure(|f| f.error_share).ok(), share, "{errors}");
            assert_eq!(result.marker(), if usable { "" } else { "[ERRORS] " });
            result.errors_expected = true;
            assert_eq!(result.figures().is_some(), errors < requests, "{errors} are expected");
        }
    }

    /// A target that died in the third pass had no errors in two of them.
    #[test]
    fn two_good_passes_do_not_stand_for_a_third_that_failed() {
        let of = |errors, invalid| Figures {
            requests: 1_000,
            errors,
            error_share: Some(errors as f64 / 1_000.0),
            ..pass(1.0, invalid)
        };
        for late in [false, true] {
            let result = result(&[of(0, false), of(0, false), of(800, late)]);
            assert_eq!((result.figures(), result.marker()), (None, "[ERRORS] "), "{late}");
        }
        assert_eq!(result(&[of(0, false), of(9, false)]).figures().unwrap().errors, 9);
    }

    #[test]
    fn why_a_figure_is_refused_is_said() {
        let mut refused = pass(1.0, false);
        (refused.requests, refused.errors) = (66_095, 66_095);
        refused.errors_by_kind.insert("429".to_owned(), 66_095);
        let text = "66,095 unexpected responses (429: 66,095)";
        assert_eq!(why_unusable(&result(std::slice::from_ref(&refused))), text);
        let several = result(&[pass(1.0, true), refused]);
        assert_eq!(why_unusable(&several), format!("pass 2: {text}"));
        assert_eq!(why_unusable(&result(&[pass(1.0, true)])), "the measurement is invalid: late");
        let failed = MeasurementResult { error: Some("no port".to_owned()), ..result(&[]) };
        assert_eq!(why_unusable(&failed), "not measured: no port");
        assert_eq!(result(&[pass(1.0, false)]).why_unusable(), None);
    }

    #[test]
    fn a_search_that_the_generator_ends_lacks_nothing() {
        let mut step = result(&[pass(1.0, true)]);
        assert!(step.why_lacking().is_some(), "of any other measurement it is a lack");
        step.explores = true;
        assert!(step.is_past_the_generator() && step.why_lacking().is_none());
        assert_eq!(step.marker(), "[INVALID] ", "its figures are not used all the same");
        step.passes[0].busy_host = Some("stolen".to_owned());
        assert!(step.why_lacking().is_some(), "a quiet host might have sent it");
        step.passes[0].busy_host = None;
        // Unexpected answers do not end a search.
        step.passes[0].requests = 0;
        step.passes[0].invalid = None;
        assert!(step.why_lacking().is_some());
    }

    fn why_unusable(result: &MeasurementResult) -> String {
        result.why_unusable().unwrap().to_string()
    }
}
