//! The Universal Scalability Law, fitted to probes.

use plimsoll_measure::{Rng, Seed};
use plimsoll_stats::student_t::critical_95;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kept::State;
use crate::result::{Load, Probe};

/// The Universal Scalability Law (Gunther, "Guerrilla Capacity Planning", 2007):
/// `X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1))`. It says nothing beyond the highest
/// concurrency that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usl {
    /// Throughput of one request at a time, per second.
    pub lambda_per_s: Coefficient,
    /// Contention: the share of the work that has to wait for the rest.
    pub sigma: Coefficient,
    /// Coherency: what each pair of requests costs each other; `null` where it is not proven, and
    /// the law is then fitted without it.
    pub kappa: Option<Coefficient>,
    /// Concurrencies that differ by a tenth or more.
    pub levels: usize,
    /// The lowest and the highest concurrency: users, or requests in flight by Little's law.
    pub concurrency: (f64, f64),
    /// The highest throughput that was measured, per second.
    pub highest_throughput_per_s: f64,
}

/// A coefficient with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coefficient {
    /// The estimate.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A throughput at a concurrency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Requests in flight.
    pub concurrency: f64,
    /// Good answers per second.
    pub throughput_per_s: f64,
    /// Seconds that it was measured.
    pub seconds: f64,
}

/// Fewest levels.
const LEAST_LEVELS: usize = 6;
/// Concurrencies are two levels if they differ by this factor.
const APART: f64 = 1.1;
/// The highest concurrency is at least so many times the lowest.
const LEAST_SPAN: f64 = 4.0;
/// A probe is stable if it completed this share of what it was offered.
const STABLE: f64 = 0.97;
/// Samples of the bootstrap, and its seed.
const BOOTSTRAP: (u64, u64) = (999, 1);
/// The fit is refused if its residuals follow each other more than in this share of the samples.
const MISFIT: f64 = 0.02;

/// Lambda, sigma and kappa.
type Law = [f64; 3];

impl Usl {
    /// The law of the probes of a target, where they show it.
    pub(crate) fn of(probes: &[Probe], load: Load) -> Option<Self> {
        let levels: Vec<_> = probes.iter().filter_map(|probe| level(probe, load)).collect();
        Self::fit(&levels)
    }

    /// Fits the law; `None` with too few levels, or where the levels do not follow it.
    ///
    /// Weighted least squares by Gauss-Newton: residuals relative to the throughput, and longer
    /// levels count more. Intervals are percentiles of a bootstrap of the residuals (Efron, 1979),
    /// scaled for the coefficients that were fitted, and widened from the normal to Student's t.
    /// Kappa is kept only if its interval excludes 0. A misfit shows in residuals that follow each
    /// other in the order of the concurrency (Durbin and Watson, 1950), by the same bootstrap.
    pub fn fit(levels: &[Level]) -> Option<Self> {
        let mut levels = levels.to_vec();
        levels.retain(|level| level.concurrency >= 1.0 && level.throughput_per_s > 0.0);
        levels.sort_by(|a, b| a.concurrency.total_cmp(&b.concurrency));
        let (first, last) = (levels.first()?.concurrency, levels.last()?.concurrency);
        let distinct = distinct(&levels);
        if distinct < LEAST_LEVELS || last < first * LEAST_SPAN {
            return None;
        }
        let whole = Fitted::of(&levels, 3)?;
        let with_kappa = whole.coefficients.get(2).is_some_and(|kappa| kappa.low > 0.0);
        let fitted = if with_kappa { whole } else { Fitted::of(&levels, 2)? };
        let highest = levels.iter().map(|level| level.throughput_per_s).fold(0.0, f64::max);
        (!fitted.is_misfit).then_some(Self {
            lambda_per_s: *fitted.coefficients.first()?,
            sigma: *fitted.coefficients.get(1)?,
            kappa: fitted.coefficients.get(2).copied(),
            levels: distinct,
            concurrency: (first, last),
            highest_throughput_per_s: highest,
        })
    }
}

/// What a whole, valid and stable probe shows.
fn level(probe: &Probe, load: Load) -> Option<Level> {
    let figures = &probe.figures;
    let (offered, throughput_per_s) = (figures.offered_per_s?, figures.throughput_per_s?);
    let is_stable = throughput_per_s >= offered * STABLE;
    let concurrency = match load {
        Load::VirtualUsers => probe.load,
        Load::RequestsPerSecond => figures.in_flight?,
    };
    (probe.ended.is_none() && probe.state != State::Invalid && is_stable).then_some(Level {
        concurrency,
        throughput_per_s,
        seconds: probe.seconds,
    })
}

fn distinct(levels: &[Level]) -> usize {
    let mut counted = 0.0;
    let mut count = 0;
    for level in levels.iter().filter(|level| level.concurrency > 0.0) {
        if level.concurrency >= counted * APART {
            (counted, count) = (level.concurrency, count + 1);
        }
    }
    count
}

