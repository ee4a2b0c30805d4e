//! Configuration keys of the layers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::secret::Secret;
use crate::config::units::{ByteSize, HumanDuration};

/// A layer without settings: `{}`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Empty {}

/// Authentication by API key.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AuthSpec {
    /// Header with the key; in `authorization` the key follows `Bearer`.
    #[serde(default = "authorization")]
    pub header: String,
    /// The keys.
    pub keys: Vec<KeySpec>,
}

/// One key. The gateway keeps its digest only.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KeySpec {
    /// Name of the consumer.
    pub name: String,
    /// SHA-256 of the key, in hexadecimal.
    #[serde(default)]
    pub sha256: Option<String>,
    /// The key itself, or `${NAME}` for an environment variable; instead of `sha256`.
    #[serde(default)]
    pub key: Option<Secret>,
    /// Tenant that the consumer belongs to; `*` for one that may name any in the tenant's header.
    #[serde(default)]
    pub tenant: Option<String>,
    /// Scopes of the key; an empty list allows everything.
    #[serde(default)]
    pub scopes: Vec<String>,
}

/// The sources of the tenant's name.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct TenantSpec {
    /// Header with the tenant's name. Where there are keys or tokens, it only repeats their tenant.
    pub header: String,
    /// Claim of a bearer token (JWT, HS256) with the tenant's name.
    pub claim: Option<String>,
    /// Secret that such tokens are signed with.
    pub secret: Option<Secret>,
    /// Whether requests without a tenant are refused. They always are where a limit per tenant or a
    /// budget applies, unless `anonymous` is set.
    pub required: bool,
    /// Whether requests without a tenant count together, as one tenant of their own, in limits and
    /// budgets.
    pub anonymous: bool,
}

impl Default for TenantSpec {
    fn default() -> Self {
        Self {
            header: "x-tenant-id".to_owned(),
            claim: None,
            secret: None,
            required: false,
            anonymous: false,
        }
    }
}

/// A rate limit.
#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RateLimitSpec {
    /// The requests that share the limit. `tenant` and `key` need the sections `tenant` and `auth`.
    pub per: Per,
    /// Requests in a window; 0 for no limit.
    pub requests: u32,
    /// Length of the window.
    #[serde(default = "minute")]
    pub window: HumanDuration,
    /// The counting algorithm.
    #[serde(default)]
    pub algorithm: AlgorithmSpec,
}

/// The requests that share a rate limit.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// all
    Global,
    /// those of a tenant
    Tenant,
    /// those with a key
    Key,
    /// those from a client address
    Address,
}

/// The counting algorithm.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AlgorithmSpec {
    /// sliding window, counted in 31 slices, of which only the oldest is estimated
    #[default]
    Sliding,
    /// token bucket
    Bucket,
}

/// Personal data in responses.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ScrubSpec {
    /// Treatment of responses that cannot be read: encoded ones, broken JSON and events, types that
    /// are no text.
    pub unreadable: UnreadSpec,
    /// Types that pass without being read; `image/*` stands for all images.
    pub pass_types: Vec<String>,
}

impl Default for ScrubSpec {
    fn default() -> Self {
        Self { unreadable: UnreadSpec::Refuse, pass_types: media_types() }
    }
}

/// Treatment of what cannot be read.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UnreadSpec {
    /// it is refused
    #[default]
    Refuse,
    /// it passes as it is
    Pass,
}

/// The policy for texts of requests.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct PolicySpec {
    /// File with rules that replace the built-in ones.
    pub rules: Option<PathBuf>,
    /// Whether `POST /api/request` is served.
    pub endpoint: bool,
    /// The action for each category: `allow`, `log`, `warn`, `redact` or `block`.
    #[cfg_attr(test, schemars(with = "super::reference::ActionsSchema"))]
    #[cfg_attr(test, serde(skip_serializing))]
    pub actions: plimsoll_gateway_policy::Actions,
    /// Treatment of files inside requests that are no text.
    pub unreadable: UnreadSpec,
    /// Types of files that pass without being read; `image/*` stands for all images.
    pub pass_types: Vec<String>,
}

