//! A comparison with a value, judged at the limits of a figure.

use plimsoll_measure::Nanos;
use plimsoll_stats::normal::{NORMAL_95, quantile};

use crate::catalog::Unit;

/// How a value compares with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
    /// `==`, for counters.
    Equal,
}

impl Comparison {
    /// The longest come first: `<=` must not be read as `<`.
    pub(super) const ALL: [Self; 5] =
        [Self::AtMost, Self::AtLeast, Self::Equal, Self::Less, Self::Greater];

    /// Its sign.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
            Self::Equal => "==",
        }
    }

    /// Whether it limits from above.
    pub const fn is_upper(self) -> bool {
        matches!(self, Self::Less | Self::AtMost)
    }
}

/// A comparison with a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The comparison.
    pub comparison: Comparison,
    /// The value, times in milliseconds.
    pub value: f64,
}

impl Bound {
    /// A bound.
    pub const fn new(comparison: Comparison, value: f64) -> Self {
        Self { comparison, value }
    }

    /// Whether one value keeps it.
    #[expect(clippy::float_cmp, reason = "`==` is for counters, which are whole")]
    pub const fn holds(self, measured: f64) -> bool {
        match self.comparison {
            Comparison::Less => measured < self.value,
            Comparison::AtMost => measured <= self.value,
            Comparison::Greater => measured > self.value,
            Comparison::AtLeast => measured >= self.value,
            Comparison::Equal => measured == self.value,
        }
    }

    /// Whether it is kept by a figure that lies between two ends: `Some(true)` if every value
    /// between them keeps it, `Some(false)` if none does.
    pub fn decides(self, [low, high]: [f64; 2]) -> Option<bool> {
        if low.is_nan() || high.is_nan() {
            return None;
        }
        match [low, high].map(|end| self.holds(end)) {
            [true, true] => Some(true),
            [false, false] => {
                let is_between =
                    self.comparison == Comparison::Equal && low <= self.value && self.value <= high;
                (!is_between).then_some(false)
            }
            _ => None,
        }
    }

    /// [`Bound::decides`] by the ends at 95 %, and by those at a level for `among` limits: to pass,
    /// all limits must be kept, which needs no adjustment (Berger, 1982); to fail, one of them is
    /// enough, so that each fails at 5 % divided by their number.
    pub fn judge(self, ends: impl Fn(usize) -> [f64; 2], among: usize) -> Option<bool> {
        match self.decides(ends(1)) {
            Some(true) => Some(true),
            _ => self.decides(ends(among)).filter(|kept| !kept),
        }
    }

    /// Whether every value that keeps this bound keeps the other one, on the same side.
    pub(super) fn lies_within(self, other: Self) -> bool {
        use Comparison::{AtLeast, AtMost, Greater, Less};
        match (self.comparison, other.comparison) {
            (AtMost, Less) => self.value < other.value,
            (Less | AtMost, Less | AtMost) => self.value <= other.value,
            (AtLeast, Greater) => self.value > other.value,
            (Greater | AtLeast, Greater | AtLeast) => self.value >= other.value,
            _ => false,
        }
    }

    /// `<500ms`, `>=99%`.
    pub(super) fn written(self, unit: Unit) -> String {
        let value = match unit {
            Unit::Time => Nanos::from_secs_f64(self.value / 1e3).to_string(),
            Unit::Share => format!("{}%", (self.value * 1e8).round() / 1e6),
            _ => self.value.to_string(),
        };
        format!("{}{value}", self.comparison.sign())
    }
}

/// The ends of a 95 % interval around a value at 5 % divided by `among`, as far as they are normal.
pub fn widened(value: f64, [low, high]: [f64; 2], among: usize) -> [f64; 2] {
    let factor = -quantile(0.025 / among.max(1) as f64) / NORMAL_95;
    [value - (value - low) * factor, value + (high - value) * factor]
}