/// A law with intervals.
struct Fitted {
    coefficients: Vec<Coefficient>,
    is_misfit: bool,
}

impl Fitted {
    /// Fits the first `count` coefficients; the others are 0.
    fn of(levels: &[Level], count: usize) -> Option<Self> {
        let weights: Vec<_> = levels.iter().map(weight).collect();
        let law = least_squares(levels, &weights, count, linear(levels, count)?)?;
        let residuals = standardised(levels, &weights, law);
        let free = levels.len().checked_sub(count).filter(|free| *free > 0)? as f64;
        let mean = residuals.iter().sum::<f64>() / residuals.len() as f64;
        let scale = (levels.len() as f64 / free).sqrt();
        let errors: Vec<_> = residuals.iter().map(|error| (error - mean) * scale).collect();
        let (mut laws, mut followed) = (Vec::new(), 0_u64);
        let own = durbin_watson(&residuals);
        let mut rng = Seed(BOOTSTRAP.1).rng("usl", 0);
        for _ in 0..BOOTSTRAP.0 {
            let sample = resampled(levels, &weights, &errors, law, &mut rng);
            // A sample without a fit is none of the law's: it is as bad as the worst.
            if let Some(other) = least_squares(&sample, &weights, count, law) {
                let other_residuals = standardised(&sample, &weights, other);
                followed += u64::from(durbin_watson(&other_residuals) <= own);
                laws.push(other);
            }
        }
        let most = laws.len() as f64;
        if most < BOOTSTRAP.0 as f64 * 0.9 {
            return None;
        }
        let widened = critical_95(free) / NORMAL_95;
        let coefficients = (0..count)
            .map(|index: usize| {
                let mut values: Vec<_> = laws.iter().map(|law| law[index]).collect();
                values.sort_by(f64::total_cmp);
                let [least, most] = [0.025, 0.975]
                    .map(|q| plimsoll_stats::nearest_rank(&values, q).unwrap_or(f64::NAN));
                let value = law[index];
                let low = (value - least).mul_add(-widened, value);
                Coefficient { value, low, high: (most - value).mul_add(widened, value) }
            })
            .collect();
        Some(Self { coefficients, is_misfit: (followed as f64) < MISFIT * most })
    }
}

/// The normal distribution's critical value.
const NORMAL_95: f64 = 1.959_963_985;

fn weight(level: &Level) -> f64 {
    level.seconds.max(f64::MIN_POSITIVE) / level.throughput_per_s.powi(2)
}

/// What the law divides by.
fn slowed([_, sigma, kappa]: Law, n: f64) -> f64 {
    kappa.mul_add(n * (n - 1.0), sigma.mul_add(n - 1.0, 1.0))
}

fn throughput(law: Law, n: f64) -> f64 {
    law[0] * n / slowed(law, n)
}

/// Residuals of equal variance, if the weights are right.
fn standardised(levels: &[Level], weights: &[f64], law: Law) -> Vec<f64> {
    levels
        .iter()
        .zip(weights)
        .map(|(level, weight): (&Level, &f64)| {
            weight.sqrt() * (level.throughput_per_s - throughput(law, level.concurrency))
        })
        .collect()
}

/// The law, with errors drawn from those that were seen.
fn resampled(
    levels: &[Level],
    weights: &[f64],
    errors: &[f64],
    law: Law,
    rng: &mut Rng,
) -> Vec<Level> {
    levels
        .iter()
        .zip(weights)
        .map(&mut |(level, weight): (&Level, &f64)| {
            let drawn = usize::try_from(rng.below(errors.len() as u64)).unwrap_or_default();
            let error = errors.get(drawn).copied().unwrap_or_default() / weight.sqrt();
            Level { throughput_per_s: throughput(law, level.concurrency) + error, ..*level }
        })
        .collect()
}

/// Squares of the differences of neighbours by those of the values: 2 without correlation, less
/// where neighbours are alike.
fn durbin_watson(residuals: &[f64]) -> f64 {
    let squares: f64 = residuals.iter().map(|error| error * error).sum();
    let steps: f64 = residuals.windows(2).map(|two| (two[1] - two[0]).powi(2)).sum();
    if squares > 0.0 { steps / squares } else { 2.0 }
}

/// A first law: `N / X` is linear in `N - 1` and `N (N - 1)`.
fn linear(levels: &[Level], count: usize) -> Option<Law> {
    let mut normal = Normal::default();
    for level in levels {
        let (n, inverse) = (level.concurrency, level.concurrency / level.throughput_per_s);
        normal.add([1.0, n - 1.0, n * (n - 1.0)], inverse, 1.0 / (inverse * inverse));
    }
    let [first, sigma, kappa] = normal.solve(count)?;
    (first > 0.0).then(|| [1.0 / first, sigma / first, kappa / first])
}

