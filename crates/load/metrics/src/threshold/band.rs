//! Bounds in three bands: target, degraded, critical.

use plimsoll_stats::samples_needed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Comparison, Threshold};
use crate::bounded_figure::BoundedFigure;
use crate::catalog::Unit;
use crate::error::MetricsError;
use crate::results::Results;

/// A metric with two bounds, written as a threshold with a second bound after a bar:
/// `p(95)<10ms|20ms`.
///
/// A value that keeps the first bound is on target, one that keeps only the second is degraded, any
/// other is critical. The second bound may have another comparison: `rate>=10%|>0%`.
#[derive(Clone, Debug)]
pub struct Band {
    expression: String,
    target: Threshold,
    degraded: Threshold,
}

/// The level that a value reaches in a band.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", content = "why", rename_all = "snake_case")]
pub enum BandLevel {
    /// The first bound was kept.
    Target,
    /// Only the second bound was kept.
    Degraded,
    /// Neither bound was kept.
    Critical,
    /// It could not be judged, for this reason.
    Inconclusive(String),
}

/// A band with the level that the run reached in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BandResult {
    /// The metric, with its scope, as written.
    pub metric: String,
    /// Both bounds, as written.
    pub expression: String,
    /// The measured value, times in milliseconds.
    pub measured: Option<f64>,
    /// Its unit.
    pub unit: Unit,
    /// The level that it reaches.
    pub level: BandLevel,
}

fn refused(expression: &str, cause: &'static str) -> MetricsError {
    MetricsError::Band { expression: expression.trim().to_owned(), cause }
}

impl Band {
    /// Reads two bounds, like `response_time` and `p(95)<10ms|20ms`.
    ///
    /// # Errors
    /// Those of [`Threshold::parse`], and [`MetricsError::Band`] if the second bound is missing or
    /// not wider than the first.
    pub fn parse(metric: &str, expression: &str) -> Result<Self, MetricsError> {
        let (first, second) = expression
            .split_once('|')
            .ok_or_else(|| refused(expression, "there is no second bound in it"))?;
        let target = Threshold::parse(metric, first)?;
        let second = second.trim();
        let start = first.find(['<', '>', '=']).unwrap_or(first.len());
        let sign = first[start..].trim_end_matches(|c| !matches!(c, '<' | '>' | '='));
        let sign = if second.starts_with(['<', '>', '=']) { "" } else { sign };
        let degraded = Threshold::parse(metric, &format!("{}{sign}{second}", &first[..start]))?;
        if !target.lies_within(&degraded) {
            return Err(refused(expression, "the second bound is not wider than the first"));
        }
        Ok(Self { expression: expression.trim().to_owned(), target, degraded })
    }

    /// The first of the two bounds, which is about the same figure and scope as the second.
    pub const fn target(&self) -> &Threshold {
        &self.target
    }

    /// Judges a run.
    pub fn judge(&self, results: &Results) -> BandResult {
        let figure = self.measure(results);
        let measured = figure.as_ref().map(|figure| figure.value).map_err(Clone::clone);
        let level = match &figure {
            Err(why) => BandLevel::Inconclusive(why.clone()),
            Ok(figure) => {
                let [low, high] = figure.limits(self.target.bias()).map(|value| self.level(value));
                if low == high {
                    low
                } else {
                    BandLevel::Inconclusive(self.target.undecided(figure))
                }
            }
        };
        BandResult {
            metric: self.target.metric.clone(),
            expression: self.expression.clone(),
            measured: measured.ok(),
            unit: self.target.unit(),
            level,
        }
    }

    /// The level of a value.
    fn level(&self, value: f64) -> BandLevel {
        if self.target.holds(value) {
            BandLevel::Target
        } else if self.degraded.holds(value) {
            BandLevel::Degraded
        } else {
            BandLevel::Critical
        }
    }

    /// The value, if there are at least as many requests as a median needs.
    fn measure(&self, results: &Results) -> Result<BoundedFigure, String> {
        let value = self.target.measure(results)?;
        let group = results.group(&self.target.scope);
        let scheduled = group.map_or(0, |group| group.counters.scheduled);
        let needed = samples_needed(0.5);
        if scheduled < needed {
            return Err(format!("{scheduled} requests are too few, a band needs {needed}"));
        }
        Ok(value)
    }
}

impl Threshold {
    /// Whether a value keeps the bound.
    fn holds(&self, value: f64) -> bool {
        self.comparison.holds(value, self.bound)
    }

    /// Whether both bounds limit the same side, and every value that keeps this one keeps the
    /// other.
    fn lies_within(&self, other: &Self) -> bool {
        use Comparison::{AtLeast, AtMost, Greater, Less};
        match (self.comparison, other.comparison) {
            (AtMost, Less) => self.bound < other.bound,
            (Less | AtMost, Less | AtMost) => self.bound <= other.bound,
            (AtLeast, Greater) => self.bound > other.bound,
            (Greater | AtLeast, Greater | AtLeast) => self.bound >= other.bound,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_bounds_are_read_in_every_form() {
        for (metric, expression, values) in [
            ("response_time", "p(95)<10ms|20ms", [9.9, 10.0, 20.0]),
            ("response_time", " p(50) <= 3ms | 5ms ", [3.0, 3.1, 5.1]),
            ("error_rate", "<=0|0.1%", [0.0, 0.001, 0.0011]),
            ("throughput", ">=1000|500", [1_000.0, 500.0, 499.0]),
            ("block_rate", "rate>=10%|>0%", [0.1, 0.01, 0.0]),
        ] {
            let band = Band::parse(metric, expression).unwrap();
            let expected = [(true, true), (false, true), (false, false)];
            assert_eq!(
                values.map(|value| (band.target.holds(value), band.degraded.holds(value))),
                expected,
                "{metric} {expression}"
            );
        }
    }

    #[test]
    fn bounds_that_make_no_bands_are_refused_with_the_fix() {
        for (expression, says) in [
            ("p(95)<10ms", "no second bound"),
            ("p(95)<20ms|10ms", "not wider"),
            ("p(95)<10ms|>20ms", "not wider"),
            ("p(95)==10ms|20ms", "not wider"),
            ("p(95)<=10ms|<10ms", "not wider"),
            ("p(95)<10ms|20%", "measured in time"),
            ("<10ms|20ms", "does not say which value"),
        ] {
            let error = Band::parse("response_time", expression).unwrap_err().to_string();
            assert!(error.contains(says), "{expression}: {error}");
        }
    }
}
