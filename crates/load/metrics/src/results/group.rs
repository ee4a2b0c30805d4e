//! The results of one group of requests.

use std::collections::BTreeMap;
use std::str::FromStr;

use plimsoll_measure::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::ServerTiming;
use super::distribution_summary::DistributionSummary;
use crate::bounded_figure::{BoundedFigure, Refusal};
use crate::catalog::{Counters, Metric, RATES, RateSpec, Rates};
use crate::confusion_matrix::Matrix;
use crate::error::MetricsError;
use crate::group_stats::GroupStats;
use crate::stream_diagnosis::StreamDiagnosis;
use crate::token_tally::TokenFigures;

/// The results of one group of requests: the run, a stage, a scenario, a category, a target, an
/// operation, or a cell (one stage x scenario x target, and operation where there are any).
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// Its stage, if the group belongs to one stage.
    #[serialize_always]
    pub stage: Option<String>,
    /// Its scenario, if the group belongs to one scenario.
    #[serialize_always]
    pub scenario: Option<String>,
    /// Its target, if the group belongs to one target.
    #[serialize_always]
    pub target: Option<String>,
    /// Its category of scenarios, if the group belongs to one category.
    pub category: Option<String>,
    /// Its operation, if the group belongs to one operation of a tool server or an agent.
    pub operation: Option<String>,
    /// Whether it belongs to a warm-up stage.
    pub warmup: bool,
    /// Length of its stages together, in seconds.
    pub duration_s: f64,
    /// Counters.
    pub counters: Counters,
    /// Rates and shares.
    pub rates: Rates,
    /// How much higher a rate may be without the generator, by rate; those that would be the same
    /// are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rate_bounds: BTreeMap<String, f64>,
    /// 95 % intervals of the rates of answers that the number of answers leaves open by more than
    /// 5 %: those that the edges of a stage cut, or too few of different lengths.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rate_intervals: BTreeMap<String, [f64; 2]>,
    /// The rates whose value alone proves nothing, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused_rates: BTreeMap<String, Refusal>,
    /// Failures by error class.
    pub errors: BTreeMap<String, u64>,
    /// Responses by HTTP status.
    #[serde(deserialize_with = "numeric_keys")]
    pub statuses: BTreeMap<u16, u64>,
    /// JSON-RPC errors by code, whatever the HTTP status. Errors in successful responses also count
    /// as `rpc_error` in `errors`.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "numeric_keys"
    )]
    pub rpc_errors: BTreeMap<i32, u64>,
    /// Requests by expected and by actual policy decision, if scenarios expect one. `unanswered`
    /// counts the requests without a response.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub policy_decisions: Matrix,
    /// Why the models stopped, by reason, as far as the target says.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub finish_reasons: BTreeMap<String, u64>,
    /// How its streams came; `None` if none began.
    pub streams: Option<StreamDiagnosis>,
    /// The parts of its time that the target reports in headers (`Server-Timing`, and
    /// `response_headers.overhead`), if any.
    pub server_timing: Option<ServerTiming>,
    /// Tokens of its completed requests; `None` if none are known.
    pub tokens: Option<TokenFigures>,
    /// Distributions by metric, like `ttft_ms`, in milliseconds; those without a value are left
    /// out.
    pub distributions: BTreeMap<String, DistributionSummary>,
}

/// Output tokens per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenRate {
    /// The rate.
    pub figure: BoundedFigure,
    /// Whether tokens of some answers were counted as content events.
    pub is_estimated: bool,
    /// Whether some responses without a count are left out, so the figure is a lower bound.
    pub is_partial: bool,
}

impl Group {
    /// Whether its stage lasted as long as its notation says, like `8:30s` or `8:30s#2`.
    pub fn has_lasted(&self) -> bool {
        let notation = self.stage.as_ref().and_then(|name| name.split('#').next());
        let length = notation.and_then(|notation| notation.rsplit_once(':')?.1.parse().ok());
        length.is_some_and(|length: Nanos| self.duration_s >= 0.99 * length.as_secs_f64())
    }

