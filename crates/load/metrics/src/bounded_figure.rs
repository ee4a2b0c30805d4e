//! A figure with its limits: what the generator itself may have added to it, and what requests
//! without an end leave open. Every figure is printed with them, and every statement is judged on
//! them: `docs/adr/0096-figures-with-limits.md`.

use plimsoll_measure::{LEAST_ONE_IN, Nanos, named_enum};
use plimsoll_stats::batches::independent_shares;
use plimsoll_stats::normal::NORMAL_95;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::limit::widened;

/// A measurement error above this share of a figure refuses its value; only its limits are
/// reported.
pub const REFUSED_SHARE: f64 = 0.05;
/// Measurement errors below this share of a single time are ignored in the bounds.
const UNRECORDED_SHARE: f64 = 1.0 / LEAST_ONE_IN as f64;
/// The share of a figure from which on its bound is printed beside it.
pub const PRINTED_SHARE: f64 = 0.01;
/// No figure is marked for less than this, in milliseconds: the time between two clock readings
/// around a system call on a virtual machine, and the accuracy that `plimsoll calibrate` tests
/// (T2). The bound is printed all the same.
pub const RESOLUTION_MS: f64 = 0.05;

/// A figure with its measurement error.
///
/// In JSON it is a plain number, or an object with the bound and the reason if the value is
/// refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredFigure", into = "StoredFigure")]
pub struct BoundedFigure {
    /// The measured value, times in milliseconds.
    pub value: f64,
    /// How much of it the generator itself may have added (or, of a rate, taken away).
    pub bound: f64,
    /// The 95 % interval of a rate, if it is wider than 5 %; for gaps around late reads, the range
    /// from the value to the longest possible one.
    pub interval: Option<[f64; 2]>,
    /// Why the value is refused, if it is; only its limits are valid then.
    pub refused: Option<Refusal>,
}

/// A figure as JSON holds it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredFigure {
    Usable(f64),
    Refused { value: f64, bound: f64, refused: Refusal },
}

impl From<BoundedFigure> for StoredFigure {
    fn from(BoundedFigure { value, bound, refused, .. }: BoundedFigure) -> Self {
        refused.map_or(Self::Usable(value), |refused| Self::Refused { value, bound, refused })
    }
}

impl From<StoredFigure> for BoundedFigure {
    fn from(stored: StoredFigure) -> Self {
        match stored {
            StoredFigure::Usable(value) => Self::exact(value),
            StoredFigure::Refused { value, bound, refused } => {
                Self { value, bound, interval: None, refused: Some(refused) }
            }
        }
    }
}

/// Direction in which the generator can change a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bias {
    /// Only add to it: a time since a start.
    Adds,
    /// Only take from it: a rate.
    Takes,
    /// Both: a time between two instants of receipt.
    Both,
}

named_enum! {
    /// Why the value of a figure is refused.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Refusal {
        /// The generator may have added more than 5 % of it, half of its 95 % interval and 50us.
        Generator => "generator",
        /// So many requests had no end (in flight, timed out, never sent) that it is not known.
        Censored => "censored",
    }
}

impl Refusal {
    /// The reason in a sentence.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Generator => "its measurement error exceeds 5 %",
            Self::Censored => "too many requests had no end, and may have been longer",
        }
    }
}

impl BoundedFigure {
    /// A figure that nothing speaks against.
    pub const fn exact(value: f64) -> Self {
        Self { value, bound: 0.0, interval: None, refused: None }
    }

    /// A time without its measurement error.
    pub(crate) const fn without_generator(&self) -> f64 {
        (self.value - self.bound).max(0.0)
    }

    /// The value, unless it is refused. Reports print the value with its limits; judgements use
    /// [`BoundedFigure::limits`].
    pub fn sound(&self) -> Option<f64> {
        self.refused.is_none().then_some(self.value)
    }

    /// The least and the largest value that the figure may have without the generator, with the
    /// requests that had no end, and within its interval.
    pub fn limits(&self, bias: Bias) -> [f64; 2] {
        let low = if bias == Bias::Takes { 0.0 } else { self.bound };
        let is_open = bias == Bias::Both && self.interval.is_some();
        let high = if bias == Bias::Adds || is_open { 0.0 } else { self.bound };
        let longer = if self.refused == Some(Refusal::Censored) { f64::INFINITY } else { high };
        let [least, most] = self.interval.unwrap_or([self.value; 2]);
        [(least - low).max(0.0), most + longer]
    }

    /// With its interval at 5 % divided by the number of limits that are judged together.
    pub fn among(self, limits: usize) -> Self {
        let interval = self.interval.map(|ends| widened(self.value, ends, limits));
        Self { interval, ..self }
    }

    /// Whether the measurement error covers the whole value, so nothing is known.
    pub fn may_be_all_ours(&self) -> bool {
        self.bound > 0.0 && self.bound >= self.value.abs() * (1.0 - UNRECORDED_SHARE)
    }

    /// Whether the bound is large enough to be printed beside the figure.
    pub fn has_notable_bound(&self) -> bool {
        self.bound > 0.0 && self.bound >= self.value.abs() * PRINTED_SHARE
    }
}

/// Refuses a figure whose measurement error exceeds 5 % of it, half of its 95 % interval and the
/// resolution.
pub(crate) fn by_generator(value: f64, bound: f64, half_interval: f64) -> Option<Refusal> {
    let allowed = (value.abs() * REFUSED_SHARE).max(half_interval).max(RESOLUTION_MS);
    (bound > 0.0 && bound + value.abs() * UNRECORDED_SHARE > allowed).then_some(Refusal::Generator)
}

