//! Statistics of few values. They are computed apart from `plimsoll-metrics`, which is what the
//! calibration tests.

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

// Quantiles by nearest rank, and how many samples each needs.

/// Samples that must lie beyond a quantile, on the rarer side.
const BEYOND: f64 = 10.0;

/// Samples needed before quantile `q` is given: `ceil(10 / (1 - q))` above the median and
/// `ceil(10 / q)` below it, so that about ten samples lie beyond. With fewer, the figure is one
/// arbitrary sample of the tail.
#[expect(
    clippy::cast_possible_truncation,
    reason = "float-to-int casts saturate: q = 0 or 1 needs more samples than there can be"
)]
pub fn samples_needed(q: f64) -> u64 {
    let rarer = q.min(1.0 - q);
    // 1 - 0.999 is a little less than 0.001: without the slack, p99.9 would need 10,001 samples.
    (BEYOND / rarer * (1.0 - 1e-9)).ceil() as u64
}

/// Samples that, all lying below a value, show that quantile `q` lies below it, too: if it did not,
/// so many in a row would be rarer than 5 % (`q^n`, as of `n` samples each lies below the quantile
/// with a chance of `q`).
#[expect(
    clippy::cast_possible_truncation,
    reason = "float-to-int casts saturate: q = 1 needs more samples than there can be"
)]
pub fn samples_that_agree(q: f64) -> u64 {
    const CHANCE: f64 = 0.05;
    (CHANCE.ln() / q.ln()).ceil() as u64
}

/// The rank, from 1, of the largest of `count` independent values below which quantile `q` lies
/// with a chance of at most 2.5 %; `None` if there are too few values. For a median, it is the
/// lower end of the 95 % interval, whose upper end has the same rank from the top.
pub fn lower_rank(q: f64, count: u64) -> Option<u64> {
    // The chance that more than `beyond` of the values lie beyond the quantile.
    let (mut chance, mut more, mut beyond) = (q.powf(count as f64), 1.0, 0);
    while beyond < count {
        more -= chance;
        chance *= (count - beyond) as f64 / (beyond + 1) as f64 * (1.0 - q) / q;
        if more <= 0.025 {
            return Some(count - beyond);
        }
        beyond += 1;
    }
    None
}

/// The smallest of the ascending values that a share `q` does not exceed; `None` without values.
pub fn nearest_rank(ascending: &[f64], q: f64) -> Option<f64> {
    ascending.get(rank(q, ascending.len()).checked_sub(1)?).copied()
}

/// The nearest rank of quantile `q` among `count` values, from 1; 0 of none.
#[expect(clippy::cast_possible_truncation, reason = "between 0 and the count")]
pub fn rank(q: f64, count: usize) -> usize {
    // 99.9 / 100 is a little more than 0.999, and its rank among 1,000 values would be 1,000.
    let rank = (q.clamp(0.0, 1.0) * (1.0 - 1e-12) * count as f64).ceil() as usize;
    rank.max(1).min(count)
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

#[cfg(test)]
mod quantile_tests {
    use super::*;

    /// The ranks of the tables of order statistics (Conover, *Practical Nonparametric Statistics*).
    #[test]
    fn the_lower_end_of_an_interval_is_a_value_of_the_sample() {
        for (q, count, rank) in [
            (0.5, 5, None),
            (0.5, 6, Some(1)),
            (0.5, 8, Some(1)),
            (0.5, 9, Some(2)),
            (0.5, 12, Some(3)),
            (0.5, 19, Some(5)),
            (0.9, 1, None),
            (0.9, 50, Some(41)),
            (0.99, 1, Some(1)),
            (0.99, 500, Some(490)),
            (0.99, 0, None),
        ] {
            assert_eq!(lower_rank(q, count), rank, "q = {q}, n = {count}");
        }
    }

    #[test]
    fn ten_samples_must_lie_beyond_a_quantile() {
        for (q, needed) in [
            (0.5, 20),
            (0.9, 100),
            (0.95, 200),
            (0.99, 1_000),
            (0.999, 10_000),
            (0.9999, 100_000),
            (0.1, 100),
            (1.0, u64::MAX),
        ] {
            assert_eq!(samples_needed(q), needed, "q = {q}");
        }
    }

    #[test]
    fn quantiles_are_of_nearest_rank() {
        let values: Vec<f64> = (1..=1_000).map(f64::from).collect();
        for (q, value) in [(0.0, 1.0), (0.5, 500.0), (0.999, 999.0), (0.9991, 1_000.0), (1.0, 1e3)]
        {
            assert_eq!(nearest_rank(&values, q), Some(value), "{q}");
        }
        assert_eq!(nearest_rank(&values, 99.9 / 100.0), Some(999.0));
        assert_eq!(nearest_rank(&[], 0.5), None);
    }
}
