//! The figures of a pass, as the tables show them.

use plimsoll_harness::statistics::median;
use plimsoll_metrics::{
    DistributionSummary, Group, Metric, MetricsError, Refusal, RunSummary, Validity,
};
use plimsoll_report::format::{count, percent};
use serde::{Deserialize, Serialize};

/// CPU seconds per second of wall time and core, of everything that could be the bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BusyShares {
    /// The gateway's process; 1.0 is one core.
    pub gateway: Option<f64>,
    /// The load's own process, per core that it has.
    pub generator: Option<f64>,
    /// The same of its busiest worker, which limits a load before all are busy.
    #[serde(default)]
    pub busiest_worker: Option<f64>,
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
            limited: is_limited(&summary.results.total),
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
        if self.requests == 0 {
            return Some("no request began in the measured time".to_owned());
        }
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
            busiest_worker: middle(|f| f.busy.busiest_worker),
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

/// Whether the generator's own work kept the rate down: it is then a lower bound.
fn is_limited(total: &Group) -> bool {
    total.refused_rates.values().any(|why| *why == Refusal::Generator)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_the_generator_kept_down_is_a_lower_bound() {
        let mut total = Group::default();
        assert!(!is_limited(&total));
        total.refused_rates.insert("throughput_per_s".to_owned(), Refusal::Generator);
        assert!(is_limited(&total));
    }
}
