//! Measures the time of each store operation, one request at a time, in memory and in Redis.

use std::future::{Future as _, poll_fn};
use std::num::NonZeroU32;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use plimsoll_gateway_store::{
    Algorithm, Backend, Budget, CacheKey, CachedResponse, Charge, Limit, LimitKey, Lookup,
    RedisSettings, Sizes, Store, StoreError,
};
use plimsoll_measure::{Clock as _, MonotonicClock, Nanos};
use plimsoll_metrics::Distribution;
use plimsoll_report::format::{count, digits, or_dash, time, time_us};
use tokio::runtime::Builder;

use crate::bound::{BoundResult, Requirement};
use crate::error::SuiteError;
use crate::report::Section;
use crate::runner::SuiteRunner;
use crate::suite::RedisServer;
use crate::suite::columns::{self, Column};

/// The times of one operation.
#[derive(Clone, Debug)]
struct StoreOp {
    operation: &'static str,
    store: &'static str,
    times: Distribution,
    /// Operations per second with [`AT_ONCE`] at once.
    per_s: f64,
}

/// Operations at once for their throughput, as the workers of a gateway have them.
const AT_ONCE: usize = 64;

/// Measured rounds of all operations; a quarter with `--short`.
const ROUNDS: usize = 20_000;
/// Rounds before the measured ones.
const WARM_UP_ROUNDS: usize = 500;

/// Measures the in-memory store, and Redis if this host has it.
#[expect(clippy::unnecessary_wraps, reason = "a step as all others")]
pub(super) fn measure(runner: &mut SuiteRunner<'_>) -> Result<(), SuiteError> {
    runner.section = "Store operations, one after another";
    if !runner.measures_own() {
        return Ok(());
    }
    let count = if runner.options.short { ROUNDS / 4 } else { ROUNDS };
    let mut rows = Vec::new();
    runner.log(runner.section);
    match measure_store("memory", &Backend::memory(Sizes::default()), count) {
        Ok(ops) => rows.extend(ops),
        Err(why) => runner.skip("memory", &why),
    }
    let redis =
        open_redis(runner).and_then(|(_server, backend)| measure_store("Redis", &backend, count));
    match redis {
        Ok(ops) => rows.extend(ops),
        Err(why) => runner.skip("Redis", &why),
    }
    // The published benchmark's goal of a millisecond, on the p99 of each.
    let bounds = rows.iter().map(|op| {
        let p99 = op.times.quantile(0.99).map(Nanos::as_millis_f64);
        let what = format!("{}, {}: p99", op.operation, op.store);
        BoundResult::time(&what, p99, Requirement::below(1.0, time)).into_goal()
    });
    runner.report.bounds.extend(bounds);
    if !rows.is_empty() {
        runner.report.sections.push(section(&rows));
    }
    Ok(())
}

fn section(rows: &[StoreOp]) -> Section {
    let columns: [Column<StoreOp>; 7] = [
        ("Operation", |op| op.operation.to_owned()),
        ("Store", |op| op.store.to_owned()),
        ("p50", |op| micros(op.times.quantile(0.5))),
        ("p99", |op| micros(op.times.quantile(0.99))),
        ("Max", |op| micros(op.times.max())),
        ("Count", |op| count(op.times.count())),
        ("ops/s, 64 at once", |op| digits(op.per_s)),
    ];
    let title = "Store operations, one after another (target: each < 1 ms)";
    Section::new(title, columns::table(&columns, rows))
}

fn micros(value: Option<Nanos>) -> String {
    // A histogram's step is longer than such an operation.
    or_dash(value.map(Nanos::as_micros_f64), |micros| {
        if micros < 1.0 { "<1us".to_owned() } else { time_us(micros) }
    })
}

/// Starts a Redis server, and opens a store in it.
fn open_redis(runner: &SuiteRunner<'_>) -> Result<(RedisServer, Backend), String> {
    let server = RedisServer::open(runner)?;
    let backend = Backend::redis(RedisSettings::new(server.url()));
    Ok((server, backend.map_err(|error| error.to_string())?))
}

