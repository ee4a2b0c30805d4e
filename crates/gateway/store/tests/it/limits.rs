//! The limiter against models that share nothing with it, in memory.

use plimsoll_gateway_store::{
    Algorithm, Charge, Limit, LimitKey, Limiter, MemoryStore, RateCounter, Sizes,
};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

fn limit(requests: u32, window: Duration, algorithm: Algorithm) -> Limit {
    Limit::new(NonZeroU32::new(requests).unwrap(), window, algorithm).unwrap()
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[expect(clippy::cast_possible_truncation, reason = "a positive time")]
    fn gap(&mut self, mean: f64) -> u64 {
        (-(1.0 - self.unit()).ln() * mean) as u64
    }
}

/// Arrivals of a Poisson process with so many in a minute on average.
fn poisson(per_minute: f64, count: usize, seed: u64) -> Vec<u64> {
    let mut random = Random(seed);
    let mut now = 7 * SECOND;
    (0..count)
        .map(|_| {
            now += random.gap(60.0 * SECOND as f64 / per_minute);
            now
        })
        .collect()
}

/// Bursts of 1 to 60 within a tenth of a second, at random times, so many requests a minute on
/// average.
fn bursts(per_minute: f64, count: usize, seed: u64) -> Vec<u64> {
    let mut random = Random(seed);
    let mut start = 7 * SECOND;
    let mut out = Vec::with_capacity(count);
    while out.len() < count {
        start += random.gap(30.5 * 60.0 * SECOND as f64 / per_minute);
        let size = 1 + random.gap(1e9) % 60;
        let mut burst: Vec<u64> =
            (0..size).map(|_| start + random.gap(1e9) % (SECOND / 10)).collect();
        burst.sort_unstable();
        out.extend(burst);
    }
    out.sort_unstable();
    out
}

/// The exact model: a list of admitted times. Decisions one by one.
fn model(times: &[u64], requests: usize, window: u64) -> Vec<bool> {
    let mut admitted: Vec<u64> = Vec::new();
    let mut first = 0;
    times
        .iter()
        .map(|&now| {
            while first < admitted.len() && admitted[first] + window <= now {
                first += 1;
            }
            let free = admitted.len() - first < requests;
            if free {
                admitted.push(now);
            }
            free
        })
        .collect()
}

fn decisions(times: &[u64], limit: &Limit) -> Vec<bool> {
    let mut rate_counter = RateCounter::new(limit.algorithm());
    times.iter().map(|&now| rate_counter.check(limit, now).allowed).collect()
}

fn count(decisions: &[bool]) -> f64 {
    decisions.iter().filter(|&&admitted| admitted).count() as f64
}

/// Ten seconds of Poisson traffic, then fifty of silence, so many a minute on average.
fn swings(per_minute: f64, count: usize, seed: u64) -> Vec<u64> {
    let busy = poisson(per_minute * 6.0, count, seed);
    busy.into_iter().map(|at| at + at / (10 * SECOND) * 50 * SECOND).collect()
}

/// The long run at 3,000 a minute spans 1,600 windows: the model admits a whole limit at once
/// there, and a run that ends in the middle of one would look like an error of up to a limit.
#[test]
fn sliding_is_within_one_percent_of_the_model_for_steady_traffic_bursts_and_swings() {
    let limit = limit(600, Duration::from_mins(1), Algorithm::Sliding);
    let kinds =
        [("steady", poisson as fn(f64, usize, u64) -> _), ("bursts", bursts), ("swings", swings)];
    for (seed, rate) in [300.0, 540.0, 600.0, 660.0, 900.0, 3_000.0].into_iter().enumerate() {
        let arrivals = if rate > 1_000.0 { 1_000_000 } else { 300_000 };
        for (kind, make) in kinds {
            let times = make(rate, arrivals, seed as u64 + 1);
            let exact = count(&model(&times, 600, 60 * SECOND));
            let off = count(&decisions(&times, &limit)) / exact - 1.0;
            println!("{kind} {rate:>5} a minute: {:+.3} %", off * 100.0);
            assert!(off.abs() < 0.01, "{kind} {rate} a minute: {off}");
        }
    }
}

