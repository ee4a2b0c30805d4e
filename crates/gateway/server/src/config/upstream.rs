//! Configuration keys of upstreams.

use plimsoll_gateway_dialect::{Dialect, LimitName};
use serde::Deserialize;
use smart_default::SmartDefault;

use super::secret::Secret;
use crate::config::units::{ByteSize, HumanDuration};

/// A group of interchangeable servers, which get requests in turn.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UpstreamSpec {
    /// `HOST:PORT` of each server.
    pub addresses: Vec<String>,
    /// The dialect of the servers, for LLM routes.
    #[serde(default)]
    pub dialect: Dialect,
    /// The name of the output limit in requests that are translated to OpenAI's dialect.
    #[serde(default)]
    pub token_limit: LimitName,
    /// API key to send instead of the client's; `${NAME}` for an environment variable.
    pub key: Option<Secret>,
    /// Time limit for opening a connection.
    #[serde(default = "HumanDuration::default_secs::<2>")]
    pub connect_timeout: HumanDuration,
    /// Time limit until a response begins.
    #[serde(default = "HumanDuration::default_secs::<60>")]
    pub timeout: HumanDuration,
    /// Longest pause within a response.
    #[serde(default = "HumanDuration::default_secs::<60>")]
    pub idle_timeout: HumanDuration,
    /// Longest time that an idle connection is kept for the next request.
    #[serde(default = "HumanDuration::default_secs::<60>")]
    pub keep_alive: HumanDuration,
    /// Largest buffer for a response, and so the most bytes that are read from the server ahead of
    /// the client. A response's head must fit into it.
    #[serde(default = "buffer")]
    pub buffer: ByteSize,
    /// Retries of requests whose body is in memory: of all methods after a failed connect; of
    /// idempotent ones and those with `idempotency-key` also after 502, 503 or a broken connection.
    pub retry: Option<RetrySpec>,
    /// Circuit breaker of each server.
    pub breaker: Option<BreakerSpec>,
}

impl UpstreamSpec {
    /// One server with the defaults.
    pub(crate) fn at(address: String, timeout: HumanDuration) -> Self {
        Self {
            addresses: vec![address],
            dialect: Dialect::default(),
            token_limit: LimitName::default(),
            key: None,
            connect_timeout: HumanDuration::secs(2),
            timeout,
            idle_timeout: timeout,
            keep_alive: HumanDuration::secs(60),
            buffer: buffer(),
            retry: None,
            breaker: None,
        }
    }
}

/// Retries.
#[derive(Clone, Copy, Debug, SmartDefault, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RetrySpec {
    /// Most attempts of a request, including the first.
    #[default(2)]
    pub attempts: u32,
    /// Retries allowed in ten seconds, as a share of the requests; ten more are always allowed.
    #[default(0.2)]
    pub budget: f64,
    /// Pause before the first retry; it doubles for each further one.
    #[default(HumanDuration::millis(10))]
    pub backoff: HumanDuration,
}

/// A circuit breaker.
#[derive(Clone, Copy, Debug, SmartDefault, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct BreakerSpec {
    /// Failures in a row that open it.
    #[default(5)]
    pub failures: u32,
    /// Time that it stays open before one trial request is admitted.
    #[default(HumanDuration::secs(5))]
    pub open: HumanDuration,
}

const fn buffer() -> ByteSize {
    ByteSize(16 << 10)
}
