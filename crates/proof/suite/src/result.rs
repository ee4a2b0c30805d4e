//! The result of a measurement: its passes, and the figures that the tables show.

use plimsoll_harness::statistics::{Spread, median};
use plimsoll_metrics::{DistributionSummary, Group, Metric, MetricsError, RunSummary, Validity};
use plimsoll_report::format::{count, percent};
use serde::{Deserialize, Serialize};

/// The share of requests without an expected answer above which the figures of a measurement must
/// not be used, unless its suite says otherwise: a refusal is fast, and would be taken for speed.
pub const ERROR_GATE: f64 = 0.01;

/// Why a figure must not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// No pass was carried out.
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
}

/// CPU seconds per second of wall time and core, of everything that could be the bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BusyShares {
    /// The gateway's process; 1.0 is one core.
    pub gateway: Option<f64>,
    /// The load's own process, per core that it has.
    pub generator: Option<f64>,
    /// The provider's process.
    pub provider: Option<f64>,
    /// Share of the time in which the load was ready to run and waited for its core.
    #[serde(default)]
    pub waited: Option<f64>,
    /// Whether load and provider share a core.
    pub shared: bool,
    /// Cores that the gateway may use, if known.
    pub gateway_cores: Option<f64>,
}

/// The figures of a pass, or the medians of several. `None` is unknown, or a percentile of too few
/// samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Planned requests without warm-up; the sum over passes.
    pub requests: u64,
    /// Those of them without the expected answer: refused (429, 404, ...), failed, timed out, never
    /// answered or never sent; with another policy decision than the expected one.
    pub errors: u64,
    /// Those of them with the expected answer; `None` in files of older versions.
    #[serde(default)]
    pub expected: Option<u64>,
    /// The most frequent kinds of errors, like `429: 1,234`.
    #[serde(default)]
    pub error_kinds: Option<String>,
    /// Length of the measured window.
    #[serde(default)]
    pub seconds: f64,
    /// Expected answers per second of wall time.
    pub requests_per_s: Option<f64>,
    /// Planned requests per second, in the open model.
    pub planned_per_s: Option<f64>,
    /// Mean response time.
    pub mean_ms: Option<f64>,
    /// Median response time.
    pub p50_ms: Option<f64>,
    /// 95th percentile of it.
    pub p95_ms: Option<f64>,
    /// 99th percentile of it.
    pub p99_ms: Option<f64>,
    /// Largest response time, over all passes.
    pub max_ms: Option<f64>,
    /// Median time to the first token.
    pub ttft_p50_ms: Option<f64>,
    /// 99th percentile of it.
    pub ttft_p99_ms: Option<f64>,
    /// 99th percentile of the gaps inside streams.
    pub gap_p99_ms: Option<f64>,
    /// Bytes received, in millions per second.
    pub megabytes_per_s: Option<f64>,
    /// CPU time of the gateway per request, in microseconds.
    pub gateway_cpu_us: Option<f64>,
    /// Resident memory of the gateway at the end of the measured window, in bytes.
    #[serde(default)]
    pub gateway_memory: Option<f64>,
    /// CPU use of each process.
    pub busy: BusyShares,
    /// What other processes or machines took from this host meanwhile; `None` if it was quiet.
    #[serde(default)]
    pub busy_host: Option<String>,
    /// Share of the planned requests without the expected answer.
    pub error_share: Option<f64>,
    /// Share of the answers with the policy decision that the scenario expects.
    #[serde(default)]
    pub policy_correctness: Option<f64>,
    /// Whether the load generator limited the throughput.
    pub limited: bool,
    /// Why the figures must not be used; `None` for a valid measurement.
    pub invalid: Option<String>,
}

/// The responses whose times are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum TimedResponses {
    /// Completed requests.
    #[default]
    Completed,
    /// Refused ones too, where refusals are expected.
    All,
}

impl Figures {
    /// The figures of a summary.
    pub(crate) fn of(
        summary: &RunSummary,
        responses: TimedResponses,
    ) -> Result<Self, MetricsError> {
        Ok(Self {
            planned_per_s: summary
                .results
                .total
                .rates
                .planned_rate_per_s
                .filter(|_| summary.health.planned_arrivals.is_some()),
            limited: summary.warnings.iter().any(|warning| warning.what.starts_with("limited")),
            invalid: invalid(&summary.validity),
            ..Self::of_group(&summary.results.total, responses)?
        })
    }

