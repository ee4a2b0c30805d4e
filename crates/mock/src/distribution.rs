//! Probability distributions, each by its quantile function: one uniform number in, one value out.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{I64Deserializer, MapAccessDeserializer, StrDeserializer, U64Deserializer};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use statrs::distribution::{ContinuousCDF as _, Normal};

use crate::duration::HumanDuration;
use crate::rng::{Purpose, RequestRng, Rng};

/// A type of values with distributions.
pub trait Quantity: Copy + PartialOrd + fmt::Debug {
    /// Its number, in the smallest unit (nanoseconds for durations).
    fn number(self) -> f64;
}

impl Quantity for HumanDuration {
    fn number(self) -> f64 {
        self.as_nanos() as f64
    }
}

impl Quantity for u32 {
    fn number(self) -> f64 {
        f64::from(self)
    }
}

/// A probability distribution. In files a bare value is a constant: `ttft: 20ms` is
/// `ttft: {constant: 20ms}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
// `remote` turns the derived impls into plain functions, so that the impls below can accept a bare
// value as well.
#[serde(remote = "Self", rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution<T> {
    /// Always the same.
    Constant(T),
    /// Uniform between two values.
    Uniform {
        /// The smallest.
        min: T,
        /// The largest.
        max: T,
    },
    /// Normal; values below zero become zero.
    Normal {
        /// Mean.
        mean: T,
        /// Standard deviation.
        std: T,
    },
    /// Lognormal, by two of its quantiles.
    Lognormal {
        /// Half of all values are smaller.
        median: T,
        /// 95 % of all values are smaller.
        p95: T,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: T,
    },
    /// One of two values.
    Bimodal {
        /// The usual value.
        low: T,
        /// The other value.
        high: T,
        /// Share of `high`, 0 to 1.
        high_share: f64,
    },
    /// Measured quantiles, as pairs of a share and a value: linear between the points, constant
    /// beyond the first and the last.
    Quantiles(Vec<(f64, T)>),
}

impl<T: Default> Default for Distribution<T> {
    fn default() -> Self {
        Self::Constant(T::default())
    }
}

impl<T: Quantity> Distribution<T> {
    /// The quantile function: the value that a share `p` of all values does not exceed.
    pub(crate) fn quantile(&self, p: f64) -> f64 {
        match self {
            Self::Constant(value) => value.number(),
            Self::Uniform { min, max } => lerp(min.number(), max.number(), p),
            Self::Normal { mean, std } => {
                (mean.number() + standard_normal(p) * std.number()).max(0.0)
            }
            Self::Lognormal { median, p95 } => lognormal(median.number(), p95.number(), p),
            Self::Exponential { mean } => -(-p).ln_1p() * mean.number(),
            Self::Bimodal { low, high, high_share } => {
                if p > 1.0 - high_share {
                    high.number()
                } else {
                    low.number()
                }
            }
            Self::Quantiles(points) => interpolate(points, p),
        }
    }

    /// One sample. A constant, the usual case in calibration, takes no random number.
    pub(crate) fn sample(&self, rng: &mut Rng) -> f64 {
        match self {
            Self::Constant(value) => value.number(),
            _ => self.quantile(rng.uniform()),
        }
    }

    /// A rounded sample for one purpose of a request.
    pub(crate) fn draw(&self, rng: RequestRng, purpose: Purpose) -> u64 {
        round(self.sample(&mut rng.fork(purpose)))
    }

    /// The problem of an invalid distribution.
    pub(crate) fn problem(&self) -> Option<String> {
        match self {
            Self::Uniform { min, max } if min > max => {
                Some(format!("min {min:?} is above max {max:?}"))
            }
            Self::Lognormal { median, p95 } if median.number() <= 0.0 || p95 < median => {
                Some("a lognormal needs 0 < median <= p95".to_owned())
            }
            Self::Bimodal { high_share, .. } if !(0.0..=1.0).contains(high_share) => {
                Some(format!("high_share {high_share} is not a share from 0 to 1"))
            }
            Self::Quantiles(points) => quantiles_problem(points),
            _ => None,
        }
    }
}

fn quantiles_problem<T: Quantity>(points: &[(f64, T)]) -> Option<String> {
    if points.is_empty() {
        return Some("quantiles need at least one point, like [0.5, 20ms]".to_owned());
    }
    if points.iter().any(|(p, _)| !(0.0..=1.0).contains(p)) {
        return Some("the first number of a quantile is a share from 0 to 1".to_owned());
    }
    let rise = points.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1);
    (!rise).then(|| "quantiles must rise: higher shares, and values at least as large".to_owned())
}

