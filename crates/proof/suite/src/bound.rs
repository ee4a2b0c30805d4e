//! Bounds that decide whether a suite passes.

use plimsoll_metrics::{Bias, BoundedFigure, Disturbance, Judgement, Refusal};
use plimsoll_report::format::{digits, or_dash, percent, time, with_share};
use plimsoll_runner::Bound;
use serde::{Deserialize, Serialize};

use crate::finding;
use crate::result::{Figures, MeasurementResult, Unusable};
use crate::suite::columns;

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
    /// Whether a busy host may have decided it, where nothing but the whole suite knows of one.
    #[serde(skip)]
    pub(crate) in_doubt_if_busy: bool,
}

/// A figure of measurements that bounds are about.
#[derive(Clone, Copy)]
pub(crate) struct Quantity {
    name: &'static str,
    of: Value,
    format: fn(f64) -> String,
    /// Whether a bound on it is the least value, not one that it must stay below.
    more_is_better: bool,
}

#[derive(Clone, Copy)]
enum Value {
    /// A time or a rate, on which the generator and other load on the host have their part.
    Disturbed(fn(&Figures) -> Option<BoundedFigure>),
    /// A share of answers: many errors are its message, where other bounds are inconclusive.
    Counted(fn(&Figures) -> Option<f64>),
}

impl Quantity {
    pub(crate) const P50: Self = Self::time("p50", |f| f.p50_ms);
    pub(crate) const P95: Self = Self::time("p95", |f| f.p95_ms);
    pub(crate) const P99: Self = Self::time("p99", |f| f.p99_ms);
    /// The p99, or with too few requests for it the maximum.
    pub(crate) const TAIL: Self = Self::time("p99", |f| f.p99_ms.or(f.max_ms));
    pub(crate) const AVERAGE: Self = Self::time("average", |f| f.mean_ms);
    pub(crate) const THROUGHPUT: Self = Self {
        name: "throughput",
        of: Value::Disturbed(|f| f.requests_per_s),
        format: digits,
        more_is_better: true,
    };
    pub(crate) const ERRORS: Self = Self {
        name: "errors",
        of: Value::Counted(|f| f.error_share),
        format: percent,
        more_is_better: false,
    };
    pub(crate) const CORRECTNESS: Self = Self {
        name: "policy correctness",
        of: Value::Counted(|f| f.policy_correctness),
        format: percent,
        more_is_better: true,
    };

    const fn time(name: &'static str, of: fn(&Figures) -> Option<BoundedFigure>) -> Self {
        Self { name, of: Value::Disturbed(of), format: time, more_is_better: false }
    }

    /// A bound on it that decides.
    pub(crate) const fn bound(self, value: f64) -> Limit {
        Limit { of: self, value, decides: true }
    }

    /// A bound on it that the report only shows.
    pub(crate) const fn goal(self, value: f64) -> Limit {
        Limit { of: self, value, decides: false }
    }
}

/// A bound on a figure of a measurement.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    of: Quantity,
    value: f64,
    decides: bool,
}

impl Limit {
    const fn requirement(&self) -> Requirement {
        if self.of.more_is_better {
            Requirement::at_least(self.value, self.of.format)
        } else {
            Requirement::below(self.value, self.of.format)
        }
    }

    /// Judges the figure of a measurement that is called `name`.
    pub(crate) fn judge(&self, name: &str, result: &MeasurementResult) -> BoundResult {
        let (what, requirement) = (format!("{name}: {}", self.of.name), self.requirement());
        let judged = match self.of.of {
            Value::Disturbed(of) => BoundResult::of_figure(&what, result, of, requirement),
            Value::Counted(of) => {
                let counted = result.error_figure(of).map(BoundedFigure::exact);
                BoundResult::figure(&what, counted, requirement)
            }
        };
        BoundResult { decides: self.decides, ..judged }
    }

    /// A row of a table of metrics: its name, the figure behind the mark of its measurement, the
    /// limit, and for a rate the share of it that is reached at least, as the generator can only
    /// have held it back.
    pub(crate) fn row(&self, metric: &str, result: Option<&MeasurementResult>) -> [String; 4] {
        let cell = or_dash(result, |result| columns::marked(result, &self.cell(result)));
        let rate = result.filter(|_| self.of.more_is_better);
        let rate = rate.and_then(MeasurementResult::throughput);
        let reached = or_dash(rate, |rate| {
            let at_least = if rate.refused.is_some() { ">= " } else { "" };
            format!("{at_least}{}", percent(rate.value / self.value))
        });
        [metric.to_owned(), cell, self.requirement().text(), reached]
    }

    fn cell(&self, result: &MeasurementResult) -> String {
        match self.of.of {
            Value::Disturbed(_) if self.of.more_is_better => columns::throughput(result),
            Value::Disturbed(of) => columns::time(result, of),
            Value::Counted(of) => columns::shown_cell(result, of, self.of.format),
        }
    }
}

