//! Closed forms and textbook estimators that only the calibration compares with; see also
//! [`plimsoll_stats::descriptive`].

use plimsoll_stats::descriptive::{mean, variance};

/// Probability that a sample as far from its supposed distribution as this one, or farther, comes
/// about by chance: the Kolmogorov-Smirnov test of one sample, with M. A. Stephens' correction for
/// its size ("EDF statistics for goodness of fit", 1974).
pub(crate) fn kolmogorov_smirnov(ascending: &[f64], distribution: impl Fn(f64) -> f64) -> f64 {
    let n = ascending.len() as f64;
    let distance = ascending.iter().enumerate().fold(0.0_f64, |most, (rank, &value)| {
        let (rank, expected) = (rank as f64, distribution(value));
        most.max((expected - rank / n).abs()).max(((rank + 1.0) / n - expected).abs())
    });
    let lambda = (n.sqrt() + 0.12 + 0.11 / n.sqrt()) * distance;
    kolmogorov_tail(lambda)
}

/// `Q(x) = 2 sum (-1)^(j-1) exp(-2 j^2 x^2)` over j from 1 (A. N. Kolmogorov, 1933).
fn kolmogorov_tail(x: f64) -> f64 {
    if x < 0.2 {
        // The series converges slowly here, and the sum differs from 1 by less than 1e-12.
        return 1.0;
    }
    (1..=100)
        .map(|j| {
            let sign = if j % 2 == 1 { 2.0 } else { -2.0 };
            sign * (-2.0 * f64::from(j * j) * x * x).exp()
        })
        .sum::<f64>()
        .clamp(0.0, 1.0)
}

/// Variance over mean of the counts in windows of equal length: 1 for a Poisson process, 0 for an
/// even one.
pub(crate) fn dispersion(times: &[f64], length: f64, windows: usize) -> f64 {
    let counts = counts(times, length, windows);
    variance(&counts).unwrap_or(f64::NAN) / mean(&counts)
}

/// The number of times in each of `windows` equal parts of `0..length`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "negative times count in the first window, and too large ones in none"
)]
pub(crate) fn counts(times: &[f64], length: f64, windows: usize) -> Vec<f64> {
    let mut counts = vec![0.0; windows];
    for time in times {
        let window = (time / length * windows as f64) as usize;
        if let Some(count) = counts.get_mut(window) {
            *count += 1.0;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::Seed;
    use plimsoll_stats::descriptive::ascending;

    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "{found} and not {expected}");
    }

    #[test]
    fn moments_are_those_of_the_textbook() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        close(mean(&values), 5.0, 1e-12);
        close(variance(&values).unwrap(), 32.0 / 7.0, 1e-12);
    }

    #[test]
    fn the_kolmogorov_distribution_has_its_tabled_values() {
        for (x, p) in [(1.2238, 0.10), (1.3581, 0.05), (1.6276, 0.01), (1.9495, 0.001)] {
            close(kolmogorov_tail(x), p, p * 1e-3);
        }
        close(kolmogorov_tail(0.1), 1.0, 1e-12);
    }

    #[test]
    fn exponential_gaps_pass_and_even_ones_do_not() {
        let mut rng = Seed(4).rng("gaps", 0);
        let gaps = ascending((0..5_000).map(|_| rng.exponential()).collect());
        assert!(kolmogorov_smirnov(&gaps, |x| -(-x).exp_m1()) > 0.01);
        // A tenth too slow is found out.
        assert!(kolmogorov_smirnov(&gaps, |x| -(-x * 1.1).exp_m1()) < 1e-4);
        assert!(kolmogorov_smirnov(&vec![1.0; 5_000], |x| -(-x).exp_m1()) < 1e-6);
    }

    #[test]
    fn dispersion_is_one_for_poisson_and_zero_for_even_arrivals() {
        let mut rng = Seed(9).rng("arrivals", 0);
        let poisson: Vec<f64> = (0..40_000)
            .scan(0.0, |at, _| {
                *at += rng.exponential() / 4_000.0;
                Some(*at)
            })
            .collect();
        close(dispersion(&poisson, 9.0, 9_000), 1.0, 0.05);
        let even: Vec<f64> = (0..4_000).map(|n| (f64::from(n) + 0.5) / 4_000.0).collect();
        close(dispersion(&even, 1.0, 100), 0.0, 1e-9);
    }

    #[test]
    fn times_are_counted_in_the_window_in_which_they_lie() {
        // Four windows of half a second: [0, 0.5), [0.5, 1), [1, 1.5), [1.5, 2); 2.0 lies in none.
        let times = [0.0, 0.49, 0.5, 1.7, 1.9, 2.0];
        assert_eq!(counts(&times, 2.0, 4), [2.0, 1.0, 0.0, 2.0]);
        // Their mean is 5/4, their variance (0.5625 + 0.0625 + 1.5625 + 0.5625) / 3 = 11/12.
        close(dispersion(&times, 2.0, 4), 11.0 / 15.0, 1e-12);
    }
}
