//! Intervals, estimates, and reasons for a missing interval.

/// Batches that an interval needs in every stage, if they are of equal size; unequal ones count for
/// less. With fewer, the variance between batches is hardly known: at 7 degrees of freedom
/// Student's t is 2.4, at 3 it is 3.2.
pub const BATCHES_NEEDED: u32 = 8;

/// A range of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether `value` lies in it, the ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Half of its width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// An estimate with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its interval.
    pub interval: Interval,
    /// Batches that it was computed from.
    pub batches: u64,
    /// Degrees of freedom of its variance.
    pub degrees_of_freedom: f64,
    /// The number of independent values, or pairs, that would give the same interval.
    pub effective: f64,
    /// Two-sided p value of "the true value is 0".
    pub p_zero: f64,
}

/// The reason why a figure has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoIntervalReason {
    /// Too few samples for the figure itself: their number, and the number that it needs.
    TooFewSamples(u64, u64),
    /// The order in time of the samples is not known.
    UnknownOrder,
    /// Fewer than [`BATCHES_NEEDED`] batches of a stage.
    TooFewBatches,
    /// The interval would reach beyond the smallest or the largest value.
    BeyondExtremes,
}

impl NoIntervalReason {
    /// The reason in words.
    pub fn words(self) -> String {
        match self {
            Self::TooFewSamples(count, needed) => {
                format!("{count} samples are too few: {needed} are needed")
            }
            Self::UnknownOrder => "the order in time of the samples is not known".to_owned(),
            Self::TooFewBatches => format!(
                "a stage is too short: an interval needs {BATCHES_NEEDED} batches of a second or more"
            ),
            Self::BeyondExtremes => {
                "too few independent samples: the interval would reach beyond the extreme values"
                    .to_owned()
            }
        }
    }
}
