//! Limits on measured figures.

use serde::{Deserialize, Serialize};

/// A limit on a measured figure. A figure that is not a number keeps no bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// It must not differ from the truth by more than the tolerance.
    Within {
        /// The true value.
        truth: f64,
        /// The largest difference.
        tolerance: f64,
    },
    /// It must be smaller.
    Below(f64),
    /// It must not be larger.
    AtMost(f64),
    /// It must not be smaller.
    AtLeast(f64),
}

impl Bound {
    /// Whether a figure keeps the bound.
    pub fn holds(&self, measured: f64) -> bool {
        match *self {
            Self::Within { truth, tolerance } => (measured - truth).abs() <= tolerance,
            Self::Below(limit) => measured < limit,
            Self::AtMost(limit) => measured <= limit,
            Self::AtLeast(limit) => measured >= limit,
        }
    }

    /// The share of the bound that a figure uses up, to find the figure nearest to breaking: above
    /// 1 for a broken bound, and infinite for a NaN.
    pub fn usage(&self, measured: f64) -> f64 {
        let (part, whole) = match *self {
            Self::Within { truth, tolerance } => ((measured - truth).abs(), tolerance),
            Self::Below(limit) | Self::AtMost(limit) => (measured, limit),
            Self::AtLeast(limit) => (limit, measured),
        };
        let usage = if whole > 0.0 { part / whole } else { 0.0 };
        match (self.holds(measured), measured.is_nan()) {
            (_, true) => f64::INFINITY,
            (true, _) => usage.min(1.0),
            (false, _) if whole > 0.0 => usage,
            // A bound without width, such as an exact count, is only just broken.
            (false, _) => 1.0 + f64::EPSILON,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;

    const WITHIN: Bound = Bound::Within { truth: 100.0, tolerance: 10.0 };

    #[test]
    fn each_bound_holds_or_not_at_its_edge() {
        for (bound, below, on, above) in [
            (Bound::Below(2.0), true, false, false),
            (Bound::AtMost(2.0), true, true, false),
            (Bound::AtLeast(2.0), false, true, true),
            (Bound::Within { truth: 2.0, tolerance: 0.0 }, false, true, false),
        ] {
            assert_eq!([1.0, 2.0, 3.0].map(|value| bound.holds(value)), [below, on, above]);
            assert!(!bound.holds(f64::NAN), "{bound:?}");
        }
        assert!(WITHIN.holds(90.0) && WITHIN.holds(110.0) && !WITHIN.holds(110.1));
    }

    #[test]
    fn usage_ranks_figures_by_how_near_they_are_to_breaking() {
        for (bound, measured, usage) in [
            (WITHIN, 105.0, 0.5),
            (WITHIN, 90.0, 1.0),
            (WITHIN, 130.0, 3.0),
            (Bound::AtMost(4.0), 1.0, 0.25),
            (Bound::AtLeast(4.0), 8.0, 0.5),
            (Bound::AtLeast(4.0), 2.0, 2.0),
            (Bound::AtMost(0.0), 0.0, 0.0),
            (Bound::AtMost(0.0), 1.0, 1.0 + f64::EPSILON),
            (WITHIN, f64::NAN, f64::INFINITY),
        ] {
            assert_eq!(bound.usage(measured).total_cmp(&usage), Ordering::Equal, "{bound:?}");
        }
    }
}