fn lerp(from: f64, to: f64, share: f64) -> f64 {
    from + (to - from) * share
}

fn interpolate<T: Quantity>(points: &[(f64, T)], p: f64) -> f64 {
    let above = points.partition_point(|(share, _)| *share <= p);
    match (above.checked_sub(1).and_then(|i| points.get(i)), points.get(above)) {
        (Some((p0, v0)), Some((p1, v1))) => lerp(v0.number(), v1.number(), (p - p0) / (p1 - p0)),
        (Some((_, only)), None) | (None, Some((_, only))) => only.number(),
        (None, None) => 0.0,
    }
}

/// `exp(mu + sigma z)` with `mu = ln median` and `sigma = ln(p95 / median) / z(0.95)`.
fn lognormal(median: f64, p95: f64, p: f64) -> f64 {
    const Z95: f64 = 1.644_853_626_951_472_7;
    median * ((p95 / median).ln() / Z95 * standard_normal(p)).exp()
}

fn standard_normal(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

impl<T: Serialize> Serialize for Distribution<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Distribution<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DistributionVisitor(PhantomData))
    }
}

struct DistributionVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for DistributionVisitor<T> {
    type Value = Distribution<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or a distribution, like `lognormal: {median: 20ms, p95: 80ms}`")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Distribution<T>, E> {
        T::deserialize(StrDeserializer::new(text)).map(Distribution::Constant)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Distribution<T>, E> {
        T::deserialize(U64Deserializer::new(number)).map(Distribution::Constant)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Distribution<T>, E> {
        T::deserialize(I64Deserializer::new(number)).map(Distribution::Constant)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Distribution<T>, A::Error> {
        Distribution::deserialize(MapAccessDeserializer::new(map))
    }
}

/// Rounds a non-negative number. (`f64::round` calls the C library on plain x86-64, and this runs
/// for every token.)
#[expect(
    clippy::cast_possible_truncation,
    reason = "float-to-int casts saturate, and distributions give nothing below zero"
)]
pub(crate) fn round(number: f64) -> u64 {
    (number + 0.5) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(millis: u64) -> HumanDuration {
        HumanDuration::from_millis(millis)
    }

    #[test]
    fn normal_quantiles_match_the_tables() {
        for (p, z) in [
            (0.5, 0.0),
            (0.841_344_746_068_543, 1.0),
            (0.95, 1.644_853_626_951_472_7),
            (0.975, 1.959_963_984_540_054),
            (0.99, 2.326_347_874_040_841),
            (0.999, 3.090_232_306_167_813_5),
            (0.01, -2.326_347_874_040_841),
            (0.000_01, -4.264_890_793_922_825),
        ] {
            assert!(
                (standard_normal(p) - z).abs() < 1e-8,
                "p {p}: {} and not {z}",
                standard_normal(p)
            );
        }
    }

    #[test]
    fn each_distribution_has_the_quantiles_of_its_definition() {
        let fitted = Distribution::Quantiles(vec![(0.5, ms(10)), (0.9, ms(50)), (0.99, ms(140))]);
        let bimodal = Distribution::Bimodal { low: ms(1), high: ms(200), high_share: 0.01 };
        for (distribution, p, millis) in [
            (Distribution::Constant(ms(20)), 0.3, 20.0),
            (Distribution::Uniform { min: ms(10), max: ms(20) }, 0.25, 12.5),
            (Distribution::Normal { mean: ms(100), std: ms(10) }, 0.975, 119.599_639_845_400_54),
            (Distribution::Normal { mean: ms(10), std: ms(10) }, 0.01, 0.0),
            (Distribution::Lognormal { median: ms(20), p95: ms(80) }, 0.5, 20.0),
            (Distribution::Lognormal { median: ms(20), p95: ms(80) }, 0.95, 80.0),
            // sigma = ln 4 / 1.644854 = 0.842807, and 20 exp(0.842807 * 2.326348) = 142.0806.
            (Distribution::Lognormal { median: ms(20), p95: ms(80) }, 0.99, 142.080_648_5),
            (Distribution::Exponential { mean: ms(10) }, 0.5, 6.931_471_805_599_453),
            (Distribution::Exponential { mean: ms(10) }, 0.99, 46.051_701_859_880_91),
            (bimodal.clone(), 0.98, 1.0),
            (bimodal, 0.995, 200.0),
            (fitted.clone(), 0.2, 10.0),
            (fitted.clone(), 0.5, 10.0),
            (fitted.clone(), 0.7, 30.0),
            (fitted.clone(), 0.9, 50.0),
            (fitted.clone(), 0.945, 95.0),
            (fitted, 0.999, 140.0),
        ] {
            let value = distribution.quantile(p) / 1e6;
            assert!(
                (value - millis).abs() < 1e-3,
                "{distribution:?} at {p}: {value} and not {millis}"
            );
        }
    }

    #[test]
    fn samples_follow_the_given_quantiles() {
        let distribution =
            Distribution::Quantiles(vec![(0.1, ms(5)), (0.5, ms(10)), (0.9, ms(50))]);
        let mut rng = RequestRng::new(3, None, 0).fork(Purpose::Gap);
        let samples: Vec<f64> = (0..50_000).map(|_| distribution.sample(&mut rng)).collect();
        for (limit, share) in [(5.0, 0.1), (7.5, 0.3), (10.0, 0.5), (30.0, 0.7), (50.0, 1.0)] {
            let found = share_below(limit, &samples);
            assert!((found - share).abs() < 0.01, "{found} of the samples are below {limit} ms");
        }
    }

    fn share_below(limit: f64, samples: &[f64]) -> f64 {
        samples.iter().filter(|value| **value <= limit * 1e6).count() as f64 / samples.len() as f64
    }

    #[test]
    fn distributions_are_read_from_files() {
        let read = |text: &str| serde_saphyr::from_str::<Distribution<HumanDuration>>(text);
        assert_eq!(read("20ms").unwrap(), Distribution::Constant(ms(20)));
        assert_eq!(read("0").unwrap(), Distribution::Constant(HumanDuration::ZERO));
        assert_eq!(read("constant: 20ms").unwrap(), Distribution::Constant(ms(20)));
        assert_eq!(
            read("{lognormal: {median: 20ms, p95: 80ms}}").unwrap(),
            Distribution::Lognormal { median: ms(20), p95: ms(80) }
        );
        assert_eq!(
            read("quantiles: [[0.5, 10ms], [0.99, 50ms]]").unwrap(),
            Distribution::Quantiles(vec![(0.5, ms(10)), (0.99, ms(50))])
        );
        assert_eq!(
            serde_saphyr::from_str::<Distribution<u32>>("64").unwrap(),
            Distribution::Constant(64)
        );
        for wrong in ["20", "{pareto: {mean: 1ms}}", "{normal: {mean: 1ms, sd: 1ms}}", "[1ms]"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let text = serde_json::to_string(&Distribution::Exponential { mean: ms(3) }).unwrap();
        assert_eq!(read(&text).unwrap(), Distribution::Exponential { mean: ms(3) });
    }

    #[test]
    fn invalid_distributions_are_refused() {
        for distribution in [
            Distribution::Uniform { min: ms(2), max: ms(1) },
            Distribution::Lognormal { median: ms(0), p95: ms(1) },
            Distribution::Lognormal { median: ms(2), p95: ms(1) },
            Distribution::Bimodal { low: ms(1), high: ms(2), high_share: 1.5 },
            Distribution::Quantiles(vec![]),
            Distribution::Quantiles(vec![(0.5, ms(2)), (0.5, ms(3))]),
            Distribution::Quantiles(vec![(0.5, ms(2)), (0.6, ms(1))]),
            Distribution::Quantiles(vec![(50.0, ms(2))]),
        ] {
            assert!(distribution.problem().is_some(), "{distribution:?}");
        }
        assert_eq!(Distribution::Quantiles(vec![(0.5, ms(2)), (0.6, ms(2))]).problem(), None);
    }

    proptest! {
        #[test]
        fn quantile_functions_never_decrease(a in 0.0001f64..0.9999, b in 0.0001f64..0.9999) {
            let (low, high) = (a.min(b), a.max(b));
            for distribution in [
                Distribution::Uniform { min: ms(1), max: ms(9) },
                Distribution::Normal { mean: ms(5), std: ms(3) },
                Distribution::Lognormal { median: ms(5), p95: ms(9) },
                Distribution::Exponential { mean: ms(5) },
                Distribution::Bimodal { low: ms(1), high: ms(9), high_share: 0.1 },
                Distribution::Quantiles(vec![(0.2, ms(1)), (0.7, ms(4)), (0.9, ms(4)), (0.95, ms(7))]),
            ] {
                prop_assert!(distribution.quantile(low) <= distribution.quantile(high) && distribution.quantile(low) >= 0.0, "{:?}", distribution);
            }
        }
    }
}