/// Judges several figures of a measurement.
pub(crate) fn judge(name: &str, result: &MeasurementResult, limits: &[Limit]) -> Vec<BoundResult> {
    limits.iter().map(|limit| limit.judge(name, result)).collect()
}

/// A bound, and the format of its value.
#[derive(Clone, Copy)]
pub(crate) struct Requirement {
    bound: Bound,
    format: fn(f64) -> String,
}

impl Requirement {
    /// That nothing of a count is left.
    pub(crate) const NONE: Self = Self { bound: Bound::AtMost(0.0), format: digits };

    pub(crate) const fn below(value: f64, format: fn(f64) -> String) -> Self {
        Self { bound: Bound::Below(value), format }
    }

    const fn at_least(value: f64, format: fn(f64) -> String) -> Self {
        Self { bound: Bound::AtLeast(value), format }
    }

    /// The generator can only add to a time and take from a rate.
    const fn is_of_rate(&self) -> bool {
        matches!(self.bound, Bound::AtLeast(_))
    }

    /// Judges a figure on its limits.
    fn judge(&self, measured: Result<BoundedFigure, Unusable>) -> Judgement {
        let figure = match measured {
            Ok(figure) => figure,
            Err(why) => return Judgement::Inconclusive(why.to_string()),
        };
        let bias = if self.is_of_rate() { Bias::Takes } else { Bias::Adds };
        match (figure.limits(bias).map(|value| self.bound.holds(value)), figure.refused) {
            ([true, true], _) => Judgement::Pass,
            ([false, false], _) => Judgement::Fail,
            (_, Some(Refusal::Censored)) => {
                Judgement::Inconclusive("requests without an end may be longer".to_owned())
            }
            _ => Judgement::Inconclusive(format!(
                "the generator itself may have changed it by {}, which decides",
                (self.format)(figure.bound)
            )),
        }
    }

    /// The Result column.
    fn shown(&self, figure: BoundedFigure) -> String {
        let value = (self.format)(figure.value);
        match figure.refused {
            Some(_) if self.is_of_rate() => format!(">= {value}"),
            _ => with_share(value, &figure, "-"),
        }
    }

    fn text(&self) -> String {
        let (sign, limit) = match self.bound {
            Bound::Below(limit) => ("<", limit),
            Bound::AtLeast(limit) => (">=", limit),
            Bound::AtMost(limit) | Bound::Within { truth: limit, .. } => ("<=", limit),
        };
        format!("{sign} {}", (self.format)(limit))
    }
}

impl BoundResult {
    /// Judges a time or a rate of a measurement. One that must not be used neither passes nor
    /// fails; nor does one that other load on the host may have decided. None fails while the
    /// load's own core was full: what waited there is in it.
    fn of_figure(
        what: &str,
        result: &MeasurementResult,
        figure: impl Fn(&Figures) -> Option<BoundedFigure>,
        requirement: Requirement,
    ) -> Self {
        let disturbance =
            if requirement.is_of_rate() { Disturbance::Down } else { result.time().disturbance() };
        let judged = Self::figure(what, result.bounded(figure), requirement);
        let judged = match result.busy_host() {
            Some(why) => judged.disturbed(disturbance, why),
            None => judged,
        };
        match result.figures().and_then(|figures| finding::full_load_core(&figures.busy)) {
            Some(why) if judged.judgement == Judgement::Fail => {
                Self { judgement: Judgement::Inconclusive(why), ..judged }
            }
            _ => judged,
        }
    }

    /// Judges a count that may be missing.
    pub(crate) fn count(what: &str, measured: Option<f64>, requirement: Requirement) -> Self {
        let figure = measured.map(BoundedFigure::exact).ok_or(Unusable::NoValue);
        Self::figure(what, figure, requirement)
    }

    /// Judges a time that may be missing, and that was not taken during a load.
    pub(crate) fn time(what: &str, measured: Option<f64>, requirement: Requirement) -> Self {
        let judged = Self::count(what, measured, requirement);
        Self { in_doubt_if_busy: judged.judgement == Judgement::Fail, ..judged }
    }

    /// The judgement of a figure that was measured on a busy host.
    pub(crate) fn disturbed(self, disturbance: Disturbance, why: String) -> Self {
        let settled = match self.judgement {
            Judgement::Pass => disturbance.settles(true),
            Judgement::Fail => disturbance.settles(false),
            Judgement::Inconclusive(_) => true,
        };
        if settled { self } else { self.into_doubt(&Unusable::BusyHost(why)) }
    }

    pub(crate) fn into_doubt(self, why: &Unusable) -> Self {
        Self { judgement: Judgement::Inconclusive(why.to_string()), ..self }
    }

