//! Cost of each operation of the memory store.
//!
//! `cargo bench -p plimsoll-gateway-store`. Targets: a check of one limit below 200 ns.

use divan::{Bencher, black_box};
use plimsoll_gateway_store::{
    Algorithm, Backend, Budget, CacheKey, CachedResponse, Charge, Grant, Limit, LimitKey, Limiter,
    Lookup, Sizes, Store,
};
use std::num::NonZeroU32;
use std::time::Duration;

fn main() {
    divan::main();
}

const NAMES: [&str; 4] = ["retail", "acme", "a-tenant-with-a-long-name", "b"];
const ALGORITHMS: [Algorithm; 2] = [Algorithm::Sliding, Algorithm::Bucket];

fn limit(requests: u32, algorithm: Algorithm) -> Option<Limit> {
    Limit::new(NonZeroU32::new(requests)?, Duration::from_mins(1), algorithm).ok()
}

/// Half of the requests are refused: 10,000 a second of a limit of 50 in 10 ms. Long enough that a
/// sample sees ten windows, and every slice of a sliding one is left and weighted.
#[divan::bench(args = ALGORITHMS.map(<&str>::from), sample_count = 100, sample_size = 1_000)]
fn check_one(bencher: Bencher<'_, '_>, name: &str) {
    let algorithm = ALGORITHMS.into_iter().find(|a| <&str>::from(a) == name).unwrap_or_default();
    let Some(requests) = NonZeroU32::new(50) else { return };
    let Ok(limit) = Limit::new(requests, Duration::from_millis(10), algorithm) else { return };
    let (limiter, mut now) = (Limiter::new(1 << 17), 0_u64);
    bencher.bench_local(|| {
        now += 100_000;
        let key = LimitKey::new("tenant", NAMES[0]);
        limiter.check(black_box(now), &[Charge { key, limit: &limit }])
    });
}

/// Global, tenant and key, as in the layered preset.
#[divan::bench]
fn check_three(bencher: Bencher<'_, '_>) {
    let Some(limit) = limit(u32::MAX, Algorithm::Sliding) else { return };
    let (limiter, mut now) = (Limiter::new(1 << 17), 0_u64);
    bencher.bench_local(|| {
        now += 100_000;
        let charge = |scope, name| Charge { key: LimitKey::new(scope, name), limit: &limit };
        let charges = [charge("global", ""), charge("tenant", NAMES[0]), charge("key", NAMES[1])];
        limiter.check(black_box(now), &charges)
    });
}

/// A runtime only because the interface is async: nothing waits.
fn memory() -> Option<(tokio::runtime::Runtime, Store)> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().ok()?;
    let store = runtime.block_on(Backend::memory(Sizes::default()).attach());
    Some((runtime, store))
}

#[divan::bench]
fn reserve_and_settle(bencher: Bencher<'_, '_>) {
    let Some((_, store)) = memory() else { return };
    let Ok(budget) = Budget::new(u64::MAX, Duration::from_hours(1)) else { return };
    bencher.bench_local(|| {
        ready(async {
            let key = LimitKey::new("tenant", NAMES[0]);
            if let Ok(Grant::Reserved(held)) = store.reserve(1, key, &budget, 100).await {
                held.settle(2, 50).await;
            }
        })
    });
}

#[divan::bench]
fn budget_state(bencher: Bencher<'_, '_>) {
    let Some((_, store)) = memory() else { return };
    let Ok(budget) = Budget::new(u64::MAX, Duration::from_hours(1)) else { return };
    bencher.bench_local(|| ready(store.budget(1, LimitKey::new("tenant", NAMES[0]), &budget)));
}

#[divan::bench]
fn cache_hit(bencher: Bencher<'_, '_>) {
    let Some((runtime, store)) = memory() else { return };
    for key in 0..=255 {
        runtime.block_on(async {
            if let Lookup::Lead(lead) = store.lookup(0, CacheKey([key; 32])).await {
                lead.fill(0, CachedResponse::default(), Duration::from_mins(1)).await;
            }
        });
    }
    let mut key = 0_u8;
    bencher.bench_local(|| {
        key = key.wrapping_add(1);
        ready(store.lookup(black_box(1), CacheKey([key; 32])))
    });
}

/// Polls once what is ready at once, without a runtime in the figure.
fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}
