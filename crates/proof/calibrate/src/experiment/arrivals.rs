//! T6, T7 and T8: requests arrive at the server when the schedule says, by the kernel's timestamps
//! on the server's side.

use std::fmt::Write as _;
use std::fs;

use plimsoll_engine::Control;
use plimsoll_measure::{Moment, MonotonicClock, Seed};
use plimsoll_runner::Finished;
use plimsoll_stats::descriptive::{ascending, mean, quantile, variance};

use super::{NUMBERED, Observations, SMALL};
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::runner::{Runner, plan};
use crate::server::{NullSpec, ReceivedRequest, ServerSpec};

/// A stage before the measured one, so that its first request need not wait for a connection.
const WARM_UP: &str = "w@100:200ms";
/// The requests of [`WARM_UP`].
const WARM_UP_REQUESTS: u64 = 20;

/// Times of arrival at the server, in seconds since the measured stage began, in the order of the
/// schedule.
fn arrivals(run: &Finished, mut received: Vec<ReceivedRequest>) -> Vec<f64> {
    received.retain(|received| received.seq >= WARM_UP_REQUESTS);
    received.sort_unstable_by_key(|received| received.seq);
    let origin = run.stage_began(1);
    received.iter().map(|received| (received.at as f64 - origin as f64) / 1e9).collect()
}

fn run(runner: &Runner, profile: &str) -> Result<Vec<f64>, CalibrateError> {
    let server = runner.serve(ServerSpec::Null(NullSpec { log: true, ..NullSpec::default() }))?;
    let run = runner.run(&server.url(), &format!("{NUMBERED}{profile}"))?;
    Ok(arrivals(&run, server.finish()?.received))
}

/// Maximum number of runs at a rate: the errors of the pacer are in every run, the pauses of a host
/// only in some.
const RUNS: usize = 3;

/// T6: constant rates up to the highest of this host. The counts must be right in every run, the
/// gaps in one of them.
pub(super) fn t6_rates(runner: &Runner) -> Result<Observations, CalibrateError> {
    let mut rates = vec![(1.0, 2.0), (7.0, 1.0), (333.0, 1.0), (1_000.0, 1.5), (33_333.0, 0.5)];
    let capacity = runner.floor.get().map_or(f64::NAN, |floor| floor.highest_rate);
    rates.extend(capacity.is_finite().then(|| ((capacity * 0.45).floor(), 0.5)));
    let time_factor = runner.usual_or_full(1.0, 5.0);
    let (mut checks, mut notes) = (Vec::new(), Vec::new());
    for (rate, seconds) in rates {
        let (seconds, mut gaps) = (seconds * time_factor, Vec::new());
        for number in 1..=RUNS {
            let times = run(runner, &format!("stages: '{WARM_UP},@{rate}:{}ms'\n", seconds * 1e3))?;
            let (expected, count) = (rate * seconds, times.len() as f64);
            checks.push(Check::within(format!("requests at {rate}/s"), "", count, expected, 1.0));
            if rate > capacity / 2.0 {
                notes.push(format!("{rate}/s: gaps are not judged above half of the host's rate"));
            } else {
                gaps = vec![gap_error(runner, rate, seconds, &times, number)?];
                gaps.extend(empty_milliseconds(rate, seconds, &times, number));
            }
            if gaps.iter().all(Check::passes) {
                break;
            }
        }
        checks.extend(gaps);
    }
    Ok(Observations { checks, notes })
}

/// Largest error of gaps that is always acceptable, in microseconds.
const GAP_ERROR_US: f64 = 100.0;

/// A larger error may be the host's. It is accepted up to 1.5 times the error of a bare timer,
/// which is measured on the same core for the same time.
fn gap_error(
    runner: &Runner,
    rate: f64,
    seconds: f64,
    times: &[f64],
    number: usize,
) -> Result<Check, CalibrateError> {
    let error = gap_error_us(rate, times);
    let what = format!("gap error p99 at {rate}/s, run {number} of at most {RUNS}");
    if error <= GAP_ERROR_US {
        return Ok(Check::at_most(what, "us", error, GAP_ERROR_US));
    }
    let host = gap_error_us(rate, &runner.bare_timer(rate, seconds)?);
    let bound = (host * 1.5).max(GAP_ERROR_US);
    Ok(Check::at_most(format!("{what}, a bare timer's {host:.0} us"), "us", error, bound))
}