    /// The figures of part of a run: of a stage, or of a category.
    pub(crate) fn of_group(total: &Group, responses: TimedResponses) -> Result<Self, MetricsError> {
        let times = times(total, responses)?;
        let of = |value: fn(&Times) -> Option<f64>| times.as_ref().and_then(value);
        let stream = |metric, value: fn(&DistributionSummary) -> Option<f64>| {
            total.distribution(metric).and_then(value)
        };
        let counters = &total.counters;
        let expected = counters.scheduled.saturating_sub(counters.unexpected + counters.cancelled);
        let per_s = |count: u64| (total.duration_s > 0.0).then(|| count as f64 / total.duration_s);
        Ok(Self {
            requests: counters.scheduled,
            seconds: total.duration_s,
            errors: counters.unexpected,
            expected: Some(expected),
            error_kinds: error_kinds(total),
            // Where nothing is expected, the engine counts completions in the stage's own time.
            requests_per_s: match responses {
                TimedResponses::Completed => total.rates.throughput_per_s.filter(|_| expected > 0),
                TimedResponses::All => per_s(expected).filter(|_| expected > 0),
            },
            mean_ms: of(|times| Some(times.mean)),
            p50_ms: of(|times| times.p50),
            p95_ms: of(|times| times.p95),
            p99_ms: of(|times| times.p99),
            max_ms: of(|times| Some(times.max)),
            ttft_p50_ms: stream(Metric::Ttft, |times| times.p50),
            ttft_p99_ms: stream(Metric::Ttft, |times| times.p99),
            gap_p99_ms: stream(Metric::Itl, |times| times.p99),
            megabytes_per_s: per_s(counters.bytes_in).map(|bytes| bytes / 1e6),
            error_share: total.rates.unexpected_rate,
            policy_correctness: total.rates.policy_correctness,
            ..Self::default()
        })
    }

    /// The number of expected answers.
    pub fn expected(&self) -> u64 {
        self.expected.unwrap_or_else(|| self.requests.saturating_sub(self.errors))
    }

    /// Why too few of the answers are expected ones for the figures to be used.
    pub(crate) fn gated(&self, gate: f64) -> Option<String> {
        let kinds = self.error_kinds.as_ref().map(|kinds| format!(" ({kinds})"));
        let kinds = kinds.unwrap_or_default();
        if self.expected() == 0 {
            return Some(format!("no expected answer to {} requests{kinds}", count(self.requests)));
        }
        let share = self.errors as f64 / self.requests.max(1) as f64;
        (share > gate).then(|| {
            format!(
                "{} of {} requests had no expected answer{kinds}, over the gate of {}",
                percent(share),
                count(self.requests),
                percent(gate)
            )
        })
    }

    /// The medians over several passes; counts are added up, and the largest is that of all.
    pub(crate) fn median(passes: &[&Self]) -> Self {
        let middle = |of: fn(&Self) -> Option<f64>| {
            let values: Option<Vec<f64>> = passes.iter().map(|pass| of(pass)).collect();
            median(&values?)
        };
        let busy = BusyShares {
            gateway: middle(|f| f.busy.gateway),
            generator: middle(|f| f.busy.generator),
            provider: middle(|f| f.busy.provider),
            waited: middle(|f| f.busy.waited),
            shared: passes.iter().any(|f| f.busy.shared),
            gateway_cores: middle(|f| f.busy.gateway_cores),
        };
        Self {
            requests: passes.iter().map(|f| f.requests).sum(),
            errors: passes.iter().map(|f| f.errors).sum(),
            expected: Some(passes.iter().map(|f| f.expected()).sum()),
            error_kinds: passes.iter().find_map(|f| f.error_kinds.clone()),
            seconds: passes.iter().map(|f| f.seconds).reduce(f64::min).unwrap_or(0.0),
            requests_per_s: middle(|f| f.requests_per_s),
            planned_per_s: middle(|f| f.planned_per_s),
            mean_ms: middle(|f| f.mean_ms),
            p50_ms: middle(|f| f.p50_ms),
            p95_ms: middle(|f| f.p95_ms),
            p99_ms: middle(|f| f.p99_ms),
            max_ms: passes.iter().filter_map(|f| f.max_ms).reduce(f64::max),
            ttft_p50_ms: middle(|f| f.ttft_p50_ms),
            ttft_p99_ms: middle(|f| f.ttft_p99_ms),
            gap_p99_ms: middle(|f| f.gap_p99_ms),
            megabytes_per_s: middle(|f| f.megabytes_per_s),
            gateway_cpu_us: middle(|f| f.gateway_cpu_us),
            gateway_memory: passes.iter().filter_map(|f| f.gateway_memory).reduce(f64::max),
            busy,
            busy_host: passes.iter().find_map(|f| f.busy_host.clone()),
            error_share: middle(|f| f.error_share),
            policy_correctness: passes.iter().filter_map(|f| f.policy_correctness).reduce(f64::min),
            limited: passes.iter().any(|f| f.limited),
            invalid: passes.iter().find_map(|f| f.invalid.clone()),
        }
    }
}

