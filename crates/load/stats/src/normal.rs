//! The standard normal distribution.

use std::f64::consts::TAU;

use crate::special::gamma_upper;

/// The point below which 97.5 % lie.
pub const NORMAL_95: f64 = 1.959_963_984_540_054;

/// The share below `z`.
pub fn cdf(z: f64) -> f64 {
    if z < 0.0 { upper_tail(-z) } else { 1.0 - upper_tail(z) }
}

/// The share above `z`. Exact to the last digits in the tail too.
pub fn upper_tail(z: f64) -> f64 {
    if z < 0.0 { 1.0 - upper_tail(-z) } else { 0.5 * gamma_upper(0.5, z * z / 2.0) }
}

/// The point below which a share `p` lies; infinite at 0 and 1.
pub fn quantile(p: f64) -> f64 {
    if p < 0.5 { -upper_quantile(p) } else { upper_quantile(1.0 - p) }
}

/// The point above which a share `tail` of at most one half lies: Abramowitz and Stegun, 26.2.23,
/// made exact by Halley's method.
fn upper_quantile(tail: f64) -> f64 {
    const STEPS: u8 = 4;
    if tail <= 0.0 {
        return f64::INFINITY;
    }
    let t = (-2.0 * tail.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    (0..STEPS).fold(t - above / below, |z, _| {
        let density = (-z * z / 2.0).exp() / TAU.sqrt();
        let step = (tail - upper_tail(z)) / density;
        z - step / (1.0 + z * step / 2.0)
    })
}