    /// Judges a difference by its interval, `[value, low, high]`: only where the whole of it keeps
    /// the bound is it kept, and only where all of it breaks the bound is it broken.
    pub(crate) fn interval(
        what: &str,
        measured: Result<[f64; 3], String>,
        requirement: Requirement,
    ) -> Self {
        let judgement = match &measured {
            Err(why) => Judgement::Inconclusive(why.clone()),
            Ok([_, low, high]) => match [low, high].map(|end| requirement.bound.holds(*end)) {
                [true, true] => Judgement::Pass,
                [false, false] => Judgement::Fail,
                _ => Judgement::Inconclusive("its interval has the bound in it".to_owned()),
            },
        };
        let measured = or_dash(measured.ok(), |ends| {
            let [value, low, high] = ends.map(requirement.format);
            format!("{value} [{low}, {high}]")
        });
        let judged = Self::new(what, measured, requirement.text(), judgement);
        Self { in_doubt_if_busy: true, ..judged }
    }

    /// Judges a figure, or says why there is none.
    fn figure(
        what: &str,
        measured: Result<BoundedFigure, Unusable>,
        requirement: Requirement,
    ) -> Self {
        let shown = or_dash(measured.clone().ok(), |figure| requirement.shown(figure));
        Self::new(what, shown, requirement.text(), requirement.judge(measured))
    }

    /// A judgement that decides.
    pub(crate) fn new(what: &str, measured: String, bound: String, judgement: Judgement) -> Self {
        let what = what.to_owned();
        Self { what, measured, bound, judgement, decides: true, in_doubt_if_busy: false }
    }

    /// A goal: the report shows it, and it decides nothing.
    pub(crate) fn into_goal(self) -> Self {
        Self { decides: false, ..self }
    }

    /// The Status column.
    pub const fn status(&self) -> &'static str {
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
    use plimsoll_report::format::{digits, percent, time};

    fn result(p99: Option<f64>, invalid: bool) -> MeasurementResult {
        let p99 = p99.map(BoundedFigure::exact);
        let invalid = invalid.then(|| "late".to_owned());
        MeasurementResult {
            passes: vec![Figures { requests: 10, p99_ms: p99, invalid, ..Figures::default() }],
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
            let bound = BoundResult::of_figure("p99", &result, |f| f.p99_ms, requirement);
            assert_eq!(bound.status(), status, "{result:?}");
            assert_eq!(bound.bound, "< 100ms");
        }
    }

    #[test]
    fn nothing_is_broken_by_what_waited_for_a_full_core_of_the_load() {
        let requirement = Requirement::below(100.0, time);
        for (p99, generator, provider, shared, status) in [
            (200.0, 0.53, 0.38, true, "inconclusive"),
            (200.0, 0.53, 0.38, false, "FAIL"),
            (200.0, 0.53, 0.3, true, "FAIL"),
            (200.0, 0.95, 0.0, false, "inconclusive"),
            // What waited can only have made it longer.
            (50.0, 0.53, 0.38, true, "PASS"),
        ] {
            let mut result = result(Some(p99), false);
            let busy = &mut result.passes[0].busy;
            (busy.generator, busy.provider, busy.shared) =
                (Some(generator), Some(provider), shared);
            let bound = BoundResult::of_figure("p99", &result, |f| f.p99_ms, requirement);
            assert_eq!(bound.status(), status, "{p99} {generator} {provider} {shared}");
        }
    }

    /// Other load only adds to times of an open load and takes from rates, and leaves counts alone.
    #[test]
    fn a_busy_host_decides_only_what_it_can_change() {
        let busy = |rate, errors| {
            let pass = Figures {
                requests: 1_000,
                errors,
                p99_ms: Some(BoundedFigure::exact(50.0)),
                requests_per_s: Some(BoundedFigure::exact(600.0)),
                error_share: Some(errors as f64 / 1_000.0),
                policy_correctness: Some(1.0 - errors as f64 / 1_000.0),
                busy_host: Some("others".to_owned()),
                ..Figures::default()
            };
            MeasurementResult { rate, passes: vec![pass], ..MeasurementResult::default() }
        };
        let (open, closed, failing) = (busy(Some(100.0), 0), busy(None, 0), busy(Some(100.0), 5));
        for (result, limit, status) in [
            (&open, 60.0, "PASS"),
            (&open, 40.0, "inconclusive"),
            // A slower generator shortens the times of a closed load.
            (&closed, 60.0, "inconclusive"),
            (&closed, 40.0, "inconclusive"),
            // The slowest requests may be among those that failed.
            (&failing, 60.0, "inconclusive"),
        ] {
            let limit = Requirement::below(limit, time);
            let p99 = BoundResult::of_figure("p99", result, |f| f.p99_ms, limit);
            assert_eq!(p99.status(), status, "{limit:?}", limit = limit.text());
        }
        for (floor, status) in [(500.0, "PASS"), (700.0, "inconclusive")] {
            let floor = Requirement::at_least(floor, digits);
            let rate = BoundResult::of_figure("rate", &closed, |f| f.requests_per_s, floor);
            assert_eq!(rate.status(), status);
        }
        for (result, status) in [(&open, "PASS"), (&closed, "PASS"), (&failing, "FAIL")] {
            let errors = Quantity::ERRORS.bound(0.001).judge("x", result);
            let correct = Quantity::CORRECTNESS.bound(1.0).judge("x", result);
            assert_eq!([errors.status(), correct.status()], [status; 2]);
        }
    }

