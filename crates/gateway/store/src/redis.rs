//! The store in Redis, shared by several gateways.
//!
//! Every operation is one round trip: scripts by their digest (sent again only if the server has
//! lost them), single commands otherwise. Time in scripts is the server's own (`TIME`): several
//! gateways then count on one clock, and no step of one machine's clock opens a limit. Numbers in
//! scripts are doubles, exact to 2^53: requests x window in microseconds and budgets may reach 9 x
//! 10^15. Windows are counted in microseconds. Needs Redis 5 or later, one server: the keys of one
//! check may lie in different slots of a cluster. Every key has a time to live.

mod reconnecting;
mod records;

use crate::{
    Budget, BudgetState, CacheCounts, CacheKey, CachedResponse, Charge, Decision, FailureMode,
    LimitKey, RedisSettings, StoreError,
};
use crate::{lru_cache::CacheCounters, single_flight::SingleFlight};
use ::redis::{Cmd, IntoConnectionInfo as _, RedisResult, Script, ScriptInvocation};
use bytes::Bytes;
use reconnecting::ReconnectingClient;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

static LIMIT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(concat!(include_str!("redis/clock.lua"), include_str!("redis/limit.lua")))
});
static BUDGET: LazyLock<Script> = LazyLock::new(|| {
    Script::new(concat!(include_str!("redis/clock.lua"), include_str!("redis/budget.lua")))
});

/// The part of a Redis store that the workers of a process share: settings, counts, single flight.
#[derive(Debug)]
pub struct RedisBackend {
    settings: RedisSettings,
    client: ::redis::Client,
    single_flight: SingleFlight,
    counters: CacheCounters,
    errors: AtomicU64,
    /// Workers without a connection.
    lost: Arc<AtomicUsize>,
}

impl RedisBackend {
    pub(crate) fn new(settings: RedisSettings) -> Result<Self, StoreError> {
        let client = client(&settings.url).map_err(|_| StoreError::Address)?;
        Ok(Self {
            settings,
            client,
            single_flight: SingleFlight::default(),
            counters: CacheCounters::default(),
            errors: AtomicU64::new(0),
            lost: Arc::default(),
        })
    }

    /// Operations without an answer.
    pub fn errors(&self) -> u64 {
        self.errors.load(Relaxed)
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Relaxed) > 0
    }

    pub(crate) const fn single_flight(&self) -> &SingleFlight {
        &self.single_flight
    }

    pub(crate) const fn counters(&self) -> &CacheCounters {
        &self.counters
    }

    /// Counts of the response cache in this process. Redis evicts by its own rules, so evictions
    /// are not counted.
    pub fn cache_counts(&self) -> CacheCounts {
        self.counters.counts()
    }
}

fn client(url: &str) -> RedisResult<::redis::Client> {
    let info = url.into_connection_info()?;
    let tcp = info.tcp_settings().clone().set_nodelay(true);
    ::redis::Client::open(info.set_tcp_settings(tcp))
}

/// One worker's connection to Redis.
#[derive(Clone, Debug)]
pub struct RedisStore {
    backend: Arc<RedisBackend>,
    client: Arc<ReconnectingClient>,
}

/// The reply of the budget script: granted, id, spent, reserved, microseconds to the reset.
type BudgetReply = (bool, u64, u64, u64, u64);

/// The keys of a budget and its counter.
#[derive(Clone, Debug)]
pub(crate) struct BudgetKeys {
    counter: Vec<u8>,
    open: Vec<u8>,
    budget: Budget,
}

impl RedisStore {
    /// Connects on this worker's runtime. If Redis does not answer, it retries in the background.
    pub(crate) async fn connect(backend: Arc<RedisBackend>) -> Self {
        let (client, lost) = (backend.client.clone(), Arc::clone(&backend.lost));
        let client = ReconnectingClient::open(client, backend.settings.timeout, lost).await;
        Self { backend, client }
    }

    pub(crate) fn backend(&self) -> &RedisBackend {
        &self.backend
    }

    fn key(&self, kind: &str, key: LimitKey<'_>, window: u64) -> Vec<u8> {
        let LimitKey { scope, name } = key;
        let prefix = &self.backend.settings.prefix;
        // The length of the scope keeps ("a", "b:c") and ("a:b", "c") apart.
        format!("{prefix}{kind}:{}:{}:{scope}:{name}", micros(window), scope.len()).into_bytes()
    }

    fn digest_key(&self, kind: &str, key: &CacheKey) -> Vec<u8> {
        let mut out = [self.backend.settings.prefix.as_bytes(), kind.as_bytes(), b":"].concat();
        out.extend_from_slice(&key.0);
        out
    }

    async fn run<T: ::redis::FromRedisValue>(&self, script: ScriptInvocation<'_>) -> Option<T> {
        let answer = self.client.call(async |to| script.invoke_async(to).await).await;
        self.counted(answer)
    }

    async fn command<T: ::redis::FromRedisValue>(&self, command: Cmd) -> Option<T> {
        let answer = self.client.call(async |to| command.query_async(to).await).await;
        self.counted(answer)
    }

    fn counted<T>(&self, answer: Option<T>) -> Option<T> {
        if answer.is_none() {
            self.backend.errors.fetch_add(1, Relaxed);
        }
        answer
    }

    /// The result when Redis did not reply.
    fn lost<T>(&self, open: T) -> Result<T, StoreError> {
        match self.backend.settings.on_loss {
            FailureMode::Open => Ok(open),
            FailureMode::Closed => Err(StoreError::Unavailable),
        }
    }

