//! The store in Redis, shared by several gateways.
//!
//! Every operation is one round trip: scripts by their digest (sent again only when the server has forgotten
//! them), single commands otherwise. Time in scripts is the server's own (`TIME`): several gateways then
//! count on one clock, and no step of one machine's clock opens a limit. Numbers in scripts are doubles, exact
//! to 2^53: requests x window in microseconds and budgets may reach 9 x 10^15. Windows are counted in
//! microseconds. Needs Redis 5 or later, one server: the keys of one check may lie in different slots of a
//! cluster. Every key has a time to live.

mod link;

use crate::{
    Answer, Budget, BudgetState, CacheCounts, CacheKey, Charge, Decision, LimitKey, StoreError,
};
use crate::{flight::Flights, shelf::Tally};
use ::redis::{Cmd, IntoConnectionInfo as _, RedisResult, Script, ScriptInvocation};
use bytes::Bytes;
use link::Link;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

static LIMIT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(concat!(include_str!("redis/clock.lua"), include_str!("redis/limit.lua")))
});
static BUDGET: LazyLock<Script> = LazyLock::new(|| {
    Script::new(concat!(include_str!("redis/clock.lua"), include_str!("redis/budget.lua")))
});

/// What is done when Redis does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureMode {
    /// Requests pass uncounted; every one is counted as a store error.
    #[default]
    Open,
    /// Requests are refused with [`StoreError::Unavailable`].
    Closed,
}

/// How Redis is reached.
#[derive(Clone, Debug)]
pub struct RedisSettings {
    /// `redis://HOST:PORT` or `redis://HOST:PORT/DB`.
    pub url: String,
    /// How long one operation may take. 50 ms by default.
    pub timeout: Duration,
    /// How long a budget reservation of a gateway that died is held. 10 minutes by default; longer than the
    /// longest request.
    pub lease: Duration,
    /// What all keys begin with. `plimsoll:` by default.
    pub prefix: String,
    /// What is done when Redis does not answer.
    pub on_loss: FailureMode,
}

impl RedisSettings {
    /// The defaults for an address.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            timeout: Duration::from_millis(50),
            lease: Duration::from_mins(10),
            prefix: "plimsoll:".to_owned(),
            on_loss: FailureMode::default(),
        }
    }
}

/// What the workers of one process share of a Redis store: settings, counts, and single flight.
#[derive(Debug)]
pub struct RedisBackend {
    settings: RedisSettings,
    client: ::redis::Client,
    pub(crate) flights: Arc<Flights>,
    pub(crate) tally: Tally,
    errors: AtomicU64,
}

impl RedisBackend {
    pub(crate) fn new(settings: RedisSettings) -> Result<Self, StoreError> {
        let client = client(&settings.url).map_err(|error| StoreError::Address {
            address: settings.url.clone(),
            cause: error.to_string(),
        })?;
        Ok(Self {
            settings,
            client,
            flights: Flights::new(),
            tally: Tally::default(),
            errors: AtomicU64::new(0),
        })
    }

    /// Operations that had no answer.
    pub fn errors(&self) -> u64 {
        self.errors.load(Relaxed)
    }

    /// Counts of the cache of answers, as seen by this process. Redis evicts by its own rules: none here.
    pub fn cache_counts(&self) -> CacheCounts {
        self.tally.counts()
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
    pub(crate) backend: Arc<RedisBackend>,
    link: Arc<Link>,
}

/// What the budget script answers: granted, id, spent, reserved, microseconds to the reset.
type Told = (bool, u64, u64, u64, u64);

/// A budget and whose it is, by its keys.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    purse: Vec<u8>,
    open: Vec<u8>,
    budget: Budget,
}

impl RedisStore {
    /// Connects on this worker's runtime. Without an answer it goes on trying in the background.
    pub(crate) async fn connect(backend: Arc<RedisBackend>) -> Self {
        let link = Link::open(backend.client.clone(), backend.settings.timeout).await;
        Self { backend, link }
    }

    fn key(&self, kind: &str, subject: LimitKey<'_>, window: u64) -> Vec<u8> {
        let LimitKey { scope, name } = subject;
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
        let answer = self.link.call(async |to| script.invoke_async(to).await).await;
        self.counted(answer)
    }

