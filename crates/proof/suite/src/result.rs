//! The result of a measurement: its passes, and the figures that the tables show.

use plimsoll_harness::statistics::{Spread, median};
use plimsoll_metrics::{DistributionSummary, Group, Metric, MetricsError, RunSummary, Validity};
use serde::{Deserialize, Serialize};

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
    /// Those of them without a 2xx: refused, failed, timed out, never answered or never sent.
    pub errors: u64,
    /// Length of the measured window.
    #[serde(default)]
    pub seconds: f64,
    /// Completions per second of wall time.
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
    /// CPU use of each process.
    pub busy: BusyShares,
    /// `|N - X R| / N` of Little's law.
    pub little_error: Option<f64>,
    /// Share of the planned requests without a well-formed response.
    pub error_share: Option<f64>,
    /// Whether the load generator limited the throughput.
    pub limited: bool,
    /// Why the figures must not be used; `None` for a valid measurement.
    pub invalid: Option<String>,
}

/// The responses that count, and whose times are shown.
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
        let littles_law =
            summary.health.littles_law.iter().map(plimsoll_metrics::LittlesLaw::error);
        Ok(Self {
            planned_per_s: summary
                .results
                .total
                .rates
                .planned_rate_per_s
                .filter(|_| summary.health.planned_arrivals.is_some()),
            little_error: littles_law.reduce(f64::max),
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
        let answered = match responses {
            TimedResponses::Completed => counters.completed,
            TimedResponses::All => counters.completed + counters.rejected,
        };
        let per_s = |count: u64| (total.duration_s > 0.0).then(|| count as f64 / total.duration_s);
        Ok(Self {
            requests: counters.scheduled,
            seconds: total.duration_s,
            errors: counters.scheduled.saturating_sub(answered + counters.cancelled),
            requests_per_s: match responses {
                TimedResponses::Completed => total.rates.throughput_per_s,
                TimedResponses::All => per_s(answered),
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
            error_share: total.rates.error_rate,
            ..Self::default()
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
            busy,
            little_error: passes.iter().filter_map(|f| f.little_error).reduce(f64::max),
            error_share: middle(|f| f.error_share),
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// Whether errors are expected, and not a fault of the gateway.
    #[serde(default, alias = "errors_wanted")]
    pub errors_expected: bool,
    /// Why a pass could not be carried out.
    #[serde(alias = "fault")]
    pub error: Option<String>,
}

impl MeasurementResult {
    /// The passes that may be used: all valid ones or, if there is none, all.
    pub(crate) fn usable(&self) -> Vec<&Figures> {
        let valid: Vec<_> = self.passes.iter().filter(|pass| pass.invalid.is_none()).collect();
        if valid.is_empty() { self.passes.iter().collect() } else { valid }
    }

    /// A figure of each pass; `None` for invalid passes.
    pub(crate) fn valid_figures(&self, of: impl Fn(&Figures) -> Option<f64>) -> Vec<Option<f64>> {
        self.passes.iter().map(|pass| of(pass).filter(|_| pass.invalid.is_none())).collect()
    }

    /// The medians over the usable passes; `None` if nothing was measured.
    pub fn figures(&self) -> Option<Figures> {
        let usable = self.usable();
        (!usable.is_empty()).then(|| Figures::median(&usable))
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

    /// The marker after its label in tables.
    pub(crate) fn marker(&self) -> &'static str {
        if self.error.is_some() && self.passes.is_empty() {
            " [NOT RUN]"
        } else if self.is_invalid() {
            " [INVALID]"
        } else if self.figures().is_some_and(|figures| figures.limited) {
            " [>=]"
        } else {
            ""
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
            let figures = result.figures().unwrap();
            assert_eq!(figures.requests_per_s, Some(rate));
            assert_eq!((result.is_invalid(), figures.invalid.is_some()), (invalid, invalid));
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
}
