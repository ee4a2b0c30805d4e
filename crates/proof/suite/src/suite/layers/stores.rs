//! Store operations one by one, in memory and in Redis: what a single request waits for.

use std::num::NonZeroU32;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use plimsoll_gateway_store::{
    Algorithm, Answer, Backend, Budget, CacheKey, Charge, Limit, LimitKey, Lookup, RedisSettings,
    Sizes, Store, StoreError,
};
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};
use plimsoll_metrics::Distribution;
use tokio::runtime::Builder;

use crate::bench::Bench;
use crate::gate::{Bound, Gate};
use crate::words::millis;

/// What a single operation takes.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) operation: &'static str,
    pub(super) store: &'static str,
    pub(super) times: Distribution,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Stores {
    pub(super) rows: Vec<Row>,
}

impl Stores {
    /// The seed's bound of a millisecond, on the p99 of each.
    pub(super) fn gates(&self) -> Vec<Gate> {
        let gate = |row: &Row| {
            let p99 = row.times.quantile(0.99).map(Nanos::as_millis_f64);
            let what = format!("{}, {}: p99", row.operation, row.store);
            Gate::value(&what, p99, Bound::below(1.0, millis)).target()
        };
        self.rows.iter().map(gate).collect()
    }
}

const OPERATIONS: usize = 20_000;
const WARM: usize = 500;

/// Measures with the embedded store, and with a Redis that is started for it where there is one.
pub(super) fn measure(bench: &mut Bench<'_>) -> Stores {
    let mut stores = Stores::default();
    if bench.is_over() {
        return stores;
    }
    bench.say("store operations, embedded");
    let count = if bench.order.quick { OPERATIONS / 4 } else { OPERATIONS };
    let embedded = Backend::memory(Sizes::default());
    match rows("embedded", &embedded, count) {
        Ok(rows) => stores.rows.extend(rows),
        Err(error) => bench.skip("store operations, embedded", &error),
    }
    match Redis::start(&bench.order.exe, &bench.order.folder) {
        Err(why) => bench.skip("store operations with Redis", &why),
        Ok(redis) => {
            bench.say("store operations, Redis");
            let backend = Backend::redis(RedisSettings::new(redis.url()));
            let done = backend.map_err(|error| error.to_string());
            match done.and_then(|backend| rows("Redis", &backend, count)) {
                Ok(rows) => stores.rows.extend(rows),
                Err(error) => bench.skip("store operations with Redis", &error),
            }
        }
    }
    stores
}

fn rows(store: &'static str, backend: &Backend, count: usize) -> Result<Vec<Row>, String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let all = runtime.block_on(async {
        let subject = backend.attach().await;
        operations(&subject, count).await
    });
    let all = all.map_err(|error| error.to_string())?;
    // A store that is lost lets everything pass at once: fast, and not what was to be measured.
    if backend.errors() > 0 {
        return Err(format!("{} operations had no answer", backend.errors()));
    }
    Ok(all.into_iter().map(|(operation, times)| Row { operation, store, times }).collect())
}

type Timed = (&'static str, Distribution);

async fn operations(store: &Store, count: usize) -> Result<Vec<Timed>, StoreError> {
    let clock = MonotonicClock::start();
    let now = || clock.now().as_nanos();
    let requests = NonZeroU32::MAX;
    let limit = Limit::new(requests, Duration::from_mins(1), Algorithm::Sliding)?;
    let budget = Budget::new(u64::from(u32::MAX), Duration::from_hours(24))?;
    let tenant = LimitKey::new("tenant", "retail");
    let (answer, session) = (CacheKey([1; 32]), CacheKey([2; 32]));
    let ttl = Duration::from_mins(10);
    if let Lookup::Lead(lead) = store.lookup(now(), answer).await {
        let frames = vec![Bytes::from(vec![b'x'; 1_024])];
        lead.fill(now(), Answer { status: 200, headers: Vec::new(), frames }, ttl).await;
    }
    store.put_value(now(), session, Bytes::from(vec![b'x'; 512]), ttl).await?;
    let mut all = [const { None }; 4].map(|_: Option<()>| Distribution::default());
    for round in 0..count + WARM {
        let began = clock.now();
        store.check(now(), &[Charge { key: tenant, limit: &limit }]).await?;
        let checked = clock.now();
        drop(store.lookup(now(), answer).await);
        let looked = clock.now();
        store.budget(now(), tenant, &budget).await?;
        let budgeted = clock.now();
        store.value(now(), &session).await?;
        if round >= WARM {
            let ends = [began, checked, looked, budgeted, clock.now()];
            record(&mut all, ends);
        }
    }
    let names =
        ["rate-limit check (atomic sliding window)", "cache get", "budget get", "session get"];
    Ok(names.into_iter().zip(all).collect())
}

fn record(all: &mut [Distribution; 4], ends: [Moment; 5]) {
    for (times, two) in all.iter_mut().zip(ends.windows(2)) {
        times.record(two[1].since(two[0]));
    }
}

/// A Redis of our own on a socket in the suite's folder. Dropped, it is ended.
struct Redis {
    process: Child,
    port: u16,
}

impl Redis {
    /// By way of a process that the kernel ends with us.
    fn start(exe: &Path, folder: &Path) -> Result<Self, String> {
        let port = free_port().ok_or("no free port for it")?;
        let mut command = Command::new(exe);
        command.args(["suite", "child", "--program", "redis-server", "--"]);
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port"]);
        command.arg(port.to_string()).arg("--dir").arg(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.process_group(0).spawn().map_err(|error| error.to_string())?;
        let mut redis = Self { process, port };
        if redis.is_ready() {
            return Ok(redis);
        }
        Err("`redis-server` does not answer; install it to measure with it".to_owned())
    }

    fn is_ready(&mut self) -> bool {
        for _ in 0..500 {
            if std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return true;
            }
            if !matches!(self.process.try_wait(), Ok(None)) {
                return false;
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
        false
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It holds nothing that is worth keeping.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port that was free a moment ago: Redis cannot be asked for any.
fn free_port() -> Option<u16> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).ok()?;
    listener.local_addr().ok().map(|address| address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_of_the_embedded_store_is_timed() {
        let backend = Backend::memory(Sizes::default());
        let rows = rows("embedded", &backend, 200).unwrap();
        assert_eq!(rows.len(), 4);
        for row in &rows {
            assert_eq!(row.times.count(), 200, "{}", row.operation);
            assert!(row.times.mean().unwrap() < Nanos::from_millis(50), "{}", row.operation);
        }
        assert_eq!(backend.cache_counts().hits, 700);
    }
}
