//! Axes: from values to places, and which values are written beside them.

/// An axis from one value to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
}

/// How values are spread over an axis.
#[derive(Clone, Copy, Debug)]
enum Scale {
    Linear,
    Log,
    /// Logarithmic from 0 outward on both sides, and about linear below this value.
    Symmetric(f64),
    /// Shares by their odds: from 90 to 99 % is about as far as from 99 to 99.9 %. Which of its
    /// ends stand for 0 and for 1.
    Odds {
        none: bool,
        all: bool,
    },
}

impl Scale {
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.max(1e-9).ln(),
            Self::Symmetric(knee) => (value.abs() / knee).ln_1p().copysign(value),
            Self::Odds { .. } => log_odds(value),
        }
    }
}

impl Axis {
    /// From 0 to a round number that is at least `highest`.
    pub(crate) fn from_zero(highest: f64) -> Self {
        let high = if highest > 0.0 { highest } else { 1.0 };
        let step = step(high);
        Self { low: 0.0, high: (high / step).ceil() * step, scale: Scale::Linear }
    }

    /// From one value to a higher one.
    pub(crate) fn linear(low: f64, high: f64) -> Self {
        Self { low, high: if high > low { high } else { low + 1.0 }, scale: Scale::Linear }
    }

    /// Logarithmic, over at least a factor of 4.
    pub(crate) fn log(low: f64, high: f64) -> Self {
        let low = low.max(1e-6);
        let high = high.max(low);
        let spare = (4.0 / (high / low)).max(1.0).sqrt();
        Self { low: low / spare, high: high * spare, scale: Scale::Log }
    }

    /// Logarithmic from 0 outward on both sides, and about linear below `knee`.
    pub(crate) fn symmetric(low: f64, high: f64, knee: f64) -> Self {
        let high = if high > low { high } else { low + knee };
        Self { low, high, scale: Scale::Symmetric(knee) }
    }

