//! Coverage: the share of runs whose interval contains the true percentile, which is known here.

use super::*;
use plimsoll_measure::{Nanos, Rng, Seed};
use plimsoll_stats::LimitCount;

/// Runs per process; a share of 95 % of them has a standard error of 1.5 %.
const RUNS: u64 = 200;
/// As in a run of one minute: each lasts a second.
const BATCHES: usize = 60;
/// Requests of a batch.
const SIZE: usize = 100;

/// Draws the times of one run, in milliseconds.
type Process = fn(&mut Rng) -> Vec<f64>;

/// Independent, lognormal.
fn independent(rng: &mut Rng) -> Vec<f64> {
    (0..BATCHES * SIZE).map(|_| rng.normal().exp()).collect()
}

/// Lognormal of a first-order autoregression: a time is correlated with the ones before it over
/// some 20 requests, a fifth of a batch.
fn autoregressive(rng: &mut Rng) -> Vec<f64> {
    let (phi, mut x) = (0.9_f64, rng.normal());
    let noise = (1.0 - phi * phi).sqrt();
    (0..BATCHES * SIZE)
        .map(|_| {
            x = phi * x + noise * rng.normal();
            x.exp()
        })
        .collect()
}

/// Exponential with mean 1, but in bursts of about 30 requests, a fifth of the time, with mean 5.
fn bursty(rng: &mut Rng) -> Vec<f64> {
    let mut slow = rng.uniform() < 0.2;
    (0..BATCHES * SIZE)
        .map(|_| {
            let leave = if slow { 1.0 / 30.0 } else { 1.0 / 120.0 };
            slow ^= rng.uniform() < leave;
            rng.exponential() * if slow { 5.0 } else { 1.0 }
        })
        .collect()
}

/// Quantile of the lognormal processes: e to the power of the normal quantile.
fn lognormal(q: f64) -> f64 {
    if q > 0.5 { 2.326_347_874_040_8_f64.exp() } else { 1.0 }
}

/// Quantile of the bursty process by bisection of its distribution function.
fn mixture(q: f64) -> f64 {
    let (mut low, mut high) = (0.0, 100.0);
    for _ in 0..60 {
        let x: f64 = f64::midpoint(low, high);
        let share = 1.0 - 0.8 * (-x).exp() - 0.2 * (-x / 5.0).exp();
        if share < q { low = x } else { high = x }
    }
    high
}

fn distribution(times: &[f64]) -> Distribution {
    let mut distribution = Distribution::default();
    for ms in times {
        distribution.record(Nanos::from_secs_f64(ms / 1e3));
    }
    distribution
}

/// Batches of `size` requests.
fn ours(times: &[f64], whole: &Distribution, q: f64, size: usize) -> Option<(f64, f64)> {
    let limit = whole.nearest_rank(q)?.as_millis_f64();
    let counts: Vec<_> = times
        .chunks(size)
        .map(|batch: &[f64]| LimitCount {
            within: batch.iter().filter(|ms| **ms <= limit).count() as u64,
            all: batch.len() as u64,
        })
        .collect();
    let interval = interval(whole, q, &BatchVariance::of_shares(&counts).ok()?).ok()?;
    Some((interval.low, interval.high))
}

/// The interval of a tool that takes samples for independent: order statistics at
/// `np +- 1.96 sqrt(np(1-p))`.
fn naive(whole: &Distribution, q: f64) -> (f64, f64) {
    let half = 1.96 * (q * (1.0 - q) / whole.count() as f64).sqrt();
    let at = |share| whole.nearest_rank(share).unwrap().as_millis_f64();
    (at(q - half), at(q + half))
}

/// Shares of the runs whose interval covers the truth: ours with many batches, ours with ten, the
/// naive one.
fn coverage(process: Process, q: f64, truth: f64) -> [f64; 3] {
    let covers = |(low, high): (f64, f64)| low <= truth * 1.001 && truth <= high * 1.001;
    let mut covered = [0_u32; 3];
    for index in 0..RUNS {
        let times = process(&mut Seed(7).rng("coverage", index));
        let whole = distribution(&times);
        let batches = |count| ours(&times, &whole, q, times.len() / count).is_some_and(covers);
        let hits = [batches(BATCHES), batches(10), covers(naive(&whole, q))];
        covered.iter_mut().zip(hits).for_each(|(sum, hit)| *sum += u32::from(hit));
    }
    covered.map(|covered| f64::from(covered) / RUNS as f64)
}

#[test]
fn intervals_cover_the_truth_in_95_percent_of_runs_where_independence_fails() {
    // A process, its true percentiles, and the most that naive intervals may cover of them.
    type Case = (&'static str, Process, fn(f64) -> f64, f64);
    let processes: [Case; 3] = [
        ("independent", independent, lognormal, 1.0),
        ("autoregressive", autoregressive, lognormal, 0.65),
        ("bursty", bursty, mixture, 0.8),
    ];
    for (name, process, truth, naive_at_most) in processes {
        for q in [0.5, 0.99] {
            let [many, ten, naive] = coverage(process, q, truth(q));
            println!("{name} p{}: {many:.3}, ten batches {ten:.3}, naive {naive:.3}", q * 100.0);
            assert!((0.90..=0.99).contains(&many), "{name} {q}: {many}");
            assert!((0.90..=0.99).contains(&ten), "{name} {q}, ten batches: {ten}");
            assert!(naive <= naive_at_most, "{name} {q}: {naive}");
        }
    }
}
