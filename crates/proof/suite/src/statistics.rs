//! Medians and spreads of few values.

/// The middle value, or the mean of the two in the middle; `None` without values or where one is not a number.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get((values.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// Median and extremes of a few passes: with three of them nothing more can be said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// Smallest.
    pub(crate) low: f64,
    /// Median.
    pub(crate) median: f64,
    /// Largest.
    pub(crate) high: f64,
    /// Number of values.
    pub(crate) count: usize,
}

impl Spread {
    /// Of some values; `None` without any.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            low: values.iter().copied().reduce(f64::min)?,
            median: median(values)?,
            high: values.iter().copied().reduce(f64::max)?,
            count: values.len(),
        })
    }

    /// Half the range over the median.
    pub(crate) fn relative(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.median
    }

    /// Does the range have zero in it?
    pub(crate) fn spans_zero(&self) -> bool {
        self.low <= 0.0 && self.high >= 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_spread_has_extremes_around_its_median() {
        let spread = Spread::of(&[110.0, 100.0, 80.0]).unwrap();
        assert_eq!((spread.low, spread.median, spread.high), (80.0, 100.0, 110.0));
        assert!((spread.relative() - 0.15).abs() < 1e-12);
        assert!(!spread.spans_zero());
        assert!(Spread::of(&[-1.0, 2.0]).unwrap().spans_zero());
        assert_eq!(Spread::of(&[]), None);
    }
}
