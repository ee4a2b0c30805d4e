//! Smallest detectable differences.

use crate::looks::Looks;
use crate::sign_test::sign_p;
use crate::student_t;
use crate::tails::poisson_at_least;

/// With this probability a difference is found that is called detectable.
pub const POWER: f64 = 0.8;
/// Two-sided level of a single comparison.
const LEVEL: f64 = 0.05;

/// The difference that an estimate with this 95 % interval would have found in 80 % of the cases.
pub fn detectable(half_width: f64, batches: u64, degrees_of_freedom: f64, looks: Looks) -> f64 {
    let critical = looks.critical(batches, degrees_of_freedom);
    half_width / critical * (critical + student_t::quantile(POWER, degrees_of_freedom))
}

/// One failure in how many requests would have been found in 80 % of the cases, among `pairs`, if
/// the other side never fails; `None` if not even certain failure would.
pub fn failures_one_in(pairs: u64, looks: Looks) -> Option<f64> {
    let needed = discordant_needed(looks);
    // The mean of a Poisson distribution that reaches so many in 80 %.
    let (mut low, mut high) = (0.0, needed as f64 * 10.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if poisson_at_least(needed, middle) < POWER { low = middle } else { high = middle }
    }
    Some(pairs as f64 / high).filter(|one_in| *one_in >= 1.0)
}

/// Pairs with a failure on one side only that are significant by the sign test: 2 (1/2)^k < 5 %.
fn discordant_needed(looks: Looks) -> u64 {
    (1..64).find(|&k| sign_p(k, 0, looks) < LEVEL).unwrap_or(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six failures are needed; a mean of 7.906 brings as many in 80 %.
    #[test]
    fn one_failure_in_760_would_be_seen_among_6_000() {
        assert_eq!(discordant_needed(Looks::Once), 6);
        // (k + 1) (1/2)^k: 8/128 of seven, 9/256 of eight.
        assert_eq!(discordant_needed(Looks::Always), 8);
        let found = failures_one_in(6_000, Looks::Once).unwrap();
        assert!((found - 6_000.0 / 7.906).abs() < 0.1, "{found}");
        assert_eq!(failures_one_in(5, Looks::Once), None);
    }

    #[test]
    fn what_can_be_found_is_more_than_the_half_width() {
        // Known variance: (1.96 + 0.8416) / 1.96.
        let found = detectable(1.0, 60, f64::INFINITY, Looks::Once);
        assert!((found - 2.801_585 / 1.959_964).abs() < 1e-5, "{found}");
        // 3.0351 standard errors to both sides, and 0.8416 more.
        let found = detectable(1.0, 60, f64::INFINITY, Looks::Always);
        assert!((found - (1.0 + 0.841_621 / 3.0351)).abs() < 1e-4, "{found}");
    }
}