    /// The results of the given counts, without labels.
    pub(super) fn from_stats(stats: &GroupStats, duration_s: f64) -> Result<Self, MetricsError> {
        let mut distributions = BTreeMap::new();
        for metric in Metric::ALL {
            if let Some(distribution) = stats.distribution(metric) {
                distributions.insert(
                    metric.key().to_owned(),
                    DistributionSummary::from_distribution(distribution)?,
                );
            }
        }
        Ok(Self {
            duration_s,
            counters: *stats.counters(),
            rates: Rates::compute(stats.counters(), &stats.edges, duration_s),
            errors: stats.errors().iter().map(|(c, n)| (c.name().to_owned(), *n)).collect(),
            statuses: stats.statuses().clone(),
            rpc_errors: stats.rpc_errors().clone(),
            policy_decisions: stats.policy_decisions().matrix(),
            finish_reasons: stats
                .finish_reasons()
                .iter()
                .map(|(reason, n)| (reason.name().to_owned(), *n))
                .collect(),
            streams: stats.streams(),
            tokens: stats.tokens(),
            distributions,
            ..Self::default()
        })
    }

    /// A rate with its bound, and whether it may be used; `None` if its divisor is zero.
    pub fn rate(&self, rate: &RateSpec) -> Option<BoundedFigure> {
        let bound = self.rate_bounds.get(rate.key).copied().unwrap_or_default();
        let refused = self.refused_rates.get(rate.key).copied();
        let interval = self.rate_intervals.get(rate.key).copied();
        Some(BoundedFigure { value: (rate.of)(&self.rates)?, bound, interval, refused })
    }

    /// [`Group::rate`] of the rate with this name, like `throughput`.
    pub fn named_rate(&self, name: &str) -> Option<BoundedFigure> {
        self.rate(RATES.iter().find(|rate| rate.name == name)?)
    }

    /// Output tokens per second of all responses with reported or counted tokens; `None` without
    /// any.
    pub fn token_rate(&self) -> Option<TokenRate> {
        let reported = self.positive_rate("output_token_rate_reported");
        let estimated = self.positive_rate("output_token_rate_estimated");
        let known = [reported, estimated].into_iter().flatten();
        let figure = known.reduce(|sum, more| BoundedFigure {
            value: sum.value + more.value,
            bound: sum.bound + more.bound,
            interval: sum.interval.zip(more.interval).map(|(a, b)| [a[0] + b[0], a[1] + b[1]]),
            refused: sum.refused.or(more.refused),
        })?;
        let is_partial = self.counters.completed_without_tokens > 0;
        Some(TokenRate { figure, is_estimated: estimated.is_some(), is_partial })
    }

    /// Whether a metric is a time per token, of answers whose tokens are counted as content events
    /// because the target reported none.
    pub fn has_estimated_tokens(&self, metric: Metric) -> bool {
        matches!(metric, Metric::Tpot | Metric::Ntpot) && self.counters.output_tokens_estimated > 0
    }

    fn positive_rate(&self, name: &str) -> Option<BoundedFigure> {
        self.named_rate(name).filter(|rate| rate.value > 0.0)
    }

    /// A distribution; `None` if it has no value.
    pub fn distribution(&self, metric: Metric) -> Option<&DistributionSummary> {
        self.distributions.get(metric.key())
    }
}

/// Reads a map whose keys are numbers. JSON keys are texts, and below a flattened struct serde
/// hands them over as such.
fn numeric_keys<'de, D: Deserializer<'de>, K: FromStr + Ord>(
    from: D,
) -> Result<BTreeMap<K, u64>, D::Error> {
    let texts: BTreeMap<String, u64> = Deserialize::deserialize(from)?;
    texts
        .into_iter()
        .map(|(key, count): (String, u64)| match key.parse() {
            Ok(number) => Ok((number, count)),
            Err(_) => Err(serde::de::Error::custom(format!("`{key}` is not a status or code"))),
        })
        .collect()
}
