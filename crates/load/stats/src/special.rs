//! Special functions: the logarithm of gamma, and the regularised incomplete beta and gamma
//! functions.

use std::f64::consts::PI;

/// Terms of a series or a continued fraction at most. Both need about the square root of the
/// largest argument.
const MOST_TERMS: usize = 200_000;
/// Relative size of the last term.
const PRECISION: f64 = 1e-15;
/// Replaces a zero divisor (Lentz).
const TINY: f64 = 1e-300;

/// Natural logarithm of the gamma function of a positive number, by Lanczos' approximation
/// (g = 7, nine terms); relative error about 1e-15.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    const FIRST: f64 = 0.999_999_999_999_809_9;
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        return (PI / (PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let sum = (1_u8..).zip(TERMS).fold(FIRST, |sum, (i, term)| sum + term / (x + f64::from(i)));
    let t = x + 7.5;
    0.5 * (2.0 * PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// The regularised incomplete beta function `I_x(a, b)`, with `y = 1 - x` given apart, so that
/// neither loses digits. Continued fraction of Abramowitz and Stegun, 26.5.8.
pub(crate) fn beta(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if x <= 0.0 || y <= 0.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * y.ln()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, y) / b
    }
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    lentz(1.0, |n| {
        let m = (n / 2) as f64;
        let above = if n.is_multiple_of(2) {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        (above, 1.0)
    })
}

/// The regularised upper incomplete gamma function `Q(a, x)`, Abramowitz and Stegun, 6.5.3.
pub(crate) fn gamma_upper(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let front = (a * x.ln() - x - ln_gamma(a)).exp();
    if x < a + 1.0 { 1.0 - front * gamma_series(a, x) } else { front * gamma_fraction(a, x) }
}

fn gamma_series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum) = (1.0 / a, 1.0 / a);
    for n in 1..MOST_TERMS {
        term *= x / (a + n as f64);
        sum += term;
        if term < sum * PRECISION {
            break;
        }
    }
    sum
}

fn gamma_fraction(a: f64, x: f64) -> f64 {
    let first = x + 1.0 - a;
    lentz(first, |n| {
        let n = n as f64;
        (-n * (n - a), first + 2.0 * n)
    })
}

/// The reciprocal of a continued fraction, by the modified method of Lentz. It begins with `first`;
/// `term` gives the n-th numerator and denominator after it, from 1.
fn lentz(first: f64, term: impl Fn(usize) -> (f64, f64)) -> f64 {
    let mut lower = reciprocal(first);
    let (mut upper, mut fraction) = (1.0 / TINY, lower);
    for n in 1..MOST_TERMS {
        let (above, below) = term(n);
        lower = reciprocal(below + above * lower);
        upper = away_from_zero(below + above / upper);
        fraction *= upper * lower;
        if (upper * lower - 1.0).abs() < PRECISION {
            break;
        }
    }
    fraction
}

fn reciprocal(x: f64) -> f64 {
    1.0 / away_from_zero(x)
}

fn away_from_zero(x: f64) -> f64 {
    if x.abs() < TINY { TINY } else { x }
}
