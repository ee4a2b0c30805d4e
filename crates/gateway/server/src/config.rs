//! Values of the configuration: how they are written, and what each section holds. A layer has its
//! section in its own file.

pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod tls;
pub(crate) mod units;
pub(crate) mod yaml_error;

use std::path::PathBuf;

use serde::Deserialize;

use crate::config::units::{ByteSize, HumanDuration};

/// The problems, each with the line of the text where its key or name stands.
pub(crate) fn with_lines(problems: Vec<String>, text: &str) -> Vec<String> {
    let located = problems.into_iter().map(|problem| match line_of(&problem, text) {
        Some(line) => format!("line {line}: {problem}"),
        None => problem,
    });
    located.collect()
}

fn line_of(problem: &str, text: &str) -> Option<usize> {
    let mut quoted = problem.split('`').skip(1).step_by(2);
    if problem.starts_with("route `") {
        let name = quoted.next()?;
        return find(text, 0, |line| has_value(line, "name", name));
    }
    if problem.starts_with("upstream `") {
        let name = quoted.next()?;
        let start = find(text, 0, |line| line.starts_with("upstreams:"))?;
        return find(text, start - 1, |line| line.contains(&format!("{name}:")));
    }
    let key = problem.split([':', '.', ' ']).next()?;
    let start =
        find(text, 0, |line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')))?;
    // The value in question, if a line behind the key has it.
    let value = quoted.find_map(|word| find(text, start - 1, |line| line.contains(word)));
    Some(value.unwrap_or(start))
}

/// The number of the first line from `start` on for which this holds.
fn find(text: &str, start: usize, holds: impl Fn(&str) -> bool) -> Option<usize> {
    text.lines().enumerate().skip(start).find(|(_, line)| holds(line)).map(|(at, _)| at + 1)
}

/// Whether a line has this key with this value, quoted or not.
fn has_value(line: &str, key: &str, value: &str) -> bool {
    line.match_indices(&format!("{key}:")).any(|(at, found)| {
        let behind = line[at + found.len()..].trim_start().trim_start_matches(['"', '\'']);
        let rest = behind.strip_prefix(value);
        rest.is_some_and(|rest| {
            !rest.starts_with(|next: char| next.is_alphanumeric() || next == '-')
        })
    })
}

/// A route.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RouteSpec {
    /// Name in metrics and logs.
    pub name: String,
    /// Path: exact, with parameters (`/v1/items/{id}`), or a prefix that ends in `/*`.
    pub path: String,
    /// Name of the upstream that serves the route.
    #[serde(default)]
    pub upstream: Option<String>,
    /// A fixed response, instead of an upstream.
    #[serde(default)]
    pub respond: Option<RespondSpec>,
    /// Prefix that is removed from the path before the request is sent upstream.
    #[serde(default)]
    pub strip: Option<String>,
    /// Consumers that may use the route; an empty list allows all.
    #[serde(default)]
    pub consumers: Vec<String>,
    /// Scope that a key needs.
    #[serde(default)]
    pub scope: Option<String>,
    /// Time limit until a response begins, instead of the upstream's.
    #[serde(default)]
    pub timeout: Option<HumanDuration>,
    /// Whether it carries chat completions or messages, which are translated, scanned, cached and
    /// budgeted.
    #[serde(default)]
    pub llm: bool,
    /// Whether `WebSocket` connections are passed through.
    #[serde(default)]
    pub websocket: bool,
}

/// A fixed response.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RespondSpec {
    /// HTTP status.
    #[serde(default = "ok")]
    pub status: u16,
    /// Content type.
    #[serde(default = "json")]
    pub content_type: String,
    /// Body.
    #[serde(default)]
    pub body: String,
}

const fn ok() -> u16 {
    200
}

fn json() -> String {
    "application/json".to_owned()
}

/// A text that is never shown. `${NAME}` stands for an environment variable.
#[derive(Clone, Deserialize, PartialEq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
pub struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