/// Refuses quantile `q` if the `unfinished` requests, all of which may be longer than `times`,
/// could move it: it is then quantile `q'` of `times`, which may lie beyond the longest, or differ
/// from the figure by more than 5 % and by more than its interval.
pub(crate) fn by_censoring(
    times: &Distribution,
    q: f64,
    unfinished: u64,
    interval: &HalfInterval,
) -> Option<Refusal> {
    if unfinished == 0 {
        return None;
    }
    let ended = times.count() as f64;
    let moved = q * (ended + unfinished as f64) / ended;
    if moved > 1.0 {
        return Some(Refusal::Censored);
    }
    let value = millis_at(times, q);
    let allowed = (value * REFUSED_SHARE).max(interval.half).max(interval.above);
    (millis_at(times, moved) - value > allowed).then_some(Refusal::Censored)
}

fn millis_at(times: &Distribution, q: f64) -> f64 {
    times.nearest_rank(q).map_or(0.0, Nanos::as_millis_f64)
}

/// The size of the 95 % interval of a percentile, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HalfInterval {
    /// Half of it, or the part of it below the figure if that is less, because the measurement
    /// error only lowers the figure.
    pub(crate) half: f64,
    /// The part of it above the figure.
    pub(crate) above: f64,
}

impl HalfInterval {
    /// An interval from `low` to `high` around `value`.
    pub(crate) fn new(value: f64, low: f64, high: f64) -> Self {
        Self { half: ((high - low) / 2.0).min(value - low), above: high - value }
    }

    /// The smallest interval that quantile `q` can have: values are assumed to be independent. Used
    /// for percentiles without an interval of their own.
    pub(crate) fn independent(times: &Distribution, q: f64) -> Self {
        let (low, high) = independent_shares(q, times.count());
        Self::new(millis_at(times, q), millis_at(times, low), millis_at(times, high))
    }
}

/// Half of the 95 % interval of the mean, in milliseconds, if the values were independent.
pub(crate) fn mean_half_interval(times: &Distribution) -> f64 {
    NORMAL_95 * times.standard_deviation() / 1e6 / (times.count().max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_a_plain_number_in_json_unless_it_is_refused() {
        let usable = BoundedFigure { value: 4.5, bound: 0.1, ..BoundedFigure::default() };
        assert_eq!(serde_json::to_string(&usable).unwrap(), "4.5");
        let refused = BoundedFigure { refused: Some(Refusal::Generator), ..usable };
        let json = serde_json::to_string(&refused).unwrap();
        assert_eq!(json, r#"{"value":4.5,"bound":0.1,"refused":"generator"}"#);
        for (json, figure) in [(&*json, refused), ("4.5", BoundedFigure::exact(4.5))] {
            assert_eq!(serde_json::from_str::<BoundedFigure>(json).unwrap(), figure);
        }
    }

    /// 1, 2, ... 1,000 ms.
    fn thousand() -> Distribution {
        let mut times = Distribution::default();
        (1..=1_000).for_each(|ms| times.record(Nanos::from_millis(ms)));
        times
    }

    #[test]
    fn a_figure_is_refused_if_its_bound_exceeds_both_five_percent_and_half_its_interval() {
        // Half a percent more may not have been recorded.
        assert_eq!(by_generator(100.0, 4.5, 0.0), None);
        assert_eq!(by_generator(100.0, 4.6, 0.0), Some(Refusal::Generator));
        assert_eq!(by_generator(100.0, 19.5, 20.0), None);
        assert_eq!(by_generator(100.0, 19.6, 20.0), Some(Refusal::Generator));
        assert_eq!(by_generator(100.0, 0.0, 0.0), None);
        // Of 0.1 ms, 0.05 are half. They are below what can be resolved.
        assert_eq!(by_generator(0.1, 0.049, 0.0), None);
        assert_eq!(by_generator(0.1, 0.051, 0.0), Some(Refusal::Generator));
    }

    #[test]
    fn a_percentile_is_unknown_if_more_than_its_tail_had_no_end() {
        let wide = HalfInterval::new(0.0, -1e9, 1e9);
        let refused = |q, unfinished| by_censoring(&thousand(), q, unfinished, &wide).is_some();
        // 53 of 1,053 are more than 5 %, 52 of 1,052 are not; the interval hides all else.
        assert!(!refused(0.95, 52) && refused(0.95, 53));
        assert!(!refused(0.5, 999) && refused(0.5, 1_001));
        assert!(!refused(0.99, 10) && refused(0.99, 11));
    }

    #[test]
    fn a_percentile_that_the_unfinished_would_move_is_refused_too() {
        // The median is 500 ms, with 100 unfinished 550 ms: 10 % more.
        let refused =
            |low, high| by_censoring(&thousand(), 0.5, 100, &HalfInterval::new(500.0, low, high));
        assert_eq!(refused(500.0, 500.0), Some(Refusal::Censored));
        // Within the interval on one side or the other.
        assert_eq!(refused(499.0, 551.0), None);
        assert_eq!(refused(398.0, 501.0), None);
        let exact = HalfInterval::default();
        assert_eq!(by_censoring(&thousand(), 0.5, 40, &exact), None);
    }

    #[test]
    fn the_interval_of_independent_values_is_that_of_the_binomial_distribution() {
        // Of 1,000 values, 500 -+ 1.96 sqrt(1,000 / 4) = 31 lie up to the median.
        let half = HalfInterval::independent(&thousand(), 0.5).half;
        assert!((29.0..33.0).contains(&half), "{half}");
        // The standard deviation of 1 to 1,000 is 288.7.
        let half = mean_half_interval(&thousand());
        assert!((half - 1.96 * 288.7 / 1_000f64.sqrt()).abs() < 0.1, "{half}");
    }
}
