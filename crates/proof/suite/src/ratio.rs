//! The ratio of two figures with its limits: `docs/adr/0096-figures-with-limits.md`.

use plimsoll_metrics::{Bias, BoundedFigure};

/// Ratio of two figures and its limits, which assume that the generator affected the two in
/// opposite directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Ratio {
    /// `figure` over `other`, of rates with [`Bias::Takes`] and of times with [`Bias::Adds`];
    /// `None` if `other` is zero.
    pub(crate) fn new(figure: BoundedFigure, other: BoundedFigure, bias: Bias) -> Option<Self> {
        let ([low, high], [least, most]) = (figure.limits(bias), other.limits(bias));
        (other.value > 0.0).then(|| Self {
            value: figure.value / other.value,
            low: low / most,
            high: if least > 0.0 { high / least } else { f64::INFINITY },
        })
    }

    /// Whether a statement holds at both limits; `None` if they disagree.
    pub(crate) fn holds(&self, statement: impl Fn(f64) -> bool) -> Option<bool> {
        let [low, high] = [self.low, self.high].map(statement);
        (low == high).then_some(low)
    }

    /// The same of another figure that rises or falls with it.
    pub(crate) fn map(&self, of: impl Fn(f64) -> f64) -> Self {
        let [value, one, other] = [self.value, self.low, self.high].map(of);
        Self { value, low: one.min(other), high: one.max(other) }
    }

    /// Its value, and its limits where they do not look the same.
    pub(crate) fn text(&self, format: impl Fn(f64) -> String) -> String {
        let [value, low, high] = [self.value, self.low, self.high].map(&format);
        match (low == value && high == value, self.high.is_finite()) {
            (true, _) => value,
            (false, true) => format!("{value} ({low} to {high})"),
            (false, false) => format!("{value} ({low} or more)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_metrics::Refusal;

    fn figure(value: f64, bound: f64) -> BoundedFigure {
        BoundedFigure { value, bound, interval: None, refused: None }
    }

    /// A measured rate of 80 is 80 to 100, and one of 40 is 40 to 50: the ratio is 80/50 to 100/40.
    #[test]
    fn limits_are_those_of_both_figures_in_opposite_directions() {
        let rates = Ratio::new(figure(80.0, 20.0), figure(40.0, 10.0), Bias::Takes).unwrap();
        assert_eq!(rates, Ratio { value: 2.0, low: 1.6, high: 2.5 });
        assert_eq!(rates.text(|ratio| format!("{ratio:.1}x")), "2.0x (1.6x to 2.5x)");
        // Times of 80 and 40 that may have been 60 and 30: 60/40 to 80/30.
        let times = Ratio::new(figure(80.0, 20.0), figure(40.0, 10.0), Bias::Adds).unwrap();
        assert_eq!((times.low, times.high), (1.5, 80.0 / 30.0));
        assert_eq!(times.holds(|ratio| ratio > 1.0), Some(true));
        assert_eq!(times.holds(|ratio| ratio > 2.0), None);
        assert_eq!(times.holds(|ratio| ratio > 3.0), Some(false));
    }

    #[test]
    fn what_may_be_all_of_a_figure_leaves_no_upper_limit() {
        let ours = Ratio::new(figure(8.0, 0.0), figure(4.0, 4.0), Bias::Adds).unwrap();
        assert_eq!(ours.text(|ratio| format!("{ratio:.1}")), "2.0 (2.0 or more)");
        let censored = BoundedFigure { refused: Some(Refusal::Censored), ..figure(8.0, 0.0) };
        let longer = Ratio::new(censored, figure(4.0, 0.0), Bias::Adds).unwrap();
        assert_eq!((longer.low, longer.high), (2.0, f64::INFINITY));
        assert_eq!(Ratio::new(figure(1.0, 0.0), figure(0.0, 0.0), Bias::Takes), None);
        let exact = Ratio::new(figure(1.0, 0.0), figure(2.0, 0.0), Bias::Adds).unwrap();
        assert_eq!(exact.text(|ratio| format!("{ratio:.1}")), "0.5");
    }
}
