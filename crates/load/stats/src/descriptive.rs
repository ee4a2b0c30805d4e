//! Statistics of few values. They are computed apart from `plimsoll-metrics`, which is what the
//! calibration tests.

use crate::quantile::nearest_rank;

/// The value of nearest rank in ascending values: the smallest that a share `q` does not exceed.
/// Not a number without values.
pub fn quantile(ascending: &[f64], q: f64) -> f64 {
    nearest_rank(ascending, q).unwrap_or(f64::NAN)
}

/// The values in ascending order.
pub fn ascending(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// [`quantile`] of values in any order.
pub fn quantile_of(values: &[f64], q: f64) -> f64 {
    quantile(&ascending(values.to_vec()), q)
}

/// The middle value, or the mean of the two in the middle; `None` without values or where one is
/// not a number.
pub fn median(values: &[f64]) -> Option<f64> {
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let values = ascending(values.to_vec());
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get((values.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// Arithmetic mean; not a number without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The variance of the population that the values were drawn from (divided by n - 1); `None` below
/// two values.
pub fn variance(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    Some(sum_of_squares(values) / (values.len() - 1) as f64)
}

/// The sum of squared distances from the mean.
pub(crate) fn sum_of_squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Median and extremes of a few values: of three passes nothing more can be said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Smallest.
    pub low: f64,
    /// Median.
    pub median: f64,
    /// Largest.
    pub high: f64,
    /// Number of values.
    pub count: usize,
}

impl Spread {
    /// Computes the statistics of some values; `None` under the same conditions as [`median`].
    pub fn from_values(values: &[f64]) -> Option<Self> {
        Some(Self {
            low: values.iter().copied().reduce(f64::min)?,
            median: median(values)?,
            high: values.iter().copied().reduce(f64::max)?,
            count: values.len(),
        })
    }

    /// Half the range over the median.
    pub fn relative(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.median
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_nearest_rank() {
        let values: Vec<f64> = (1..=1_000).map(f64::from).collect();
        for (q, value) in [
            (0.0, 1.0),
            (0.5, 500.0),
            (0.99, 990.0),
            (0.999, 999.0),
            (0.9991, 1_000.0),
            (1.0, 1_000.0),
        ] {
            assert!((quantile(&values, q) - value).abs() < 1e-12, "{q}");
        }
        assert!(quantile(&[], 0.5).is_nan());
        // For an even count this is the lower middle value, unlike the median.
        assert_eq!(quantile_of(&[9.0, 1.0, 3.0, 5.0], 0.5).to_bits(), 3.0_f64.to_bits());
    }

    #[test]
    fn the_median_is_in_the_middle() {
        for (values, expected) in [
            (&[][..], None),
            (&[4.0], Some(4.0)),
            (&[4.0, 1.0], Some(2.5)),
            (&[9.0, 1.0, 3.0], Some(3.0)),
            (&[9.0, f64::NAN], None),
        ] {
            assert_eq!(median(values), expected, "{values:?}");
        }
    }

    #[test]
    fn a_mean_is_the_sum_over_the_count() {
        assert!((mean(&[2.0, 4.0, 9.0]) - 5.0).abs() < 1e-12);
        assert!(mean(&[]).is_nan());
    }

    #[test]
    fn a_spread_has_extremes_around_its_median() {
        let spread = Spread::from_values(&[110.0, 100.0, 80.0]).unwrap();
        assert_eq!((spread.low, spread.median, spread.high), (80.0, 100.0, 110.0));
        assert_eq!(spread.count, 3);
        assert!((spread.relative() - 0.15).abs() < 1e-12);
        assert_eq!(Spread::from_values(&[]), None);
    }
}