impl Secret {
    /// The text, with its environment variable filled in.
    ///
    /// # Errors
    /// A message about a variable that is not set, or about an empty text.
    pub fn reveal(&self) -> Result<String, String> {
        let text = match self.0.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
            None => self.0.clone(),
            Some(name) => std::env::var(name)
                .map_err(|_| format!("the environment variable `{name}` is not set"))?,
        };
        if text.is_empty() { Err("a key or secret is empty".to_owned()) } else { Ok(text) }
    }
}

/// Limits on connections and requests.
#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ServerSpec {
    /// Largest head of a request.
    pub header_bytes: ByteSize,
    /// Most headers of a request.
    pub headers: usize,
    /// Largest body of a request, enforced while it arrives.
    pub body_bytes: ByteSize,
    /// A connection on which no complete head arrives in this time is closed; so is an idle one.
    pub header_timeout: HumanDuration,
    /// A body must be complete in this time.
    pub body_timeout: HumanDuration,
    /// A client that takes no byte of a response for this long is disconnected; over HTTP/2 its
    /// stream is reset.
    pub write_timeout: HumanDuration,
    /// A `WebSocket` on which nothing passes for this long is closed.
    pub websocket_timeout: HumanDuration,
    /// Most open connections of each worker, `WebSocket`s included; further ones wait in the
    /// kernel's queue.
    pub connections: usize,
    /// Most bytes of messages that are held in all: bodies that are read whole, what clients do not
    /// take, dialogues of chats and runs. Beyond it requests are refused with 503, and clients that
    /// take nothing are disconnected. A connection costs up to 48 KiB beside it.
    pub memory: ByteSize,
    /// Most bytes that the agent loops and background runs of one tenant hold, without a tenant
    /// those of one consumer or client address; a quarter of `memory` if not set.
    pub owner_memory: Option<ByteSize>,
    /// Largest response of an upstream that is read whole, to be translated or scrubbed.
    pub response_bytes: ByteSize,
    /// Time that requests in flight have to finish when the gateway stops.
    pub drain: HumanDuration,
}

impl Default for ServerSpec {
    fn default() -> Self {
        Self {
            header_bytes: ByteSize(16 << 10),
            headers: 64,
            body_bytes: ByteSize(1 << 20),
            header_timeout: HumanDuration::secs(60),
            body_timeout: HumanDuration::secs(30),
            write_timeout: HumanDuration::secs(30),
            websocket_timeout: HumanDuration::secs(300),
            connections: 20_000,
            memory: ByteSize(512 << 20),
            owner_memory: None,
            response_bytes: ByteSize(64 << 20),
            drain: HumanDuration::secs(10),
        }
    }
}

/// Certificate and key, PEM.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TlsSpec {
    /// File with the certificate chain, PEM.
    pub cert: PathBuf,
    /// File with the private key, PEM.
    pub key: PathBuf,
}

/// Format of error responses.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EnvelopeSpec {
    /// `{"error":{"type":...,"message":...}}`
    #[default]
    Typed,
    /// the message alone, as text
    Plain,
}

/// The store of rate limits, budgets and cached responses.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct StoreSpec {
    /// URL of a Redis server, or `${NAME}` for an environment variable. Without it: the memory of
    /// this process.
    pub redis: Option<Secret>,
    /// Behaviour while Redis is unavailable.
    pub on_loss: FailureMode,
    /// Time limit of an operation on Redis.
    pub timeout: HumanDuration,
}

impl Default for StoreSpec {
    fn default() -> Self {
        Self { redis: None, on_loss: FailureMode::Open, timeout: HumanDuration::millis(50) }
    }
}

/// Behaviour while the store is unavailable.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FailureMode {
    /// requests pass
    #[default]
    Open,
    /// requests are refused with 503
    Closed,
}

