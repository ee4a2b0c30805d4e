//! Bounds that decide whether a suite passes.

use plimsoll_metrics::{
    Bias, Bound, BoundedFigure, Comparison, Disturbance, Figure, Judgement, Refusal, Worse,
};
use plimsoll_report::format::{DASH, digits, or_dash, percent, time, with_share};
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
    /// Whether a busy host may have decided the bound, where only the whole suite detects a busy
    /// host.
    #[serde(skip)]
    pub(crate) in_doubt_if_busy: bool,
}

/// A figure of measurements that bounds are about.
#[derive(Clone, Copy)]
pub(crate) struct Quantity {
    name: &'static str,
    /// Its metric in the catalog, which knows what can disturb it and when it gets worse.
    metric: &'static str,
    of: Value,
    format: fn(f64) -> String,
}

#[derive(Clone, Copy)]
enum Value {
    /// A time or a rate, on which the generator has its part.
    Measured(fn(&Figures) -> Option<BoundedFigure>),
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
        metric: "throughput",
        of: Value::Measured(|f| f.requests_per_s),
        format: digits,
    };
    pub(crate) const ERRORS: Self = Self {
        name: "errors",
        metric: "error_rate",
        of: Value::Counted(|f| f.error_share),
        format: percent,
    };
    pub(crate) const CORRECTNESS: Self = Self {
        name: "policy correctness",
        metric: "policy_correctness",
        of: Value::Counted(|f| f.policy_correctness),
        format: percent,
    };

    const fn time(name: &'static str, of: fn(&Figures) -> Option<BoundedFigure>) -> Self {
        Self { name, metric: "response_time", of: Value::Measured(of), format: time }
    }

    fn more_is_better(self) -> bool {
        Figure::named(self.metric).is_some_and(|figure| figure.worse() == Worse::Lower)
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

/// Effect of other load on the host on a catalog metric of a measurement.
pub(crate) fn disturbance(metric: &str, result: &MeasurementResult) -> Disturbance {
    match Figure::named(metric) {
        Some(Figure::Distribution(_)) => result.time().disturbance(),
        other => other.map_or(Disturbance::Either, Figure::disturbance),
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
    fn requirement(&self) -> Requirement {
        if self.of.more_is_better() {
            Requirement::at_least(self.value, self.of.format)
        } else {
            Requirement::below(self.value, self.of.format)
        }
    }

    /// Judges the figure of the measurement `name`. An unusable figure neither passes nor fails,
    /// and neither does a figure that other load on the host may have decided. No time or rate
    /// fails while the load's own core was full, because it includes the wait for that core.
    pub(crate) fn judge(&self, name: &str, result: &MeasurementResult) -> BoundResult {
        let (what, requirement) = (format!("{name}: {}", self.of.name), self.requirement());
        let (measured, busy) = match self.of.of {
            Value::Measured(of) => (result.bounded(of), result.busy_host()),
            Value::Counted(of) => {
                let counted = result.error_figure(of).map(BoundedFigure::exact);
                (counted, result.busy_in_any_pass().cloned())
            }
        };
        let judged = BoundResult::figure(&what, measured, requirement);
        let judged = match busy {
            Some(why) => {
                judged.disturbed(disturbance(self.of.metric, result), requirement.is_upper(), why)
            }
            None => judged,
        };
        let full = match self.of.of {
            Value::Measured(_) if judged.judgement == Judgement::Fail => result.figures(),
            _ => None,
        };
        let full = full.and_then(|figures| finding::full_load_core(&figures.busy));
        let judgement = full.map_or(judged.judgement, Judgement::Inconclusive);
        BoundResult { judgement, decides: self.decides, ..judged }
    }

    /// A row of a table of metrics: its name, the figure behind the mark of its measurement (a full
    /// core of the load marks rates only), the limit, the status, and for a rate the share of it
    /// that is reached at least, as the generator can only have held it back.
    pub(crate) fn row(&self, metric: &str, result: Option<&MeasurementResult>) -> [String; 5] {
        let cell = or_dash(result, |result| match self.cell(result) {
            cell if !self.of.more_is_better() && result.why_unusable().is_none() => cell,
            cell => columns::marked(result, &cell),
        });
        let rate = result.filter(|_| self.of.more_is_better());
        let rate = rate.and_then(MeasurementResult::throughput);
        let reached = or_dash(rate, |rate| {
            let at_least = if rate.refused.is_some() { ">= " } else { "" };
            format!("{at_least}{}", percent(rate.value / self.value))
        });
        let status = or_dash(result, |result| self.judge("", result).status().to_owned());
        [metric.to_owned(), cell, self.requirement().text(), status, reached]
    }

    fn cell(&self, result: &MeasurementResult) -> String {
        match self.of.of {
            Value::Measured(_) if self.of.more_is_better() => columns::throughput(result),
            Value::Measured(of) => columns::time(result, of),
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
    /// Requires a count of zero.
    pub(crate) const NONE: Self = Self::new(Comparison::AtMost, 0.0, digits);

    const fn new(comparison: Comparison, value: f64, format: fn(f64) -> String) -> Self {
        Self { bound: Bound::new(comparison, value), format }
    }

    pub(crate) const fn below(value: f64, format: fn(f64) -> String) -> Self {
        Self::new(Comparison::Less, value, format)
    }

    const fn at_least(value: f64, format: fn(f64) -> String) -> Self {
        Self::new(Comparison::AtLeast, value, format)
    }

    const fn is_upper(&self) -> bool {
        self.bound.comparison.is_upper()
    }

    /// Judges a figure on its limits: the generator can only add to a time and take from a rate.
    fn judge(&self, measured: Result<BoundedFigure, Unusable>) -> Judgement {
        let figure = match measured {
            Ok(figure) => figure,
            Err(why) => return Judgement::Inconclusive(why.to_string()),
        };
        let bias = if self.is_upper() { Bias::Adds } else { Bias::Takes };
        Judgement::new(self.bound.decides(figure.limits(bias)), || match figure.refused {
            Some(Refusal::Censored) => "requests without an end may be longer".to_owned(),
            _ => format!(
                "the measurement error of {} is too large to decide",
                (self.format)(figure.bound)
            ),
        })
    }

    /// The Result column.
    fn shown(&self, figure: BoundedFigure) -> String {
        let value = (self.format)(figure.value);
        match figure.refused {
            Some(_) if !self.is_upper() => format!(">= {value}"),
            _ => with_share(value, &figure, "-"),
        }
    }

    fn text(&self) -> String {
        format!("{} {}", self.bound.comparison.sign(), (self.format)(self.bound.value))
    }
}

impl BoundResult {
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
    pub(crate) fn disturbed(self, by: Disturbance, is_upper: bool, why: String) -> Self {
        let settled = match self.judgement {
            Judgement::Pass => by.settles(true, is_upper),
            Judgement::Fail => by.settles(false, is_upper),
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
            Ok([_, low, high]) => Judgement::new(requirement.bound.decides([*low, *high]), || {
                "its interval includes the bound".to_owned()
            }),
        };
        let measured = or_dash(measured.ok(), |ends| {
            let [value, low, high] = ends.map(requirement.format);
            format!("{value} [{low}, {high}]")
        });
        let judged = Self::new(what, measured, requirement.text(), judgement);
        Self { in_doubt_if_busy: true, ..judged }
    }

    /// Judges a figure, or says why it is missing.
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

    /// Turns the bound into a goal: the report shows it, but it does not affect the verdict.
    pub(crate) fn into_goal(self) -> Self {
        Self { decides: false, ..self }
    }

    /// A row of a table of metrics.
    pub(crate) fn row(&self, metric: &str) -> [String; 5] {
        let cells = [metric, &self.measured, &self.bound, self.status(), DASH];
        cells.map(str::to_owned)
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
        for (result, status) in [
            (result(Some(99.9), false), "PASS"),
            (result(Some(100.0), false), "FAIL"),
            (result(None, false), "inconclusive"),
            (result(Some(1.0), true), "inconclusive"),
            (MeasurementResult::default(), "inconclusive"),
        ] {
            let bound = Quantity::P99.bound(100.0).judge("x", &result);
            assert_eq!(bound.status(), status, "{result:?}");
            assert_eq!(bound.bound, "< 100ms");
        }
    }

    #[test]
    fn nothing_is_broken_by_what_waited_for_a_full_core_of_the_load() {
        for (p99, generator, provider, shared, status) in [
            (200.0, 0.53, 0.38, true, "inconclusive"),
            (200.0, 0.53, 0.38, false, "FAIL"),
            (200.0, 0.53, 0.3, true, "FAIL"),
            (200.0, 0.95, 0.0, false, "inconclusive"),
            // Waiting can only have made the time longer.
            (50.0, 0.53, 0.38, true, "PASS"),
        ] {
            let mut result = result(Some(p99), false);
            let busy = &mut result.passes[0].busy;
            (busy.generator, busy.provider, busy.shared) =
                (Some(generator), Some(provider), shared);
            let bound = Quantity::P99.bound(100.0).judge("x", &result);
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
            // The slowest requests may be among the failed ones.
            (&failing, 60.0, "inconclusive"),
        ] {
            let p99 = Quantity::P99.bound(limit).judge("x", result);
            assert_eq!(p99.status(), status, "{limit}");
        }
        for (floor, status) in [(500.0, "PASS"), (700.0, "inconclusive")] {
            let rate = Quantity::THROUGHPUT.bound(floor).judge("x", &closed);
            assert_eq!(rate.status(), status);
        }
        // Other load may have made requests time out, and does not change a decision.
        for (result, statuses) in [
            (&open, ["PASS", "PASS"]),
            (&closed, ["PASS", "PASS"]),
            (&failing, ["inconclusive", "FAIL"]),
        ] {
            let errors = Quantity::ERRORS.bound(0.001).judge("x", result);
            let correct = Quantity::CORRECTNESS.bound(1.0).judge("x", result);
            assert_eq!([errors.status(), correct.status()], statuses);
        }
    }

    /// A throughput that the load limited is a lower bound; a share of errors is not.
    #[test]
    fn a_full_core_of_the_load_marks_rates_only() {
        let pass = Figures {
            requests: 1_000,
            limited: true,
            requests_per_s: Some(BoundedFigure::exact(600.0)),
            p99_ms: Some(BoundedFigure::exact(2.0)),
            error_share: Some(0.0),
            ..Figures::default()
        };
        let result = MeasurementResult { passes: vec![pass], ..MeasurementResult::default() };
        for (of, cell) in [
            (Quantity::THROUGHPUT, "[>=] 600"),
            (Quantity::P99, "2.00ms"),
            (Quantity::ERRORS, "0%"),
        ] {
            assert_eq!(of.goal(0.5).row("x", Some(&result))[1], cell);
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
            (Requirement::new(Comparison::AtMost, 2.0, percent), "<= 200%", true, true, false),
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
            let time = Quantity::P99.bound(9.0).judge("x", &result);
            let errors = Quantity::ERRORS.bound(0.02).judge("x", &result);
            assert_eq!((time.status(), errors.status()), (of_time, of_errors));
        }
    }
}