fn gap_error_us(rate: f64, times: &[f64]) -> f64 {
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
    let errors = ascending(gaps.map(|gap| (gap - 1.0 / rate).abs() * 1e6).collect());
    quantile(&errors, 0.99)
}

/// A pacer with a resolution of a millisecond or worse would leave milliseconds out.
fn empty_milliseconds(rate: f64, seconds: f64, times: &[f64], number: usize) -> Option<Check> {
    // With at least three expected arrivals in each slot, an evenly spaced process leaves none
    // empty.
    let dense = rate * seconds >= 3_000.0;
    let empty = counts(times, seconds, 1_000).iter().filter(|&&count| count == 0.0).count();
    let what = format!("slices of {seconds} ms without a request at {rate}/s, run {number}");
    dense.then(|| Check::at_most(what, "", empty as f64, 10.0))
}

const POISSON_RATE: f64 = 1_000.0;

/// How unlikely gaps may be. Seeds are drawn, so that a fault that one seed hides is found by
/// others; one calibration in thousands has a draw beyond it.
const LEAST_P: f64 = 1e-4;
/// Standard deviations that the dispersion index may be away from one.
const MOST_DEVIATIONS: f64 = 4.5;

/// T7: Poisson arrivals, over one and several workers and over shards, each with a seed of its own
/// that is drawn and noted.
pub(super) fn t7_poisson(runner: &Runner) -> Result<Observations, CalibrateError> {
    let seconds = runner.usual_or_full(1.0, 20.0);
    let mut rng = Seed(MonotonicClock::start().unix_nanos(Moment::EPOCH)).rng("seeds", 0);
    let [one_worker, two_workers, two_shards] = [0; 3].map(|_| rng.below(1_000_000));
    let profile = format!("stages: '{WARM_UP},@{POISSON_RATE}:{seconds}s'\narrivals: poisson\n");
    let one = run(runner, &format!("{profile}seed: {one_worker}\n"))?;
    let mut checks = poisson_checks("1 worker", &one, seconds).to_vec();
    // Two workers need not send in the order of the plan, so the gaps come from the server's
    // record.
    let two = run(runner, &format!("{profile}seed: {two_workers}\nworkers: 2\n"))?;
    checks.extend(poisson_checks("2 workers", &ascending(two), seconds));
    let profile = format!("{NUMBERED}{profile}seed: {two_shards}\nworkers: 2\n");
    checks.extend(poisson_checks("2 shards", &shards(runner, &profile)?, seconds));
    let seeds = format!("seeds drawn: {one_worker}, {two_workers}, {two_shards}");
    Ok(Observations { checks, notes: vec![seeds] })
}

fn shards(runner: &Runner, profile: &str) -> Result<Vec<f64>, CalibrateError> {
    let mut times = Vec::new();
    for shard in ["0/2", "1/2"] {
        let server =
            runner.serve(ServerSpec::Null(NullSpec { log: true, ..NullSpec::default() }))?;
        let run = runner.run_plan(plan(&server.url(), profile, Some(shard))?, &Control::new())?;
        times.extend(arrivals(&run, server.finish()?.received));
    }
    Ok(ascending(times))
}

fn poisson_checks(name: &str, times: &[f64], seconds: f64) -> [Check; 2] {
    let gaps = ascending(times.windows(2).map(|pair| pair[1] - pair[0]).collect());
    let p = kolmogorov_smirnov(&gaps, |gap| -(-gap * POISSON_RATE).exp_m1());
    // One request is expected in each window.
    #[expect(clippy::cast_possible_truncation, reason = "a few thousand")]
    let windows = (seconds * POISSON_RATE) as usize;
    let index = dispersion(times, seconds, windows);
    // For n Poisson counts, variance over mean has a variance of about 2 / (n - 1).
    let tolerance = MOST_DEVIATIONS * (2.0 / (windows as f64 - 1.0)).sqrt();
    let [distance, spread] =
        ["Kolmogorov-Smirnov p", "dispersion index"].map(|what| format!("{name}: {what}"));
    [Check::at_least(distance, "", p, LEAST_P), Check::within(spread, "", index, 1.0, tolerance)]
}