    #[test]
    fn a_figure_is_judged_on_its_limits() {
        let of =
            |value, bound, refused| Ok(BoundedFigure { value, bound, interval: None, refused });
        let (below, least) = (Requirement::below(10.0, time), Requirement::at_least(10.0, digits));
        let generator = Some(Refusal::Generator);
        for (figure, requirement, shown, status) in [
            (of(9.0, 0.1, None), below, "9.00ms", "PASS"),
            (of(10.1, 0.05, None), below, "10.1ms", "FAIL"),
            // Without the generator it might be 9.9 ms.
            (of(10.1, 0.2, None), below, "10.1ms", "inconclusive"),
            (of(9.0, 2.0, generator), below, "9.00ms (-22%)", "PASS"),
            // The generator can only have added to it.
            (of(0.2, 0.1, generator), below, "200us (-50%)", "PASS"),
            (of(7.9, 2.0, generator), below, "7.90ms (-25%)", "PASS"),
            (of(0.2, 0.1, Some(Refusal::Censored)), below, ">= 200us", "inconclusive"),
            (of(90.0, 2.0, generator), below, "90.0ms (-2%)", "FAIL"),
            (of(9.0, 0.0, Some(Refusal::Censored)), below, ">= 9.00ms", "inconclusive"),
            // It can only be longer.
            (of(11.0, 0.0, Some(Refusal::Censored)), below, ">= 11.0ms", "FAIL"),
            (of(11.0, 5.0, None), least, "11.0", "PASS"),
            (of(9.0, 0.5, None), least, "9.00", "FAIL"),
            (of(9.0, 1.5, None), least, "9.00", "inconclusive"),
            (of(11.0, 5.0, generator), least, ">= 11.0", "PASS"),
            (of(1.0, 0.5, generator), least, ">= 1.00", "FAIL"),
            (of(9.0, 1.5, generator), least, ">= 9.00", "inconclusive"),
        ] {
            let result = BoundResult::figure("x", figure.clone(), requirement);
            assert_eq!((&*result.measured, result.status()), (shown, status), "{figure:?}");
        }
    }

    #[test]
    fn requirements_hold_at_their_edges_and_are_written_with_their_unit() {
        for (requirement, text, below, on, above) in [
            (Requirement::below(2.0, time), "< 2.00ms", true, false, false),
            (
                Requirement { bound: Bound::AtMost(2.0), format: percent },
                "<= 200%",
                true,
                true,
                false,
            ),
            (Requirement::at_least(2.0, time), ">= 2.00ms", false, true, true),
        ] {
            assert_eq!(
                [1.0, 2.0, 3.0]
                    .map(|value| requirement.judge(Ok(BoundedFigure::exact(value)))
                        == Judgement::Pass),
                [below, on, above],
                "{text}"
            );
            assert_eq!(requirement.text(), text);
        }
    }

    #[test]
    fn a_goal_is_met_or_missed_and_decides_nothing() {
        let requirement = Requirement::at_least(50.0, time);
        for (measured, status) in
            [(Some(60.0), "met"), (Some(40.0), "missed"), (None, "inconclusive")]
        {
            let goal = BoundResult::time("x", measured, requirement).into_goal();
            assert_eq!((goal.status(), goal.decides), (status, false));
        }
    }

    #[test]
    fn errors_break_their_own_bound_and_leave_the_others_open() {
        let with = |errors| {
            let pass = Figures {
                requests: 100,
                errors,
                error_share: Some(errors as f64 / 100.0),
                p99_ms: Some(BoundedFigure::exact(1.0)),
                ..Figures::default()
            };
            MeasurementResult { passes: vec![pass], ..MeasurementResult::default() }
        };
        for (errors, of_time, of_errors) in [
            (0, "PASS", "PASS"),
            (50, "inconclusive", "FAIL"),
            (100, "inconclusive", "inconclusive"),
        ] {
            let result = with(errors);
            let time =
                BoundResult::of_figure("p99", &result, |f| f.p99_ms, Requirement::below(9.0, time));
            let errors = Quantity::ERRORS.bound(0.02).judge("x", &result);
            assert_eq!((time.status(), errors.status()), (of_time, of_errors));
        }
    }
}
