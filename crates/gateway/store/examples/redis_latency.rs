//! Latency of each operation of the Redis store, one after the other on one connection.
//!
//! `cargo run --release -p plimsoll-gateway-store --example redis_latency --
//! redis://127.0.0.1:6379` Writes keys that begin with `latency:`; they end by themselves.

use plimsoll_gateway_store::{
    Algorithm, Backend, Budget, CacheKey, CachedResponse, Charge, Grant, Limit, LimitKey, Lookup,
    RedisSettings, Store,
};
use std::error::Error;
use std::io::Write as _;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

const ROUNDS: usize = 20_000;
const MINUTE: Duration = Duration::from_mins(1);
const ACME: LimitKey<'static> = LimitKey::new("tenant", "acme");

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let settings = RedisSettings { prefix: "latency:".to_owned(), ..RedisSettings::new(url) };
    let backend = Backend::redis(settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = backend.attach().await;
        checks(&store).await?;
        budget(&store).await?;
        cache(&store).await
    })?;
    writeln!(std::io::stdout(), "errors: {}", backend.errors())?;
    Ok(())
}

async fn checks(store: &Store) -> Outcome {
    let requests = NonZeroU32::new(600).ok_or("not zero")?;
    for algorithm in [Algorithm::Sliding, Algorithm::Bucket] {
        let limit = Limit::new(requests, Duration::from_secs(1), algorithm)?;
        let charge = Charge { key: ACME, limit: &limit };
        measured(&format!("check {}", <&str>::from(algorithm)), async || {
            store.check(0, &[charge]).await?;
            Ok(())
        })
        .await?;
    }
    Ok(())
}

async fn budget(store: &Store) -> Outcome {
    let budget = Budget::new(1 << 40, Duration::from_hours(1))?;
    measured("budget reserve + settle", async || {
        if let Grant::Reserved(held) = store.reserve(0, ACME, &budget, 100).await? {
            held.settle(0, 50).await;
        }
        Ok(())
    })
    .await?;
    measured("budget state", async || {
        store.budget(0, ACME, &budget).await?;
        Ok(())
    })
    .await
}

async fn cache(store: &Store) -> Outcome {
    let key = CacheKey([7; 32]);
    if let Lookup::Lead(lead) = store.lookup(0, key).await {
        let frames = vec![vec![b'x'; 2_048].into()];
        lead.fill(0, CachedResponse { status: 200, headers: Vec::new(), frames }, MINUTE).await;
    }
    measured("cache get, 2 KiB", async || match store.lookup(0, key).await {
        Lookup::Hit(_) => Ok(()),
        _ => Err("not kept".into()),
    })
    .await?;
    let value = vec![b'x'; 256];
    measured("value put, 256 B", async || {
        Ok(store.put_value(0, key, value.clone().into(), MINUTE).await?)
    })
    .await?;
    measured("value get, 256 B", async || {
        store.value(0, &key).await?.ok_or("not kept")?;
        Ok(())
    })
    .await
}

/// Runs an operation many times and writes its percentiles in microseconds.
#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
async fn measured(name: &str, operation: impl AsyncFn() -> Outcome) -> Outcome {
    let mut took = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        operation().await?;
        took.push(start.elapsed().as_micros());
    }
    took.sort_unstable();
    let at = |share: usize| took.get(ROUNDS * share / 1_000).copied().unwrap_or(0);
    let (half, most, nearly) = (at(500), at(990), at(999));
    let line = format!("{name:<24} p50 {half:>5} us  p99 {most:>5} us  p99.9 {nearly:>5} us");
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