    /// For these shares, by the logarithm of their odds. 0 and 1 have no such place: where they
    /// occur, the ends stand for them, as far beyond the other shares as has room for a label.
    pub(crate) fn of_shares(shares: impl Iterator<Item = f64> + Clone) -> Self {
        // Room for a label between the last share and the end: three times the odds.
        const ROOM: f64 = 3.0;
        let (none, all) =
            (shares.clone().any(|share| share <= 0.0), shares.clone().any(|share| share >= 1.0));
        let within = shares.filter(|share| *share > 0.0 && *share < 1.0);
        let (low, high) = within
            .map(log_odds)
            .fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(at), high.max(at)));
        let (low, high) = if low > high { (0.0, 0.0) } else { (low, high) };
        Self {
            low: share_of(low - ROOM.ln()),
            high: share_of(high + ROOM.ln()),
            scale: Scale::Odds { none, all },
        }
    }

    /// For differences around 0, which the axis shows: linear, and symmetric where some of them
    /// are so much larger than others that these could not be seen. `sizes`: of each, the distance
    /// of its farthest end from 0.
    pub(crate) fn of_differences(low: f64, high: f64, sizes: &[f64]) -> Self {
        let (low, high) = (low.min(0.0), high.max(0.0));
        let largest = sizes.iter().copied().fold(0.0, f64::max);
        let smallest = sizes.iter().copied().filter(|size| *size > 0.0).fold(largest, f64::min);
        if largest > smallest * FARTHEST {
            return Self::symmetric(low * 1.3, high * 1.3, smallest / 2.0);
        }
        let spare = (high - low) * 0.05;
        Self::linear(low - spare, high + spare)
    }

    /// Whether it is not linear.
    pub(crate) const fn is_symmetric(&self) -> bool {
        matches!(self.scale, Scale::Symmetric(_))
    }

    /// Its lower end.
    pub(crate) const fn low(&self) -> f64 {
        self.low
    }

    /// Its upper end.
    pub(crate) const fn high(&self) -> f64 {
        self.high
    }

    /// The place of a value, from 0 at the low end to 1 at the high end.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let [low, high, value] = [self.low, self.high, value].map(|v| self.scale.place(v));
        ((value - low) / (high - low)).clamp(0.0, 1.0)
    }

    /// Round values for its labels, at most about eight.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => self.linear_ticks(),
            Scale::Log => self.log_ticks(),
            Scale::Symmetric(knee) => self.symmetric_ticks(knee, GAP),
            Scale::Odds { none, all } => self.odds_ticks([none.then_some(0.0), all.then_some(1.0)]),
        }
    }

    /// Whether a label, the `nth` of all, is left out on a narrow screen.
    pub(crate) fn is_spare(&self, nth: usize, tick: f64) -> bool {
        match self.scale {
            Scale::Symmetric(knee) => !self.symmetric_ticks(knee, NARROW_GAP).contains(&tick),
            Scale::Linear | Scale::Log | Scale::Odds { .. } => {
                nth % 2 == 1 && self.ticks().len() > 6
            }
        }
    }

    fn linear_ticks(&self) -> Vec<f64> {
        let step = step(self.high - self.low);
        let first = (self.low / step).ceil();
        let ticks = (0..12).map(|n| (first + f64::from(n)) * step);
        ticks.take_while(|tick| *tick <= self.high + step * 1e-6).collect()
    }

    fn log_ticks(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let within: &[f64] = if decades <= 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let first = decade(self.low);
        let values =
            (first..first + 16).flat_map(|n| within.iter().map(move |m| m * 10f64.powi(n)));
        values.filter(|value| *value >= self.low && *value <= self.high).collect()
    }

    /// 0 and 1 where the ends stand for them, and between them 50 %, then 10 and 90, 1 and 99 and
    /// so on, as far as there is room; where there is much, the shares between these too.
    fn odds_ticks(&self, ends: [Option<f64>; 2]) -> Vec<f64> {
        let mut ticks: Vec<f64> = ends.into_iter().flatten().collect();
        let tails = (1..=MOST_NINES).map(|n| 10f64.powi(-n));
        let finer = tails.clone().flat_map(|tail| [tail * 2.0, tail * 5.0]);
        let candidates =
            std::iter::once(0.5).chain(tails.chain(finer).flat_map(|tail| [tail, 1.0 - tail]));
        for value in candidates.filter(|value| *value > self.low && *value < self.high) {
            if ticks.iter().all(|tick| (self.at(*tick) - self.at(value)).abs() >= ODDS_GAP) {
                ticks.push(value);
            }
        }
        ticks.sort_by(f64::total_cmp);
        ticks
    }

    /// 0 and powers of ten on both sides, the largest first, as far as there is room.
    fn symmetric_ticks(&self, knee: f64, gap: f64) -> Vec<f64> {
        let largest = self.low.abs().max(self.high.abs());
        let powers = (decade(knee)..=decade(largest)).rev().map(|n| 10f64.powi(n));
        let candidates = std::iter::once(0.0).chain(powers.flat_map(|power| [power, -power]));
        let mut ticks: Vec<f64> = Vec::new();
        for value in candidates.filter(|value| *value >= self.low && *value <= self.high) {
            if ticks.iter().all(|tick| (self.at(*tick) - self.at(value)).abs() >= gap) {
                ticks.push(value);
            }
        }
        ticks.sort_by(f64::total_cmp);
        ticks
    }
}

/// How many times as large as the smallest a difference may be on a linear axis.
const FARTHEST: f64 = 30.0;

/// Between two labels of a symmetric axis, as a part of it; and where letters are larger.
const GAP: f64 = 0.13;
const NARROW_GAP: f64 = 0.19;

/// Between two labels of an axis of shares, which stands upright.
const ODDS_GAP: f64 = 0.09;
/// 99.99999 %: no probe has more requests than that takes.
const MOST_NINES: i32 = 7;

/// The logarithm of the odds of a share; of 0 and 1 that of the next that could be told.
fn log_odds(share: f64) -> f64 {
    const LEAST: f64 = 1e-9;
    let share = share.clamp(LEAST, 1.0 - LEAST);
    (share / (1.0 - share)).ln()
}

