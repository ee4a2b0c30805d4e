//! J9: who watches every second for five minutes, and stops at the first difference, finds one
//! between equal targets in 5 % of the runs only with intervals that are made for it.

use plimsoll_measure::{Rng, Seed};
use plimsoll_stats::looks::{FIRST_LOOK, critical, statistic};
use plimsoll_stats::student_t::critical_95;
use plimsoll_stats::woodruff::Batched;
use plimsoll_stats::{BATCHES_NEEDED, LimitCount, Looks, NoIntervalReason};

const SEED: u64 = 1_309;
const RUNS: u64 = 200;
const SECONDS: usize = 300;
const PER_SECOND: usize = 100;

/// Differences of pairs in milliseconds: autocorrelated within some ten pairs, and rare stalls of
/// either target.
fn differences(rng: &mut Rng, added: f64) -> Vec<f64> {
    let (phi, sd) = (0.9_f64, 0.1);
    let step = 0.6 * sd * (1.0 - phi * phi).sqrt();
    let (mut x, mut stall, mut left) = (0.0, 0.0, 0_u32);
    (0..SECONDS * PER_SECOND)
        .map(|_| {
            x = phi * x + step * rng.normal();
            if left == 0 && rng.uniform() < 2.0 / 1_500.0 {
                stall = 2.0 * rng.exponential() * if rng.uniform() < 0.5 { 1.0 } else { -1.0 };
                left = 20;
            }
            left = left.saturating_sub(1);
            let stalled = if left > 0 { stall } else { 0.0 };
            added + x + 0.8 * sd * rng.normal() + stalled
        })
        .collect()
}

fn below_zero(differences: &[f64]) -> Vec<LimitCount> {
    differences
        .chunks(PER_SECOND)
        .map(|second: &[f64]| LimitCount {
            within: second.iter().filter(|d| **d <= 0.0).count() as u64,
            all: second.len() as u64,
        })
        .collect()
}

/// The second of the first look at which the median is found to differ from 0.
fn stopped(counts: &[LimitCount], first: usize, critical: impl Fn(u64) -> f64) -> Option<usize> {
    (first..=counts.len()).find(|&second| {
        statistic(&counts[..second], 0.5).is_ok_and(|z| z.abs() > critical(second as u64))
    })
}

#[test]
fn looking_every_second_does_not_find_what_is_not_there() {
    let (mut valid, mut naive) = (0, 0);
    for run in 0..RUNS {
        let counts = below_zero(&differences(&mut Seed(SEED).rng("equal", run), 0.0));
        valid += u64::from(stopped(&counts, FIRST_LOOK as usize, |k| critical(k, 0.05)).is_some());
        let first = BATCHES_NEEDED as usize + 2;
        naive += u64::from(stopped(&counts, first, |k| critical_95((k - 1) as f64)).is_some());
    }
    println!("false alarms of {RUNS}: always-valid {valid}, naive peeking {naive}");
    assert!(valid <= 17, "{valid}");
    assert!(naive >= 40, "{naive}");
}

#[test]
fn twenty_microseconds_are_found_long_before_the_end() {
    let mut seconds: Vec<usize> = (0..RUNS)
        .map(|run| {
            let counts = below_zero(&differences(&mut Seed(SEED).rng("planted", run), 0.02));
            stopped(&counts, FIRST_LOOK as usize, |k| critical(k, 0.05)).unwrap_or(usize::MAX)
        })
        .collect();
    seconds.sort_unstable();
    println!("+20 us is found after {} s (median)", seconds[100]);
    assert!(seconds[100] <= 60 && seconds[189] < SECONDS, "{} {}", seconds[100], seconds[189]);
}

/// The interval ends at 0 where the statistic of 0 reaches the critical value.
#[test]
fn the_interval_excludes_zero_where_zero_is_contradicted() {
    let mut excluded = 0;
    for run in 0..20 {
        let differences = differences(&mut Seed(SEED).rng("interval", run), 0.01);
        let seconds = 20 + usize::try_from(run).unwrap() * 10;
        let seen = &differences[..seconds * PER_SECOND];
        let batches = seen.chunks(PER_SECOND).map(<[f64]>::to_vec).collect();
        let found = Batched::new(vec![batches]).looked_at(Looks::Always).estimate(0.5).unwrap();
        let z = statistic(&below_zero(seen), 0.5).unwrap();
        let possible = z.abs() < critical(seconds as u64, 0.05);
        assert_eq!(found.interval.contains(0.0), possible, "{found:?} {z}");
        assert_eq!(found.p_zero > 0.05, possible, "{found:?} {z}");
        excluded += u32::from(!possible);
    }
    assert!((1..20).contains(&excluded), "{excluded}");
}

/// Stages are one sequence; ties at 0 are no evidence; 19 batches are too few.
#[test]
fn what_holds_at_every_look_needs_twenty_batches_of_any_stage() {
    let estimate =
        |stages: Vec<Vec<Vec<f64>>>| Batched::new(stages).looked_at(Looks::Always).estimate(0.5);
    let stage = |batches: i32| -> Vec<Vec<f64>> {
        (0..batches).map(|_| (0..50).map(f64::from).collect()).collect()
    };
    assert_eq!(estimate(vec![stage(12), stage(7)]).err(), Some(NoIntervalReason::TooFewBatches));
    let found = estimate(vec![stage(14), stage(16)]).unwrap();
    assert!(found.interval.contains(24.5) && found.interval.half_width() < 5.0, "{found:?}");
    let mut zeros = vec![vec![0.0; 50]; 30];
    zeros[3][0] = -1.0;
    zeros[9][7] = 1.0;
    let found = estimate(vec![zeros]);
    assert!(found.is_err() || found.is_ok_and(|found| found.p_zero > 0.9));
}
