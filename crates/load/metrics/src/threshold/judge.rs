//! Judges thresholds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Aggregate, Threshold};
use crate::catalog::{Figure, Metric, Unit};
use crate::error::MetricsError;
use crate::quantile::samples_needed;
use crate::results::{DistributionSummary, Group, Results};

/// The judgement on a threshold. It has three states, because missing data is never a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", content = "why", rename_all = "snake_case")]
pub enum Judgement {
    /// The bound was kept.
    Pass,
    /// It was broken.
    Fail,
    /// It could not be judged, for this reason.
    Inconclusive(String),
}

/// A threshold with its judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThresholdResult {
    /// The metric, with its scope, as written.
    pub metric: String,
    /// The bound, as written.
    pub expression: String,
    /// The measured value, times in milliseconds.
    pub measured: Option<f64>,
    /// Its unit.
    pub unit: Unit,
    /// The judgement.
    pub judgement: Judgement,
}

impl Threshold {
    /// Judges a run.
    pub fn judge(&self, results: &Results) -> ThresholdResult {
        let measured = self.measure(results);
        let judgement = match &measured {
            Ok(value) if self.comparison.holds(*value, self.bound) => Judgement::Pass,
            Ok(_) => Judgement::Fail,
            Err(why) => Judgement::Inconclusive(why.clone()),
        };
        ThresholdResult {
            metric: self.metric.clone(),
            expression: self.expression.clone(),
            measured: measured.ok(),
            unit: self.unit(),
            judgement,
        }
    }

    /// The bounded value, or why there is none.
    pub(super) fn measure(&self, results: &Results) -> Result<f64, String> {
        let group =
            results.group(&self.scope).ok_or_else(|| "no such group in the run".to_owned())?;
        if group.counters.scheduled == 0 {
            return Err("nothing was scheduled".to_owned());
        }
        match self.figure {
            Figure::Distribution(metric) => self.measure_times(group, metric),
            Figure::Counter(counter) => Ok((counter.of)(&group.counters) as f64),
            Figure::Rate(rate) => (rate.of)(&group.rates).ok_or_else(|| match rate.unit {
                Unit::Share => "nothing was counted that it is a share of".to_owned(),
                _ => "the stage had no duration".to_owned(),
            }),
        }
    }

    fn measure_times(&self, group: &Group, metric: Metric) -> Result<f64, String> {
        let times = group
            .distribution(metric)
            .ok_or_else(|| format!("no value ({} requests)", metric.population().words()))?;
        match self.aggregate {
            Aggregate::Quantile(q) => quantile(times, q),
            Aggregate::Mean => Ok(times.mean),
            Aggregate::Min => Ok(times.min),
            Aggregate::Max => Ok(times.max),
            Aggregate::Count | Aggregate::Value => Ok(times.count as f64),
        }
    }
}

fn quantile(times: &DistributionSummary, q: f64) -> Result<f64, String> {
    let needed = samples_needed(q);
    let distribution = times.restore().map_err(|error: MetricsError| error.to_string())?;
    let value = distribution.quantile(q);
    value.map(plimsoll_measure::Nanos::as_millis_f64).ok_or_else(|| {
        format!("{} samples are too few for this percentile, which needs {needed}", times.count)
    })
}
