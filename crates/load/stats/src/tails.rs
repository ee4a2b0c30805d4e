//! Tails of the binomial and the Poisson distribution.

use crate::special::{beta, gamma_upper};

/// The probability of at least `least` successes in `trials`, each with probability `p`.
pub fn binomial_at_least(least: u64, trials: u64, p: f64) -> f64 {
    match least {
        0 => 1.0,
        _ if least > trials => 0.0,
        _ => beta(least as f64, (trials - least + 1) as f64, p, 1.0 - p),
    }
}

/// The probability of at least `least` events where `mean` are expected.
pub fn poisson_at_least(least: u64, mean: f64) -> f64 {
    if least == 0 { 1.0 } else { 1.0 - gamma_upper(least as f64, mean) }
}