/// Gauss-Newton with halved steps, from a first law.
fn least_squares(levels: &[Level], weights: &[f64], count: usize, first: Law) -> Option<Law> {
    const STEPS: usize = 50;
    const HALVINGS: u32 = 30;
    let mut law = first;
    let mut squares = squares(levels, weights, law);
    for _ in 0..STEPS {
        let mut normal = Normal::default();
        for (level, weight) in levels.iter().zip(weights) {
            let n = level.concurrency;
            let (x, by) = (throughput(law, n), slowed(law, n));
            let slopes = [n / by, -x * (n - 1.0) / by, -x * n * (n - 1.0) / by];
            normal.add(slopes, level.throughput_per_s - x, *weight);
        }
        let step = normal.solve(count)?;
        let tried = (0..HALVINGS).map(|halvings| {
            let scale = 0.5_f64.powi(i32::try_from(halvings).unwrap_or_default());
            let next = [0, 1, 2].map(|index: usize| step[index].mul_add(scale, law[index]));
            (next, self::squares(levels, weights, next))
        });
        let Some((next, less)) = { tried }.find(|(_, less)| *less <= squares) else {
            return Some(law);
        };
        let is_done = squares - less <= 1e-13 * squares;
        (law, squares) = (next, less);
        if is_done {
            return Some(law);
        }
    }
    None
}

/// Infinite for a law that is none.
fn squares(levels: &[Level], weights: &[f64], law: Law) -> f64 {
    if law[0] <= 0.0 || levels.iter().any(|level| slowed(law, level.concurrency) <= 0.0) {
        return f64::INFINITY;
    }
    standardised(levels, weights, law).iter().map(|error| error * error).sum()
}

/// Normal equations of up to three coefficients.
#[derive(Default)]
struct Normal {
    matrix: [[f64; 3]; 3],
    right: [f64; 3],
}

impl Normal {
    fn add(&mut self, row: Law, value: f64, weight: f64) {
        for (i, a) in row.into_iter().enumerate() {
            self.right[i] += weight * a * value;
            for (j, b) in row.into_iter().enumerate() {
                self.matrix[i][j] += weight * a * b;
            }
        }
    }

    /// Cholesky's method on the first `count` equations, scaled to a diagonal of ones: the squares
    /// of concurrencies differ by ten powers of ten.
    fn solve(&self, count: usize) -> Option<Law> {
        let scale = [0, 1, 2].map(|index: usize| self.matrix[index][index].sqrt());
        let mut factor = [[0.0_f64; 3]; 3];
        let mut solved = [0.0_f64; 3];
        for i in 0..count {
            for j in 0..=i {
                let known: f64 = (0..j).map(|k| factor[i][k] * factor[j][k]).sum();
                let rest = self.matrix[i][j] / (scale[i] * scale[j]) - known;
                factor[i][j] = entry(rest, (i != j).then(|| factor[j][j]))?;
            }
            let known: f64 = (0..i).map(|k| factor[i][k] * solved[k]).sum();
            solved[i] = (self.right[i] / scale[i] - known) / factor[i][i];
        }
        for i in (0..count).rev() {
            let known: f64 = (i + 1..count).map(|k| factor[k][i] * solved[k]).sum();
            solved[i] = (solved[i] - known) / factor[i][i];
        }
        Some([0, 1, 2].map(|index| if index < count { solved[index] / scale[index] } else { 0.0 }))
    }
}

/// An entry of Cholesky's factor, on the diagonal or below an entry of it; `None` if the equations
/// depend on each other.
fn entry(rest: f64, diagonal: Option<f64>) -> Option<f64> {
    const LEAST: f64 = 1e-12;
    let value = match diagonal {
        Some(diagonal) => rest / diagonal,
        None if rest > LEAST => rest.sqrt(),
        None => return None,
    };
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Phase, ProbeFigures};

    fn probe(load: f64, throughput: f64, in_flight: f64) -> Probe {
        Probe {
            load,
            seconds: 10.0,
            phase: Phase::Bracket,
            missed: 0,
            doubtful: 0,
            requests: 100,
            kept: None,
            state: State::Kept,
            invalid: None,
            ended: None,
            took_s: 12.0,
            figures: ProbeFigures {
                offered_per_s: Some(load),
                throughput_per_s: Some(throughput),
                in_flight: Some(in_flight),
                ..ProbeFigures::default()
            },
        }
    }

    #[test]
    fn only_whole_valid_and_stable_probes_are_levels() {
        let good = probe(100.0, 99.0, 7.0);
        let rate = |probe: &Probe| level(probe, Load::RequestsPerSecond).map(|l| l.concurrency);
        assert_eq!(rate(&good), Some(7.0));
        let users = Probe { load: 30.0, ..good.clone() };
        assert_eq!(level(&users, Load::VirtualUsers).map(|l| l.concurrency), Some(30.0));
        // The queue grows, or requests are refused.
        assert_eq!(rate(&probe(100.0, 96.0, 7.0)), None);
        assert_eq!(rate(&Probe { ended: Some("missed".to_owned()), ..good.clone() }), None);
        assert_eq!(rate(&Probe { state: State::Invalid, ..good }), None);
    }
}