    async fn command<T: ::redis::FromRedisValue>(&self, command: Cmd) -> Option<T> {
        let answer = self.link.call(async |to| command.query_async(to).await).await;
        self.counted(answer)
    }

    fn counted<T>(&self, answer: Option<T>) -> Option<T> {
        if answer.is_none() {
            self.backend.errors.fetch_add(1, Relaxed);
        }
        answer
    }

    /// What stands for an answer that did not come.
    fn lost<T>(&self, open: T) -> Result<T, StoreError> {
        match self.backend.settings.on_loss {
            FailureMode::Open => Ok(open),
            FailureMode::Closed => Err(StoreError::Unavailable),
        }
    }

    /// `at` is a time in microseconds since 1970; none for the server's own.
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
        for Charge { subject, limit } in charges {
            let algorithm = limit.algorithm().name();
            script.key(self.key(algorithm, *subject, limit.window_nanos()));
            script.arg(algorithm).arg(limit.requests()).arg(micros(limit.window_nanos()));
        }
        let told: Option<(bool, usize, u32, u64, u64)> = self.run(script).await;
        let Some((allowed, charge, remaining, reset, retry)) = told else {
            return self.lost(Decision::uncounted(charges));
        };
        let limit = charges.get(charge).map_or(0, |charge| charge.limit.requests());
        let reset = Duration::from_micros(reset);
        let retry_after = Duration::from_micros(retry);
        Ok(Decision { allowed, charge, limit, remaining, reset, retry_after })
    }

    pub(crate) fn account(&self, subject: LimitKey<'_>, budget: &Budget) -> Account {
        let purse = self.key("budget", subject, budget.window_nanos());
        let open = self.key("reserved", subject, budget.window_nanos());
        Account { purse, open, budget: *budget }
    }

    async fn purse(&self, account: &Account, operation: &str, numbers: [u64; 3]) -> Option<Told> {
        let [amount, id, actual] = numbers;
        let lease = u64::try_from(self.backend.settings.lease.as_micros()).unwrap_or(u64::MAX);
        let mut script = BUDGET.prepare_invoke();
        script.key(&account.purse).key(&account.open).arg("").arg(operation);
        script.arg(account.budget.limit()).arg(micros(account.budget.window_nanos())).arg(lease);
        script.arg(amount).arg(id).arg(actual);
        self.run(script).await
    }

    /// Whether it was granted, the reservation's number, and the state. A number of zero is of a reservation
    /// that was granted because the store is lost and open on loss.
    pub(crate) async fn reserve(
        &self,
        account: &Account,
        estimate: u64,
    ) -> Result<(Option<u64>, BudgetState), StoreError> {
        match self.purse(account, "reserve", [estimate, 0, 0]).await {
            Some(told) => Ok((told.0.then_some(told.1), state(&account.budget, told))),
            None => self.lost((Some(0), unknown(&account.budget))),
        }
    }

    pub(crate) async fn settle(&self, account: &Account, id: u64, estimate: u64, actual: u64) {
        let _ = self.purse(account, "settle", [estimate, id, actual]).await;
    }

    pub(crate) async fn budget(
        &self,
        subject: LimitKey<'_>,
        budget: &Budget,
    ) -> Result<BudgetState, StoreError> {
        let account = self.account(subject, budget);
        match self.purse(&account, "state", [0, 0, 0]).await {
            Some(told) => Ok(state(budget, told)),
            None => self.lost(unknown(budget)),
        }
    }

    /// An answer that cannot be had is a miss, whatever is chosen for a loss: the upstream has it.
    pub(crate) async fn cached(&self, key: &CacheKey) -> Option<Arc<Answer>> {
        let bytes = self.value_at(self.digest_key("answer", key)).await.flatten();
        bytes.and_then(Answer::decode).map(Arc::new)
    }

    pub(crate) async fn keep(&self, key: &CacheKey, answer: &Answer, ttl: Duration) {
        self.put_at(self.digest_key("answer", key), &answer.encode(), ttl).await;
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

fn state(budget: &Budget, told: Told) -> BudgetState {
    let (_, _, spent, reserved, resets) = told;
    BudgetState::new(budget, spent, reserved, Duration::from_micros(resets))
}

/// Of a budget that cannot be read: as if unused.
fn unknown(budget: &Budget) -> BudgetState {
    BudgetState::new(budget, 0, 0, Duration::ZERO)
}

#[cfg(test)]
mod tests;