/// The most admitted within any span.
fn most_within(times: &[u64], admitted: &[bool], span: u64) -> usize {
    let kept: Vec<u64> = times.iter().zip(admitted).filter(|(_, a)| **a).map(|(t, _)| *t).collect();
    let mut first = 0;
    (0..kept.len())
        .map(|last| {
            while kept[first] + span <= kept[last] {
                first += 1;
            }
            last - first + 1
        })
        .max()
        .unwrap_or(0)
}

#[test]
fn sliding_never_admits_more_than_the_limit_in_thirty_of_its_thirty_one_slices() {
    let limit = limit(600, Duration::from_mins(1), Algorithm::Sliding);
    for (seed, make) in [poisson as fn(f64, usize, u64) -> _, bursts, swings].iter().enumerate() {
        let times = make(3_000.0, 200_000, seed as u64 + 1);
        let most = most_within(&times, &decisions(&times, &limit), 60 * SECOND / 31 * 30);
        assert!((580..=600).contains(&most), "{most}");
    }
}

/// The documented limit of `SlidingWindow`: a whole
/// limit at the end of a slice, and another while that slice leaves.
#[test]
fn sliding_lets_a_hostile_client_near_twice_the_limit_once_but_not_over_time() {
    let limit = limit(100, Duration::from_secs(31), Algorithm::Sliding);
    let burst = (0..100).map(|i| 63 * SECOND - 1_000 + i);
    let greedy = (0..400_000).map(|i| 63 * SECOND + i * 1_000_000);
    let times: Vec<u64> = burst.chain(greedy).collect();
    let admitted = decisions(&times, &limit);
    let most = most_within(&times, &admitted, 31 * SECOND);
    assert!((190..=200).contains(&most), "{most} within one window");
    // 400 seconds are 12.9 windows, with the burst before them 13.9 limits; with 1/30 more 14.4.
    let all = count(&admitted);
    assert!((1_300.0..=1_440.0).contains(&all), "{all} in 400 s");
}

/// A bucket of 7 filled at 7 a second, in exact sevenths of a nanosecond by the model's own
/// reckoning: a request is admitted if for every earlier admission i, those from i on number at
/// most 7 + 7 x time.
#[test]
fn the_bucket_admits_what_its_envelope_allows() {
    let limit = limit(7, Duration::from_secs(1), Algorithm::Bucket);
    let times = poisson(900.0, 1_500, 5);
    let mut admitted: Vec<u64> = Vec::new();
    let expected: Vec<bool> = times
        .iter()
        .map(|&now| {
            let fits = admitted.iter().rev().zip(2_u128..).all(|(&since, number)| {
                number * u128::from(SECOND) <= 7 * u128::from(SECOND) + 7 * u128::from(now - since)
            });
            if fits {
                admitted.push(now);
            }
            fits
        })
        .collect();
    assert_eq!(decisions(&times, &limit), expected);
    assert!((300..1_400).contains(&admitted.len()), "both answers occur: {}", admitted.len());
}

#[test]
fn after_the_wait_that_was_told_a_request_is_admitted_and_not_before() {
    for algorithm in [Algorithm::Sliding, Algorithm::Bucket] {
        let limit = limit(13, Duration::from_millis(1_700), algorithm);
        let mut rate_counter = RateCounter::new(algorithm);
        let mut refusals = 0;
        for now in poisson(1_200.0, 3_000, 11) {
            let told = rate_counter.check(&limit, now);
            if told.allowed {
                continue;
            }
            refusals += 1;
            let wait = u64::try_from(told.retry_after.as_nanos()).unwrap();
            assert!(wait > 0, "{algorithm:?}");
            assert!(rate_counter.peek(&limit, now + wait).allowed, "{algorithm:?} after {wait}");
            assert!(
                !rate_counter.peek(&limit, now + wait - 1).allowed,
                "{algorithm:?} before {wait}"
            );
            let reset = u64::try_from(told.reset.as_nanos()).unwrap();
            assert_eq!(
                rate_counter.peek(&limit, now + reset).remaining,
                12,
                "{algorithm:?} is all free"
            );
        }
        assert!(refusals > 100, "{algorithm:?}: {refusals}");
    }
}