/// A group of interchangeable servers, which get requests in turn.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UpstreamSpec {
    /// `HOST:PORT` of each server.
    pub addresses: Vec<String>,
    /// The dialect of the servers, for LLM routes.
    #[serde(default)]
    pub dialect: DialectSpec,
    /// The name under which servers of OpenAI's dialect know the most tokens of an answer, for
    /// requests that are translated.
    #[serde(default)]
    pub token_limit: TokenLimitSpec,
    /// API key that is sent instead of the client's; `${NAME}` for an environment variable.
    #[serde(default)]
    pub key: Option<Secret>,
    /// Time limit for opening a connection.
    #[serde(default = "two_seconds")]
    pub connect_timeout: HumanDuration,
    /// Time limit until a response begins.
    #[serde(default = "minute")]
    pub timeout: HumanDuration,
    /// Longest pause within a response.
    #[serde(default = "minute")]
    pub idle_timeout: HumanDuration,
    /// Longest time that an idle connection is kept for the next request.
    #[serde(default = "minute")]
    pub keep_alive: HumanDuration,
    /// Largest buffer that a response is read into, and so the most that is taken from the server
    /// before the client has taken what came before. A response's head must fit into it.
    #[serde(default = "buffer")]
    pub buffer: ByteSize,
    /// Retries of requests whose body is in memory: of all methods after 503 or a failed connect,
    /// of idempotent ones also after 502 or a broken connection.
    #[serde(default)]
    pub retry: Option<RetrySpec>,
    /// Circuit breaker of each server.
    #[serde(default)]
    pub breaker: Option<BreakerSpec>,
}

impl UpstreamSpec {
    /// One server with the defaults.
    pub(crate) fn at(address: String, timeout: HumanDuration) -> Self {
        Self {
            addresses: vec![address],
            dialect: DialectSpec::default(),
            token_limit: TokenLimitSpec::default(),
            key: None,
            connect_timeout: two_seconds(),
            timeout,
            idle_timeout: timeout,
            keep_alive: minute(),
            buffer: buffer(),
            retry: None,
            breaker: None,
        }
    }
}

/// The dialect of an LLM upstream.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DialectSpec {
    /// OpenAI
    #[default]
    Openai,
    /// Anthropic
    Anthropic,
}

/// The name of the most tokens of an answer.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TokenLimitSpec {
    /// as OpenAI has it
    #[default]
    MaxCompletionTokens,
    /// as older and many other servers have it
    MaxTokens,
}

/// Retries.
#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RetrySpec {
    /// Most times that a request is sent, the first one included.
    pub attempts: u32,
    /// Retries allowed in ten seconds, as a share of the requests; ten more are always allowed.
    pub budget: f64,
    /// Pause before the first retry; it doubles for each further one.
    pub backoff: HumanDuration,
}

impl Default for RetrySpec {
    fn default() -> Self {
        Self { attempts: 2, budget: 0.2, backoff: HumanDuration::millis(10) }
    }
}

/// A circuit breaker.
#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct BreakerSpec {
    /// Failures in a row that open it.
    pub failures: u32,
    /// Time that it stays open before one trial request is admitted.
    pub open: HumanDuration,
}

impl Default for BreakerSpec {
    fn default() -> Self {
        Self { failures: 5, open: HumanDuration::secs(5) }
    }
}

const fn buffer() -> ByteSize {
    ByteSize(16 << 10)
}

const fn minute() -> HumanDuration {
    HumanDuration::secs(60)
}

const fn two_seconds() -> HumanDuration {
    HumanDuration::secs(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_gets_the_line_of_its_name_or_key() {
        let text = "name: x\nopen: [/health,\n  /nowhere]\nbudgets: {}\nupstreams:\n  u: {}\n  v: {}\n\
                    routes:\n  - {name: r10, path: /a}\n  - name: 'r1'\n    path: /b\n";
        for (problem, line) in [
            ("route `r1`: `scope` needs the section `auth`", Some(10)),
            ("route `r10`: there is no upstream `z`", Some(9)),
            ("upstream `v` has no address", Some(7)),
            ("open: `/nowhere` covers no route", Some(3)),
            ("budgets: belong to tenants", Some(4)),
            ("workers: at least 1", None),
        ] {
            assert_eq!(line_of(problem, text), line, "{problem}");
        }
    }
}