fn invalid(validity: &Validity) -> Option<String> {
    let Validity::Invalid(reasons) = validity else { return None };
    let texts = reasons.iter().map(|reason| format!("{} ({})", reason.what, reason.measured));
    Some(texts.collect::<Vec<_>>().join("; "))
}

/// The two most frequent kinds of answers that are no success, by status, and of failures without
/// one, by class.
fn error_kinds(group: &Group) -> Option<String> {
    let refused = group.statuses.iter().filter(|(status, _)| **status >= 300);
    let mut kinds: Vec<_> = refused.map(|(status, n)| (status.to_string(), *n)).collect();
    let server_errors: u64 = group.statuses.range(500..).map(|(_, n)| *n).sum();
    let classes = group.errors.iter().map(|(class, n)| (class.clone(), *n));
    kinds.extend(classes.filter(|(class, _)| class != "server_error" || server_errors == 0));
    kinds.push(("timed out".to_owned(), group.counters.timed_out));
    kinds.push(("in flight at the end".to_owned(), group.counters.in_flight));
    kinds.push(("never sent".to_owned(), group.counters.never_sent));
    kinds.retain(|(_, n)| *n > 0);
    kinds.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let texts: Vec<_> =
        kinds.iter().take(2).map(|(kind, n)| format!("{kind}: {}", count(*n))).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// The figures of a distribution that are shown.
struct Times {
    mean: f64,
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    max: f64,
}

fn times(group: &Group, responses: TimedResponses) -> Result<Option<Times>, MetricsError> {
    let completed = group.distribution(Metric::ResponseTime);
    let rejected = group
        .distribution(Metric::RejectedResponseTime)
        .filter(|_| responses == TimedResponses::All);
    let (mut all, parts) = (plimsoll_metrics::Distribution::default(), [completed, rejected]);
    for part in parts.into_iter().flatten() {
        all.merge(&part.restore()?);
    }
    let millis = plimsoll_measure::Nanos::as_millis_f64;
    let quantile = |q| all.quantile(q).map(millis);
    let shown = |mean, max| Times {
        mean: millis(mean),
        p50: quantile(0.5),
        p95: quantile(0.95),
        p99: quantile(0.99),
        max: millis(max),
    };
    Ok(all.mean().zip(all.max()).map(|(mean, max)| shown(mean, max)))
}

/// The passes of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    pub error_gate: f64,
    /// Whether errors are expected, and not a fault of the gateway.
    #[serde(default, alias = "errors_wanted")]
    pub errors_expected: bool,
    /// Why a pass could not be carried out.
    #[serde(alias = "fault")]
    pub error: Option<String>,
}

const fn error_gate() -> f64 {
    ERROR_GATE
}

impl Default for MeasurementResult {
    fn default() -> Self {
        Self {
            label: String::new(),
            clients: None,
            rate: None,
            passes: Vec::new(),
            files: Vec::new(),
            error_gate: ERROR_GATE,
            errors_expected: false,
            error: None,
        }
    }
}

impl MeasurementResult {
    fn gate(&self) -> f64 {
        if self.errors_expected { 1.0 } else { self.error_gate }
    }

    /// Why the figures of a pass must not be used.
    fn refusal(&self, pass: &Figures) -> Option<Unusable> {
        let invalid = pass.invalid.clone().map(Unusable::Invalid);
        invalid.or_else(|| pass.gated(self.gate()).map(Unusable::Errors))
    }

    /// The passes whose figures may be used.
    fn usable(&self) -> Vec<&Figures> {
        self.passes.iter().filter(|pass| self.refusal(pass).is_none()).collect()
    }

    /// The valid passes, whatever the target answered.
    fn valid(&self) -> Vec<&Figures> {
        self.passes.iter().filter(|pass| pass.invalid.is_none()).collect()
    }

    /// A figure of each pass; `None` for passes that must not be used.
    pub(crate) fn usable_figures(&self, of: impl Fn(&Figures) -> Option<f64>) -> Vec<Option<f64>> {
        self.passes.iter().map(|pass| of(pass).filter(|_| self.refusal(pass).is_none())).collect()
    }

    /// The medians over the usable passes: what findings, bounds, sizes and comparisons may rest
    /// on. `None` if no pass may be used.
    pub fn figures(&self) -> Option<Figures> {
        let usable = self.usable();
        (!usable.is_empty()).then(|| Figures::median(&usable))
    }