/// A ramp from 100/s to 2,000/s in `T` = 2 s: `N(t) = 100 t + (1900 / 2T) t^2` requests until `t`.
fn ramp(t: f64) -> f64 {
    100.0 * t + 1_900.0 / 4.0 * t * t
}

/// A trace has its row `k` at `2 (k / 400)^2` seconds.
const ROWS: u32 = 400;
const TRACE_S: f64 = 2.0;

fn row_s(row: u32) -> f64 {
    TRACE_S * (f64::from(row) / f64::from(ROWS)).powi(2)
}

/// T8: a ramp and a recorded trace, against the closed form.
pub(super) fn t8_shapes(runner: &Runner) -> Result<Observations, CalibrateError> {
    let times = run(runner, &format!("stages: '{WARM_UP},@100..2000:2s'\n"))?;
    let mut checks = cumulative("ramp", &times, ramp);
    checks.extend(trace(runner)?);
    Ok(checks.into())
}

/// The number of requests until both full seconds, against the closed form.
fn cumulative(name: &str, times: &[f64], expected: impl Fn(f64) -> f64) -> Vec<Check> {
    [1.0, 2.0]
        .into_iter()
        .map(|second| {
            let count = times.iter().filter(|&&time| time < second).count();
            let what = format!("{name}: requests until {second} s");
            Check::within(what, "", count as f64, expected(second), 1.0)
        })
        .collect()
}

fn trace(runner: &Runner) -> Result<Vec<Check>, CalibrateError> {
    let file = runner.temp_dir().join("trace.csv");
    let mut text = "TIMESTAMP,ContextTokens,GeneratedTokens\n".to_owned();
    for row in 0..ROWS {
        // The recording is at half the speed; `time_scale` doubles it.
        let at = row_s(row) * 2.0;
        // Writing to a `String` never fails.
        let _ = writeln!(text, "2023-11-16 18:00:{at:010.7},20,1");
    }
    fs::write(&file, text).map_err(CalibrateError::system("cannot write a trace"))?;
    let mock = runner.mock("")?;
    let profile = format!(
        "{SMALL}stages: 'trace:{TRACE_S}s'\ntrace: {{file: {}, format: azure, time_scale: 2}}\n",
        file.display()
    );
    let run = runner.run(&mock.url(), &profile)?;
    let log = mock.finish()?.requests;
    let origin = run.stage_began(0);
    let times: Vec<f64> =
        ascending(log.iter().map(|r| (r.arrived as f64 - origin as f64) / 1e9).collect());
    let lateness = ascending(
        times.iter().zip(0..).map(|(time, row)| (time - row_s(row)).abs() * 1e6).collect(),
    );
    let mut checks =
        cumulative("trace", &times, |t| (0..ROWS).filter(|&row| row_s(row) < t).count() as f64);
    checks.push(Check::exact("trace: requests", times.len(), ROWS as usize));
    let p50 = quantile(&lateness, 0.5);
    checks.push(Check::at_most("trace: distance from the recorded time, p50", "us", p50, 100.0));
    Ok(checks)
}

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
        // Four windows of half a second: [0, 0.5), [0.5, 1), [1, 1.5), [1.5, 2); 2.0 is outside
        // all.
        let times = [0.0, 0.49, 0.5, 1.7, 1.9, 2.0];
        assert_eq!(counts(&times, 2.0, 4), [2.0, 1.0, 0.0, 2.0]);
        // Their mean is 5/4, their variance (0.5625 + 0.0625 + 1.5625 + 0.5625) / 3 = 11/12.
        close(dispersion(&times, 2.0, 4), 11.0 / 15.0, 1e-12);
    }
}
