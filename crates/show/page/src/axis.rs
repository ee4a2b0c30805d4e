//! Axes: from values to places, and which values are written beside them.

/// An axis from one value to another, linear or logarithmic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    log: bool,
}

impl Axis {
    /// From 0 to a round number that is at least `highest`.
    pub(crate) fn from_zero(highest: f64) -> Self {
        let high = if highest > 0.0 { highest } else { 1.0 };
        let step = step(high);
        Self { low: 0.0, high: (high / step).ceil() * step, log: false }
    }

    /// From one value to a higher one.
    pub(crate) fn linear(low: f64, high: f64) -> Self {
        Self { low, high: if high > low { high } else { low + 1.0 }, log: false }
    }

    /// Logarithmic, over at least a factor of 4.
    pub(crate) fn log(low: f64, high: f64) -> Self {
        let low = low.max(1e-6);
        let high = high.max(low);
        let spare = (4.0 / (high / low)).max(1.0).sqrt();
        Self { low: low / spare, high: high * spare, log: true }
    }

    /// The place of a value, from 0 at the low end to 1 at the high end.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let place = if self.log {
            (value.max(1e-9) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        place.clamp(0.0, 1.0)
    }

    /// Round values for its labels, at most about eight.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        if self.log { self.log_ticks() } else { self.linear_ticks() }
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
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= b.abs() * 1e-9 + 1e-9;
            assert!(found.iter().zip(&ticks).all(near), "{found:?}");
        }
    }

    #[test]
    fn the_ends_are_0_and_1_and_nothing_lies_outside() {
        let axis = Axis::log(2.0, 200.0);
        assert!((axis.at(20.0) - 0.5).abs() < 1e-12);
        assert_eq!((axis.at(0.0), axis.at(1e9)), (0.0, 1.0));
        assert!(Axis::linear(5.0, 5.0).at(5.0).abs() < 1e-12);
    }
}
