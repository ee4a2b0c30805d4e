//! A change point of medians: Pettitt's rank CUSUM (1979).
//!
//! A step must fit better than a line: trends are not changes. `simulation.rs` has the false alarms
//! and the power: none in stationary, bursty and autocorrelated runs and those with a linear trend;
//! in up to 1 % of runs with a trend and strong autocorrelation. In 30 s it finds a factor of 2 in
//! 99 %, with bursts in 62 %, with strong autocorrelation in 50 %.

/// Seconds that there must be.
const LEAST_S: f64 = 20.0;
/// Values on each side.
const LEAST: usize = 5;
/// Standard errors.
const LEAST_Z: f64 = 4.5;
/// The factor between the medians.
const LEAST_FACTOR: f64 = 1.7;
/// The share of values on the right side of the middle of the jump.
const SEPARATE: f64 = 0.8;
/// The drift within a side, as a share of the jump.
const MOST_DRIFT: f64 = 0.33;
/// The squares that a step leaves, as a share of those that a line leaves.
const MOST_OF_LINE: f64 = 0.6;
/// A step is clear where this share of the values lies within a part of the jump around the median
/// of their side.
const CLEAR: (f64, f64) = (0.85, 0.125);
/// The largest autocorrelation that is corrected for.
const MOST_CORRELATION: f64 = 0.9;

/// A step from one level to another.
pub(super) struct Step {
    /// The first value of the new level.
    pub(super) index: usize,
    /// The median before.
    pub(super) before: f64,
    /// The median after.
    pub(super) after: f64,
}

/// The step in a series of moments and medians that covers `length` seconds.
pub(super) fn find(medians: &[(f64, f64)], length: f64) -> Option<Step> {
    let values: Vec<f64> = medians.iter().map(|(_, value)| value.ln()).collect();
    let n = values.len();
    if length < LEAST_S || n < 2 * LEAST + 2 {
        return None;
    }
    let ranks = ranks(&values);
    let index = split(&ranks);
    let (first, second) = values.split_at(index);
    let (before, after) = (median(first), median(second));
    let jump = after - before;
    let middle = f64::midpoint(before, after);
    let (low_first, low_second) = (share_below(middle, first), share_below(middle, second));
    let separate =
        if jump > 0.0 { low_first * (1.0 - low_second) } else { (1.0 - low_first) * low_second };
    let drift = drift(first).abs().max(drift(second).abs());
    let is_clear = [(first, before), (second, after)].iter().all(|(part, median)| {
        let near = part.iter().filter(|value| (*value - median).abs() <= CLEAR.1 * jump.abs());
        near.count() as f64 >= CLEAR.0 * part.len() as f64
    });
    let is_step = z(&ranks, index, is_clear) > LEAST_Z
        && jump.abs() >= LEAST_FACTOR.ln()
        && separate >= SEPARATE
        && drift < MOST_DRIFT * jump.abs()
        && fits_better(&values, index, before, after);
    is_step.then(|| Step { index, before: before.exp(), after: after.exp() })
}

/// Whether a step leaves much less than a line. Values beyond both levels count as half a step
/// beyond them.
fn fits_better(values: &[f64], index: usize, before: f64, after: f64) -> bool {
    let beyond = (after - before).abs() / 2.0;
    let (low, high) = (before.min(after) - beyond, before.max(after) + beyond);
    let values: Vec<f64> = values.iter().map(|value| value.clamp(low, high)).collect();
    let (first, second) = values.split_at(index);
    let centre = (values.len() as f64 - 1.0) / 2.0;
    let times: Vec<f64> = (0..values.len()).map(|at| at as f64 - centre).collect();
    let along: f64 = times.iter().zip(&values).map(|(time, value)| time * value).sum();
    let line = squares(&values) - along.powi(2) / times.iter().map(|time| time * time).sum::<f64>();
    squares(first) + squares(second) < MOST_OF_LINE * line
}

/// The sum of the squared distances from the mean.
fn squares(part: &[f64]) -> f64 {
    let mean = mean(part);
    part.iter().map(|value| (value - mean).powi(2)).sum()
}

fn share_below(middle: f64, part: &[f64]) -> f64 {
    part.iter().filter(|value| **value < middle).count() as f64 / part.len() as f64
}

/// The mid-ranks, less their mean.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mean = f64::midpoint(values.len() as f64, 1.0);
    values
        .iter()
        .map(|value: &f64| {
            let below = values.iter().filter(|other| *other < value).count() as f64;
            let equal = values.iter().filter(|other| other.total_cmp(value).is_eq()).count() as f64;
            below + f64::midpoint(equal, 1.0) - mean
        })
        .collect()
}

/// The place with the largest weighted cumulative sum.
fn split(ranks: &[f64]) -> usize {
    let n = ranks.len();
    let (mut sum, mut best) = (0.0, (0.0, LEAST));
    for (before, rank) in ranks.iter().enumerate() {
        let weight = ((before * (n - before)) as f64).sqrt().max(1.0);
        if (LEAST..=n - LEAST).contains(&before) && f64::abs(sum) / weight > best.0 {
            best = (f64::abs(sum) / weight, before);
        }
        sum += rank;
    }
    best.1
}

/// The difference of the mean ranks in standard errors, with the autocorrelation of the residuals.
/// Beside a clear step they are too small for their order to matter.
fn z(ranks: &[f64], index: usize, is_clear: bool) -> f64 {
    let (first, second) = ranks.split_at(index);
    let (n, before, after) = (ranks.len() as f64, first.len() as f64, second.len() as f64);
    let (low, high) = (mean(first), mean(second));
    let rest: Vec<f64> =
        first.iter().map(|rank| rank - low).chain(second.iter().map(|rank| rank - high)).collect();
    let squares: f64 = rest.iter().map(|value| value * value).sum();
    let products: f64 = rest.windows(2).map(|two| two[0] * two[1]).sum();
    let correlation = if is_clear { 0.0 } else { products / squares.max(1e-9) + 1.0 / n };
    let correlation = correlation.clamp(0.0, MOST_CORRELATION);
    let variance = (squares / (n - 2.0)).max(n * n / 12.0 * 0.02);
    let error = (variance * (1.0 + correlation) / (1.0 - correlation)).sqrt();
    (high - low).abs() / (error * (1.0 / before + 1.0 / after).sqrt())
}

fn mean(part: &[f64]) -> f64 {
    part.iter().sum::<f64>() / part.len() as f64
}

fn drift(part: &[f64]) -> f64 {
    let (first, second) = part.split_at(part.len() / 2);
    if part.len() < 4 { 0.0 } else { median(second) - median(first) }
}

pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.get(middle) {
        Some(upper) if sorted.len() % 2 == 1 => *upper,
        Some(upper) => f64::midpoint(sorted[middle - 1], *upper),
        None => 0.0,
    }
}