/// The inverse of `log_odds`.
fn share_of(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// The power of ten at or below a value.
#[expect(clippy::cast_possible_truncation, reason = "a logarithm is small")]
fn decade(value: f64) -> i32 {
    value.log10().floor() as i32
}

/// 1, 2 or 5 times a power of ten: four to eight steps over the span.
fn step(span: f64) -> f64 {
    let rough = span.max(1e-12) / 5.0;
    let power = 10f64.powi(decade(rough));
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough * 0.999);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_axis() {
        for (axis, ticks) in [
            (Axis::from_zero(93.0), vec![0.0, 20.0, 40.0, 60.0, 80.0, 100.0]),
            (Axis::linear(0.0, 1.0), vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            (Axis::log(3.0, 40.0), vec![5.0, 10.0, 20.0]),
            (Axis::log(1.0, 10_000.0), vec![1.0, 10.0, 100.0, 1_000.0, 10_000.0]),
        ] {
            let found = axis.ticks();
            assert_eq!(found.len(), ticks.len(), "{found:?}");
            assert!(
                found.iter().zip(&ticks).all(|(a, b)| (a - b).abs() <= b.abs() * 1e-9 + 1e-9),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_symmetric_axis_has_0_in_its_middle_and_equal_places_on_both_sides() {
        let axis = Axis::symmetric(-1_000.0, 1_000.0, 1.0);
        assert!((axis.at(0.0) - 0.5).abs() < 1e-12);
        assert!((axis.at(30.0) + axis.at(-30.0) - 1.0).abs() < 1e-12);
        // By hand: ln(1 + 30) / ln(1 + 1,000) = 0.4971, half of it to the right of the middle.
        assert!((axis.at(30.0) - 0.748_5).abs() < 1e-3, "{}", axis.at(30.0));
        let ticks = [-1_000.0, -100.0, -10.0, 0.0, 10.0, 100.0, 1_000.0];
        assert_eq!(axis.ticks(), ticks);
        // Where letters are larger, there is room for three of them.
        let shown = ticks.iter().enumerate().filter(|(nth, tick)| !axis.is_spare(*nth, **tick));
        assert_eq!(shown.map(|(_, tick)| *tick).collect::<Vec<_>>(), [-1_000.0, 0.0, 1_000.0]);
    }

    #[test]
    fn shares_lie_by_their_odds_between_all_and_none() {
        let axis = Axis::of_shares([0.9, 0.99, 0.999, 1.0].into_iter());
        let [a, b, c] = [0.9, 0.99, 0.999].map(|share| axis.at(share));
        assert!(((c - b) / (b - a) - 1.0).abs() < 0.1 && a > 0.1 && c < 0.9, "{a} {b} {c}");
        assert_eq!((axis.at(0.0), axis.at(1.0)), (0.0, 1.0));
        // By hand: odds of 9 and 999, three times as far out 3 and 2,997; ln(99 / 3) / ln(999).
        assert!((b - 33f64.ln() / 999f64.ln()).abs() < 1e-9, "{b}");
        let ticks = axis.ticks();
        assert!([0.9, 0.99, 0.999, 1.0].iter().all(|tick| ticks.contains(tick)), "{ticks:?}");
        assert!(!ticks.contains(&0.0), "none of the shares is 0");
        assert_eq!(Axis::of_shares([1.0, 0.0].into_iter()).ticks(), [0.0, 0.5, 1.0]);
    }

    #[test]
    fn differences_are_on_a_linear_axis_unless_small_ones_would_vanish() {
        let near = Axis::of_differences(-1.0, 12.0, &[12.0, 1.0]);
        assert!(!near.is_symmetric() && near.low() < -1.0 && near.high() > 12.0);
        let far = Axis::of_differences(-1.0, 400.0, &[400.0, 1.0]);
        assert!(far.is_symmetric() && far.at(1.0) - far.at(0.0) > 0.05, "{far:?}");
    }

    #[test]
    fn the_ends_are_0_and_1_and_nothing_lies_outside() {
        let axis = Axis::log(2.0, 200.0);
        assert!((axis.at(20.0) - 0.5).abs() < 1e-12);
        assert_eq!((axis.at(0.0), axis.at(1e9)), (0.0, 1.0));
        assert!(Axis::linear(5.0, 5.0).at(5.0).abs() < 1e-12);
    }
}