fn measure_store(
    store: &'static str,
    backend: &Backend,
    count: usize,
) -> Result<Vec<StoreOp>, String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let all = runtime.block_on(async {
        let attached = backend.attach().await;
        operations(store, &attached, count).await
    });
    let all = all.map_err(|error| error.to_string())?;
    // If the store is unreachable, every operation passes at once: a fast and meaningless time.
    if backend.errors() > 0 {
        return Err(format!("{} operations had no answer", backend.errors()));
    }
    Ok(all)
}

async fn operations(
    name: &'static str,
    store: &Store,
    count: usize,
) -> Result<Vec<StoreOp>, StoreError> {
    let clock = MonotonicClock::start();
    let now = || clock.now().as_nanos();
    let requests = NonZeroU32::MAX;
    let limit = Limit::new(requests, Duration::from_mins(1), Algorithm::Sliding)?;
    let budget = Budget::new(u64::from(u32::MAX), Duration::from_hours(24))?;
    let tenant = LimitKey::new("tenant", "retail");
    let (response, session) = (CacheKey([1; 32]), CacheKey([2; 32]));
    let ttl = Duration::from_mins(10);
    if let Lookup::Lead(lead) = store.lookup(now(), response).await {
        let frames = vec![Bytes::from(vec![b'x'; 1_024])];
        lead.fill(now(), CachedResponse { status: 200, headers: Vec::new(), frames }, ttl).await;
    }
    store.put_value(now(), session, Bytes::from(vec![b'x'; 512]), ttl).await?;
    let check =
        async || store.check(now(), &[Charge { key: tenant, limit: &limit }]).await.map(drop);
    let look = async || {
        drop(store.lookup(now(), response).await);
        Ok(())
    };
    let budgeted = async || store.budget(now(), tenant, &budget).await.map(drop);
    let value = async || store.value(now(), &session).await.map(drop);
    let (clock, store) = (&clock, name);
    Ok(vec![
        timed("rate-limit check (atomic sliding window)", store, clock, count, check).await?,
        timed("cache get", store, clock, count, look).await?,
        timed("budget get", store, clock, count, budgeted).await?,
        timed("session get", store, clock, count, value).await?,
    ])
}

/// Times an operation of a store, one after another, and many at once.
async fn timed(
    operation: &'static str,
    store: &'static str,
    clock: &MonotonicClock,
    count: usize,
    carry_out: impl AsyncFn() -> Result<(), StoreError>,
) -> Result<StoreOp, StoreError> {
    let mut times = Distribution::default();
    for round in 0..count + WARM_UP_ROUNDS {
        let began = clock.now();
        carry_out().await?;
        if round >= WARM_UP_ROUNDS {
            times.record(clock.now().since(began));
        }
    }
    let per_s = rate(clock, count / AT_ONCE, carry_out).await?;
    Ok(StoreOp { operation, store, times, per_s })
}

/// Operations per second with [`AT_ONCE`] in flight, each of which is repeated.
async fn rate(
    clock: &MonotonicClock,
    rounds: usize,
    operation: impl AsyncFn() -> Result<(), StoreError>,
) -> Result<f64, StoreError> {
    let began = clock.now();
    let one_after_another = async || {
        for _ in 0..rounds {
            operation().await?;
        }
        Ok::<_, StoreError>(())
    };
    let mut all: Vec<_> = (0..AT_ONCE).map(|_| Some(Box::pin(one_after_another()))).collect();
    poll_fn(|context| {
        for one in &mut all {
            let Some(running) = one else { continue };
            let Poll::Ready(done) = running.as_mut().poll(context) else { continue };
            *one = None;
            done?;
        }
        if all.iter().all(Option::is_none) { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await?;
    let took = clock.now().since(began).as_secs_f64();
    Ok((rounds * AT_ONCE) as f64 / took.max(f64::EPSILON))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_of_the_in_memory_store_is_timed() {
        let backend = Backend::memory(Sizes::default());
        let rows = measure_store("memory", &backend, 200).unwrap();
        assert_eq!(rows.len(), 4);
        for row in &rows {
            assert_eq!(row.times.count(), 200, "{}", row.operation);
            assert!(row.times.mean().unwrap() < Nanos::from_millis(50), "{}", row.operation);
        }
        assert!(rows.iter().all(|row| row.per_s > 1_000.0), "{rows:?}");
        // Three rounds of 64 at once.
        assert_eq!(backend.cache_counts().hits, 700 + 3 * 64);
    }
}