#[test]
fn of_several_limits_all_are_charged_or_none() {
    let limiter = Limiter::new(1_000);
    let (global, tenant) = (
        limit(5, Duration::from_mins(1), Algorithm::Sliding),
        limit(3, Duration::from_mins(1), Algorithm::Bucket),
    );
    let check = |name| {
        let charges = [
            Charge { key: LimitKey::new("global", ""), limit: &global },
            Charge { key: LimitKey::new("tenant", name), limit: &tenant },
        ];
        limiter.check(SECOND, &charges).unwrap()
    };
    let first: Vec<_> = (0..3).map(|_| check("a")).collect();
    assert_eq!(
        first.iter().map(|d| (d.charge, d.remaining)).collect::<Vec<_>>(),
        [(1, 2), (1, 1), (1, 0)]
    );
    let refused = check("a");
    assert!(!refused.allowed);
    assert_eq!((refused.charge, refused.limit), (1, 3), "the tenant's limit speaks");
    // The refusals took nothing of the five.
    assert!(check("b").allowed);
    let last = check("b");
    assert!(last.allowed);
    assert_eq!((last.charge, last.remaining), (0, 0), "the global one speaks");
    assert!(!check("c").allowed);
    assert_eq!(limiter.keys(), 3, "a refused request makes no key");
}

#[test]
fn sixty_four_threads_are_never_admitted_more_than_the_limit() {
    for algorithm in [Algorithm::Sliding, Algorithm::Bucket] {
        let store = Arc::new(MemoryStore::new(Sizes::default()));
        let threads: Vec<_> = (0..64)
            .map(|thread| {
                let store = Arc::clone(&store);
                std::thread::spawn(move || {
                    let global = limit(1_000, Duration::from_hours(1), algorithm);
                    let own = limit(400, Duration::from_hours(1), algorithm);
                    let name = ["a", "b", "c", "d"][thread % 4];
                    let charges = [
                        Charge { key: LimitKey::new("tenant", name), limit: &own },
                        Charge { key: LimitKey::new("global", ""), limit: &global },
                    ];
                    (0..500).filter(|_| store.check(SECOND, &charges).unwrap().allowed).count()
                })
            })
            .collect();
        let admitted: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(admitted, 1_000, "{algorithm:?}");
    }
}

#[test]
fn a_flood_of_keys_stays_within_the_bound_and_spares_the_heavy_user() {
    let limiter = Limiter::new(6_400);
    let limit = limit(100, Duration::from_mins(1), Algorithm::Sliding);
    let check = |now, name: &str| {
        let charge = Charge { key: LimitKey::new("address", name), limit: &limit };
        limiter.check(now, &[charge]).unwrap().allowed
    };
    assert_eq!((0..150).filter(|_| check(SECOND, "heavy")).count(), 100);
    for number in 0..200_000 {
        assert!(check(SECOND, &number.to_string()));
    }
    assert_eq!(limiter.keys(), 6_400);
    assert!(!check(SECOND, "heavy"), "still known");
}

#[test]
fn idle_keys_make_room_so_that_a_steady_turnover_does_not_fill_the_table() {
    let limiter = Limiter::new(64_000);
    let limit = limit(100, Duration::from_secs(1), Algorithm::Bucket);
    // A hundred new keys a millisecond, each idle after a second at most: about 1,000 are in use.
    for number in 0..60_000_u64 {
        let name = number.to_string();
        let charge = Charge { key: LimitKey::new("address", &name), limit: &limit };
        limiter.check(number * SECOND / 1_000, &[charge]).unwrap();
    }
    assert!(limiter.keys() < 8_000, "{} keys", limiter.keys());
}
