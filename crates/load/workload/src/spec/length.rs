//! Lengths in tokens that are fixed or drawn from a distribution.

use std::collections::BTreeMap;

use plimsoll_measure::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::MAX_TOKENS;

/// The standard normal distribution's 95th percentile.
const Z95: f64 = 1.644_853_626_951_472_2;

/// A length in tokens: a number, or a distribution from which one is drawn each time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number of tokens, or a distribution like `{mean: 550}`")]
pub enum LengthSpec {
    /// A fixed length.
    Fixed(u32),
    /// A random length for each use.
    Drawn(Box<LengthDistribution>),
}

/// A distribution of lengths: `{mean, stddev}`, `{lognormal: {median, p95}}`, `{histogram: {"128":
/// 3, "512": 1}}`, or `{min, max}` alone for an even one. `min` and `max` bound all of them.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LengthDistribution {
    /// Mean of a normal distribution.
    #[schemars(range(min = 0))]
    pub mean: Option<f64>,
    /// Its standard deviation.
    #[schemars(range(min = 0))]
    pub stddev: Option<f64>,
    /// Lognormal, given by two of its quantiles.
    pub lognormal: Option<LognormalLength>,
    /// Lengths and how often each is drawn, relative to the others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub histogram: BTreeMap<String, f64>,
    /// Minimum.
    pub min: Option<u32>,
    /// Maximum.
    pub max: Option<u32>,
}

/// A lognormal distribution of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LognormalLength {
    /// Half of all lengths are less.
    #[schemars(range(min = 0))]
    pub median: f64,
    /// 95 % of all lengths are less.
    #[schemars(range(min = 0))]
    pub p95: f64,
}

impl LengthSpec {
    /// The problem of the distribution, with the fix.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let Self::Drawn(drawn) = self else { return None };
        let LengthDistribution { mean, stddev, lognormal, histogram, min, max } = &**drawn;
        let kinds = usize::from(mean.is_some())
            + usize::from(lognormal.is_some())
            + usize::from(!histogram.is_empty());
        let numbers = mean.iter().chain(stddev).all(|number| number.is_finite() && *number >= 0.0);
        let even = min.is_some() && max.is_some();
        let weights = histogram.iter().all(|(length, weight)| {
            length.parse::<u32>().is_ok_and(|length| length <= MAX_TOKENS)
                && weight.is_finite()
                && *weight >= 0.0
        });
        let total: f64 = histogram.values().sum();
        let (least, most) = (min.unwrap_or(1), max.unwrap_or(MAX_TOKENS));
        if kinds > 1 {
            Some(
                "several distributions are given: write one of `mean` with `stddev`, `lognormal` and `histogram`",
            )
        } else if kinds == 0 && !even {
            Some(
                "no distribution is given: write `mean` with `stddev`, `lognormal`, `histogram`, or `min` and `max`",
            )
        } else if !numbers || (stddev.is_some() && mean.is_none()) {
            Some("`stddev` needs a `mean`: write both, as numbers of 0 or more")
        } else if lognormal.is_some_and(|of| !(of.median > 0.0 && of.p95 >= of.median)) {
            Some("the quantiles are not in order: write 0 < `median` <= `p95`")
        } else if !weights || (!histogram.is_empty() && total <= 0.0) {
            Some(
                "the histogram needs whole numbers of tokens with weights of 0 or more: write it like `{\"128\": 3, \"512\": 1}`",
            )
        } else if least == 0 || least > most || most > MAX_TOKENS {
            Some("the bounds are out of range: write 1 <= `min` <= `max` <= 10000000")
        } else {
            None
        }
    }

    /// Draws a length; an invalid distribution yields the minimum.
    pub(crate) fn sample(&self, rng: &mut Rng) -> u32 {
        let drawn = match self {
            Self::Fixed(length) => return *length,
            Self::Drawn(drawn) => drawn,
        };
        let (least, most) = (drawn.min.unwrap_or(1), drawn.max.unwrap_or(MAX_TOKENS));
        let length = if let Some(mean) = drawn.mean {
            mean + drawn.stddev.unwrap_or(0.0) * rng.normal()
        } else if let Some(LognormalLength { median, p95 }) = drawn.lognormal {
            let sigma = (p95 / median).ln() / Z95;
            median * (sigma * rng.normal()).exp()
        } else if drawn.histogram.is_empty() {
            let lengths = u64::from(most.saturating_sub(least)) + 1;
            f64::from(least) + rng.below(lengths) as f64
        } else {
            of_histogram(&drawn.histogram, rng.uniform())
        };
        rounded(length).clamp(least.min(most), most)
    }
}