impl Default for PolicySpec {
    fn default() -> Self {
        Self {
            rules: None,
            endpoint: false,
            actions: plimsoll_gateway_policy::Actions::default(),
            unreadable: UnreadSpec::Refuse,
            pass_types: media_types(),
        }
    }
}

/// The cache of LLM responses.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct CacheSpec {
    /// Time that a response is kept, if it does not say less itself.
    pub ttl: HumanDuration,
    /// Longest time that a streamed question waits for the answer to an equal one that is on its
    /// way; then it is asked for itself. A whole answer is waited for as long as for the upstream.
    pub wait: HumanDuration,
    /// Most bytes that are kept in memory.
    pub bytes: ByteSize,
    /// Header by which a request bypasses the cache.
    pub bypass_header: String,
}

impl Default for CacheSpec {
    fn default() -> Self {
        Self {
            ttl: HumanDuration::secs(600),
            wait: HumanDuration::millis(250),
            bytes: ByteSize(256 << 20),
            bypass_header: "x-cache-bypass".to_owned(),
        }
    }
}

/// Budgets of the tenants.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct BudgetSpec {
    /// The unit of all amounts.
    pub unit: BudgetUnit,
    /// Price of a thousand prompt tokens, in US dollars; for `unit: usd`.
    pub usd_per_1k_prompt: f64,
    /// Price of a thousand completion tokens, in US dollars; for `unit: usd`.
    pub usd_per_1k_completion: f64,
    /// Amount per window of a tenant that is not in `tenants`.
    pub default: f64,
    /// Completion tokens that are reserved for a request that names no maximum: the most that the
    /// models give.
    pub max_tokens: u64,
    /// Length of the window after which spending starts from zero.
    pub window: HumanDuration,
    /// Amount per window, by tenant.
    pub tenants: BTreeMap<String, f64>,
}

impl Default for BudgetSpec {
    fn default() -> Self {
        Self {
            unit: BudgetUnit::Tokens,
            usd_per_1k_prompt: 0.001,
            usd_per_1k_completion: 0.002,
            default: 1_000_000.0,
            max_tokens: 4_096,
            window: HumanDuration::secs(86_400),
            tenants: BTreeMap::new(),
        }
    }
}

/// The unit of a budget.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BudgetUnit {
    /// prompt and completion tokens
    #[default]
    Tokens,
    /// US dollars
    Usd,
}

/// An audit row for every request.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AuditSpec {
    /// File of JSON lines that rows are appended to.
    pub path: Option<PathBuf>,
    /// `ClickHouse` table, `http://[USER:PASSWORD@]HOST[:PORT]/[DATABASE.]TABLE`, or `${NAME}` for
    /// an environment variable; instead of `path`.
    pub clickhouse: Option<Secret>,
    /// Most rows that wait to be written.
    pub queue: usize,
    /// Most bytes of rows that wait to be written; a row is 8 KiB at most.
    pub queue_bytes: ByteSize,
    /// Most rows in one write.
    pub batch: usize,
    /// Longest time that a row waits for others.
    pub flush: HumanDuration,
    /// Treatment of a row when the queue is full.
    pub when_full: WhenFull,
}

impl Default for AuditSpec {
    fn default() -> Self {
        Self {
            path: None,
            clickhouse: None,
            queue: 65_536,
            queue_bytes: ByteSize(32 << 20),
            batch: 2_048,
            flush: HumanDuration::millis(100),
            when_full: WhenFull::Drop,
        }
    }
}

/// Treatment of a row when the queue is full.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// it is dropped and counted
    #[default]
    Drop,
    /// its request waits
    Block,
}

fn authorization() -> String {
    "authorization".to_owned()
}

/// Types without text.
fn media_types() -> Vec<String> {
    ["image/*", "audio/*", "video/*", "font/*"].map(str::to_owned).into()
}

const fn minute() -> HumanDuration {
    HumanDuration::secs(60)
}
