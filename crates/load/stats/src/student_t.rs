//! Student's t distribution, for any positive number of degrees of freedom; infinitely many give
//! the normal distribution.

use std::f64::consts::PI;

use crate::normal;
use crate::special::{beta, ln_gamma};

/// Degrees of freedom from which the distribution is normal to nine digits.
const NORMAL: f64 = 1e9;

/// The share below `t`.
pub fn cdf(t: f64, degrees_of_freedom: f64) -> f64 {
    let tail = two_sided_p(t, degrees_of_freedom) / 2.0;
    if t < 0.0 { tail } else { 1.0 - tail }
}

/// The share further from 0 than `t`. Not a number if `t` is not.
pub fn two_sided_p(t: f64, degrees_of_freedom: f64) -> f64 {
    if t.is_nan() {
        return t;
    }
    if t.is_infinite() {
        return 0.0;
    }
    if degrees_of_freedom >= NORMAL {
        return 2.0 * normal::upper_tail(t.abs());
    }
    let whole = degrees_of_freedom + t * t;
    beta(degrees_of_freedom / 2.0, 0.5, degrees_of_freedom / whole, t * t / whole)
}

/// The point below which a share `p` lies; infinite at 0 and 1.
pub fn quantile(p: f64, degrees_of_freedom: f64) -> f64 {
    if p < 0.5 {
        return -upper_quantile(p, degrees_of_freedom);
    }
    upper_quantile(1.0 - p, degrees_of_freedom)
}

/// The point between which and its negative 95 % lie.
pub fn critical_95(degrees_of_freedom: f64) -> f64 {
    upper_quantile(0.025, degrees_of_freedom)
}

/// The point above which a share `tail` of at most one half lies. Newton's method on the logarithm
/// of the tail, from the first two terms of the Cornish-Fisher expansion (Abramowitz and Stegun,
/// 26.7.5).
fn upper_quantile(tail: f64, degrees_of_freedom: f64) -> f64 {
    const STEPS: usize = 100;
    const PRECISION: f64 = 1e-13;
    let z = normal::quantile(1.0 - tail).max(0.0);
    if degrees_of_freedom >= NORMAL || z == 0.0 || z.is_infinite() {
        return z;
    }
    let mut t = z + (z.powi(3) + z) / (4.0 * degrees_of_freedom);
    for _ in 0..STEPS {
        let above = two_sided_p(t, degrees_of_freedom) / 2.0;
        let step = (above / tail).ln() * above / density(t, degrees_of_freedom);
        let next = (t + step).clamp(t / 2.0, t * 2.0);
        let change = (next - t).abs();
        t = next;
        if change < PRECISION * t {
            break;
        }
    }
    t
}

fn density(t: f64, degrees_of_freedom: f64) -> f64 {
    let half = f64::midpoint(degrees_of_freedom, 1.0);
    let scale = ln_gamma(half) - ln_gamma(degrees_of_freedom / 2.0);
    let body = -half * (t * t / degrees_of_freedom).ln_1p();
    (scale + body).exp() / (degrees_of_freedom * PI).sqrt()
}