/// The length at this share of all weights.
fn of_histogram(histogram: &BTreeMap<String, f64>, share: f64) -> f64 {
    let total: f64 = histogram.values().sum();
    let mut left = share * total;
    let mut last = 0.0;
    for (length, weight) in histogram {
        last = length.parse().unwrap_or(last);
        left -= weight;
        if left < 0.0 {
            return last;
        }
    }
    last
}

#[expect(clippy::cast_possible_truncation, reason = "saturates")]
fn rounded(length: f64) -> u32 {
    length.round() as u32
}

#[cfg(test)]
mod tests {
    use plimsoll_measure::Seed;

    use super::*;

    fn read(json: &str) -> LengthSpec {
        serde_json::from_str(json).unwrap()
    }

    fn lengths(json: &str) -> Vec<f64> {
        let spec = read(json);
        assert_eq!(spec.fault(), None, "{json}");
        let draw = |index| f64::from(spec.sample(&mut Seed(5).rng("length", index)));
        let mut lengths: Vec<_> = (0..20_000).map(draw).collect();
        lengths.sort_by(f64::total_cmp);
        lengths
    }

    fn mean(lengths: &[f64]) -> f64 {
        lengths.iter().sum::<f64>() / lengths.len() as f64
    }

    #[test]
    fn lengths_have_the_moments_and_quantiles_of_their_distribution() {
        let normal = lengths(r#"{"mean": 500, "stddev": 50}"#);
        let spread: Vec<_> = normal.iter().map(|x| (x - 500.0).powi(2)).collect();
        assert!((mean(&normal) - 500.0).abs() < 2.0 && (mean(&spread).sqrt() - 50.0).abs() < 1.5);
        let lognormal = lengths(r#"{"lognormal": {"median": 100, "p95": 1000}}"#);
        assert!((lognormal[10_000] - 100.0).abs() < 6.0, "{}", lognormal[10_000]);
        assert!((lognormal[19_000] - 1_000.0).abs() < 80.0, "{}", lognormal[19_000]);
        let even = lengths(r#"{"min": 10, "max": 20}"#);
        assert_eq!((even[0], even[19_999]), (10.0, 20.0));
        assert!((mean(&even) - 15.0).abs() < 0.1);
        let bounded = lengths(r#"{"mean": 5, "stddev": 50, "max": 30}"#);
        assert_eq!((bounded[0], bounded[19_999]), (1.0, 30.0));
        let histogram = lengths(r#"{"histogram": {"128": 3, "512": 1, "9": 0}}"#);
        let short = histogram.iter().filter(|length| (**length - 128.0).abs() < 0.5).count();
        assert!(histogram.iter().all(|length| [128.0, 512.0].contains(length)));
        assert!((14_700..15_300).contains(&short), "{short}");
        assert!(lengths("7").iter().all(|length| (length - 7.0).abs() < 0.5));
    }

    #[test]
    fn what_is_no_distribution_says_how_to_write_one() {
        for (json, part) in [
            ("{}", "no distribution"),
            (r#"{"min": 5}"#, "no distribution"),
            (r#"{"stddev": 5, "histogram": {"5": 1}}"#, "`stddev` needs a `mean`"),
            (r#"{"mean": 5, "histogram": {"5": 1}}"#, "several distributions"),
            (r#"{"lognormal": {"median": 9, "p95": 5}}"#, "not in order"),
            (r#"{"histogram": {"many": 1}}"#, "whole numbers"),
            (r#"{"histogram": {"5": 0}}"#, "whole numbers"),
            (r#"{"mean": 5, "min": 9, "max": 3}"#, "out of range"),
        ] {
            let fault = read(json).fault().unwrap_or_default();
            assert!(fault.contains(part) && fault.contains("write"), "{json}: {fault}");
        }
    }

    #[test]
    fn a_number_is_written_as_one() {
        for json in ["550", r#"{"mean":550.0,"stddev":10.0}"#] {
            assert_eq!(serde_json::to_string(&read(json)).unwrap(), json);
        }
    }
}