    /// Checks and counts a request. `at` is in microseconds since 1970; `None` for the server's
    /// clock.
    pub(crate) async fn check(
        &self,
        at: Option<u64>,
        charges: &[Charge<'_>],
    ) -> Result<Decision, StoreError> {
        if charges.is_empty() {
            return Ok(Decision::uncounted(charges));
        }
        let mut script = LIMIT.prepare_invoke();
        script.arg(at.map(|at| at.to_string()).unwrap_or_default());
        for Charge { key, limit } in charges {
            let algorithm = <&str>::from(limit.algorithm());
            script.key(self.key(algorithm, *key, limit.window_nanos()));
            script.arg(algorithm).arg(limit.requests()).arg(micros(limit.window_nanos()));
        }
        let reply: Option<(bool, usize, u32, u64, u64)> = self.run(script).await;
        let Some((allowed, charge, remaining, reset, retry)) = reply else {
            return self.lost(Decision::uncounted(charges));
        };
        let limit = charges.get(charge).map_or(0, |charge| charge.limit.requests());
        let reset = Duration::from_micros(reset);
        let retry_after = Duration::from_micros(retry);
        Ok(Decision { allowed, charge, limit, remaining, reset, retry_after })
    }

    pub(crate) fn budget_keys(&self, key: LimitKey<'_>, budget: &Budget) -> BudgetKeys {
        let counter = self.key("budget", key, budget.window_nanos());
        let open = self.key("reserved", key, budget.window_nanos());
        BudgetKeys { counter, open, budget: *budget }
    }

    async fn counter(
        &self,
        budget_keys: &BudgetKeys,
        operation: &str,
        numbers: [u64; 3],
    ) -> Option<BudgetReply> {
        let [amount, id, actual] = numbers;
        let lease = u64::try_from(self.backend.settings.lease.as_micros()).unwrap_or(u64::MAX);
        let mut script = BUDGET.prepare_invoke();
        script.key(&budget_keys.counter).key(&budget_keys.open).arg("").arg(operation);
        script
            .arg(budget_keys.budget.limit())
            .arg(micros(budget_keys.budget.window_nanos()))
            .arg(lease);
        script.arg(amount).arg(id).arg(actual);
        self.run(script).await
    }

    /// Whether the reservation was granted, its number, and the state. The number is zero if it was
    /// granted because the store is lost and open on loss.
    pub(crate) async fn reserve(
        &self,
        budget_keys: &BudgetKeys,
        estimate: u64,
    ) -> Result<(Option<u64>, BudgetState), StoreError> {
        match self.counter(budget_keys, "reserve", [estimate, 0, 0]).await {
            Some(reply) => Ok((reply.0.then_some(reply.1), state(&budget_keys.budget, reply))),
            None => self.lost((Some(0), unknown(&budget_keys.budget))),
        }
    }

    pub(crate) async fn settle(
        &self,
        budget_keys: &BudgetKeys,
        id: u64,
        estimate: u64,
        actual: u64,
    ) {
        let _ = self.counter(budget_keys, "settle", [estimate, id, actual]).await;
    }

    pub(crate) async fn budget(
        &self,
        key: LimitKey<'_>,
        budget: &Budget,
    ) -> Result<BudgetState, StoreError> {
        let budget_keys = self.budget_keys(key, budget);
        match self.counter(&budget_keys, "state", [0, 0, 0]).await {
            Some(reply) => Ok(state(budget, reply)),
            None => self.lost(unknown(budget)),
        }
    }

    /// A cached response. A loss of Redis is a miss in either failure mode, because the upstream
    /// can answer.
    pub(crate) async fn cached(&self, key: &CacheKey) -> Option<Arc<CachedResponse>> {
        let bytes = self.value_at(self.digest_key("answer", key)).await.flatten();
        bytes.and_then(CachedResponse::decode).map(Arc::new)
    }

    pub(crate) async fn keep(&self, key: &CacheKey, response: &CachedResponse, ttl: Duration) {
        self.put_at(self.digest_key("answer", key), &response.encode(), ttl).await;
    }

    pub(crate) async fn value(&self, key: &CacheKey) -> Result<Option<Bytes>, StoreError> {
        match self.value_at(self.digest_key("value", key)).await {
            Some(value) => Ok(value),
            None => self.lost(None),
        }
    }

    pub(crate) async fn put_value(
        &self,
        key: &CacheKey,
        value: &Bytes,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        match self.put_at(self.digest_key("value", key), value, ttl).await {
            Some(()) => Ok(()),
            None => self.lost(()),
        }
    }

    async fn value_at(&self, key: Vec<u8>) -> Option<Option<Bytes>> {
        let mut get = ::redis::cmd("GET");
        get.arg(key);
        self.command(get).await
    }

    async fn put_at(&self, key: Vec<u8>, value: &Bytes, ttl: Duration) -> Option<()> {
        let mut set = ::redis::cmd("SET");
        set.arg(key).arg(value.as_ref()).arg("PX").arg(ttl.as_millis().max(1).to_string());
        self.command(set).await
    }
}

/// Whole microseconds of a window, rounded up.
fn micros(nanos: u64) -> u64 {
    nanos.div_ceil(1_000)
}

fn state(budget: &Budget, reply: BudgetReply) -> BudgetState {
    let (_, _, spent, reserved, resets) = reply;
    BudgetState::new(budget, spent, reserved, Duration::from_micros(resets))
}

/// The state of an unreadable budget, which counts as unused.
fn unknown(budget: &Budget) -> BudgetState {
    BudgetState::new(budget, 0, 0, Duration::ZERO)
}

#[cfg(test)]
mod tests;
