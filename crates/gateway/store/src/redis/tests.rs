//! The limit script against plain definitions, at given times, in a real Redis.

use super::*;
use crate::{Algorithm, Backend, Limit, RateCounter, Store};
use std::num::NonZeroU32;

#[path = "../../tests/it/redis_server.rs"]
#[expect(dead_code, reason = "the tests of losses use more of it")]
mod redis_server;

/// A small generator, so that the times are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn attach(backend: &Backend, runtime: &tokio::runtime::Runtime) -> RedisStore {
    match runtime.block_on(backend.attach()) {
        Store::Redis(store) => store,
        Store::Memory(_) => unreachable!("a Redis backend"),
    }
}

/// Admissions at random times of two and a half times the limit, decided by the script and by the
/// memory counters, which have their own tests against independent models.
#[test]
fn the_script_decides_as_the_meters_do() {
    let server = redis_server::Redis::start();
    let runtime = redis_server::runtime();
    let mut settings = RedisSettings::new(server.url());
    settings.timeout = Duration::from_secs(5);
    let store = attach(&Backend::redis(settings).unwrap(), &runtime);
    let algorithms = [Algorithm::Sliding, Algorithm::Bucket];
    for algorithm in algorithms {
        let limit =
            Limit::new(NonZeroU32::new(20).unwrap(), Duration::from_hours(1), algorithm).unwrap();
        let (mut rate_counter, mut random) = (RateCounter::new(algorithm), Random(7));
        // Hours in seconds: keys expire by the server's clock, and must outlive their given time.
        let mut now = 1_000_000_000_u64;
        let mut admitted = 0;
        for step in 0..1_500 {
            now += random.next() % 144_000_000;
            let charge = Charge { key: LimitKey::new("tenant", "acme"), limit: &limit };
            let told = runtime.block_on(store.check(Some(now), &[charge])).unwrap();
            let expected = rate_counter.check(&limit, now * 1_000);
            assert_eq!(told.allowed, expected.allowed, "{algorithm:?} step {step}");
            assert_eq!(told.remaining, expected.remaining, "{algorithm:?} step {step}");
            let near = |a: Duration, b: Duration| a.abs_diff(b) <= Duration::from_micros(1);
            assert!(near(told.reset, expected.reset), "{algorithm:?} {step} {told:?} {expected:?}");
            assert!(near(told.retry_after, expected.retry_after), "{step} {told:?} {expected:?}");
            admitted += u32::from(told.allowed);
        }
        assert!(
            (500..700).contains(&admitted),
            "{algorithm:?} admitted {admitted} in 30 hours of 20"
        );
    }
}