    /// A figure of the usable passes. Everything that concludes something asks here.
    ///
    /// # Errors
    /// Why there is none.
    pub fn figure(&self, of: impl Fn(&Figures) -> Option<f64>) -> Result<f64, Unusable> {
        match self.figures() {
            Some(figures) => of(&figures).ok_or(Unusable::NoValue),
            None => Err(self.why_unusable().unwrap_or(Unusable::NoValue)),
        }
    }

    /// A figure that counts errors: many of them are its message, not a reason to refuse it. But
    /// where no answer at all was the expected one, the wrong thing was asked.
    ///
    /// # Errors
    /// Why there is none.
    pub fn error_figure(&self, of: impl Fn(&Figures) -> Option<f64>) -> Result<f64, Unusable> {
        let valid = self.valid();
        if valid.is_empty() || valid.iter().all(|pass| pass.expected() == 0) {
            return Err(self.why_unusable().unwrap_or(Unusable::NoValue));
        }
        of(&Figures::median(&valid)).ok_or(Unusable::NoValue)
    }

    /// Why no pass may be used; `None` if one may.
    pub fn why_unusable(&self) -> Option<Unusable> {
        if !self.usable().is_empty() {
            return None;
        }
        let why = || self.error.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let mut refusals: Vec<_> =
            self.passes.iter().filter_map(|pass| self.refusal(pass)).collect();
        // What the target answered says more than that some passes were late besides.
        refusals.sort_by_key(|refusal| !matches!(refusal, Unusable::Errors(_)));
        Some(refusals.into_iter().next().unwrap_or_else(|| Unusable::NotMeasured(why())))
    }

    /// Whether some pass is refused for nothing but that Plimsoll did not keep up.
    pub(crate) fn is_only_invalid(&self) -> bool {
        self.passes.iter().any(|pass| pass.invalid.is_some() && pass.gated(self.gate()).is_none())
    }

    /// The figures for a table, which shows what was measured and marks what must not be used.
    pub(crate) fn shown(&self) -> Option<Figures> {
        let (usable, valid) = (self.usable(), self.valid());
        let all = || self.passes.iter().collect();
        let passes = [usable, valid].into_iter().find(|passes| !passes.is_empty());
        let passes = passes.unwrap_or_else(all);
        (!passes.is_empty()).then(|| Figures::median(&passes))
    }

    /// Whether no pass is valid.
    pub fn is_invalid(&self) -> bool {
        self.passes.iter().all(|pass| pass.invalid.is_some())
    }

    /// Median and extremes of a figure over the usable passes.
    pub(crate) fn spread(&self, of: impl Fn(&Figures) -> Option<f64>) -> Option<Spread> {
        let values: Option<Vec<f64>> = self.usable().into_iter().map(of).collect();
        Spread::of(&values?)
    }

    /// The mark before its label in tables, where a narrow column cannot cut it off.
    pub(crate) fn marker(&self) -> &'static str {
        match self.why_unusable() {
            Some(Unusable::NotMeasured(_)) => "[NOT RUN] ",
            Some(Unusable::Invalid(_)) => "[INVALID] ",
            Some(Unusable::Errors(_) | Unusable::NoValue) => "[ERRORS] ",
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
            requests_per_s: Some(rate),
            max_ms: Some(rate),
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
            assert_eq!(figures.requests_per_s, Some(rate));
            assert_eq!((result.is_invalid(), figures.invalid.is_some()), (invalid, invalid));
            assert_eq!(result.figures().is_none(), invalid, "shown, and used for nothing");
            assert_eq!(result.figure(|f| f.requests_per_s).is_err(), invalid);
        }
        assert_eq!(result(&[]).figures(), None);
    }

    #[test]
    fn counts_are_added_up_and_the_largest_is_of_all() {
        let figures = result(&[pass(1.0, false), pass(5.0, false)]).figures().unwrap();
        assert_eq!((figures.requests, figures.max_ms), (20, Some(5.0)));
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

    #[test]
    fn why_a_figure_is_refused_is_said() {
        let mut refused = pass(1.0, false);
        (refused.requests, refused.errors) = (66_095, 66_095);
        refused.error_kinds = Some("429: 66,095".to_owned());
        let why = |result: &MeasurementResult| result.why_unusable().unwrap().to_string();
        let text = "no expected answer to 66,095 requests (429: 66,095)";
        assert_eq!(why(&result(&[pass(1.0, true), refused])), text);
        assert_eq!(why(&result(&[pass(1.0, true)])), "the measurement is invalid: late");
        let failed = MeasurementResult { error: Some("no port".to_owned()), ..result(&[]) };
        assert_eq!(why(&failed), "not measured: no port");
        assert_eq!(result(&[pass(1.0, false)]).why_unusable(), None);
    }
}
