//! Response headers to read: cache states, upstream retries, server times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Response headers to read and record. Names are case-insensitive; an empty list reads none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResponseHeaders {
    /// Headers that report whether a cache answered. One `hit` in any of them is a hit. Default:
    /// headers of known gateways, proxies and content delivery networks.
    #[serde(default = "cache")]
    pub cache: Vec<String>,
    /// Headers with the number of times that the target retried its upstream; the largest counts.
    #[serde(default = "retries")]
    pub retries: Vec<String>,
    /// Headers with the number of attempts of the target at its upstream, including the first.
    #[serde(default = "attempts")]
    pub attempts: Vec<String>,
    /// Headers with the time that the target took, in milliseconds, or with a unit such as `12ms`
    /// or `0.5s`; `x-runtime` and `x-process-time` are in seconds. The first header of the list in
    /// a response counts. For `server-timing`, the entry `total` is used, or else the longest one;
    /// its other entries are kept by name, as parts of the time to first byte.
    #[serde(default = "server_time")]
    pub server_time: Vec<String>,
    /// Headers with a gateway's own overhead, in milliseconds or with a unit. It is kept as a part
    /// of the time to first byte, under the header's name.
    #[serde(default = "overhead")]
    pub overhead: Vec<String>,
    /// Further headers to store in `results.jsonl`, up to 256 bytes each.
    #[serde(default)]
    pub record: Vec<String>,
}

impl Default for ResponseHeaders {
    fn default() -> Self {
        Self {
            cache: cache(),
            retries: retries(),
            attempts: attempts(),
            server_time: server_time(),
            overhead: overhead(),
            record: Vec::new(),
        }
    }
}

impl ResponseHeaders {
    /// All lists by key.
    pub fn lists(&self) -> [(&'static str, &Vec<String>); 6] {
        [
            ("cache", &self.cache),
            ("retries", &self.retries),
            ("attempts", &self.attempts),
            ("server_time", &self.server_time),
            ("overhead", &self.overhead),
            ("record", &self.record),
        ]
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn cache() -> Vec<String> {
    names(&[
        "x-cache",
        "x-cache-status",
        "cache-status",
        "x-proxy-cache",
        "cf-cache-status",
        "cf-aig-cache-status",
        "x-portkey-cache-status",
        "helicone-cache",
        "x-vercel-cache",
    ])
}

fn retries() -> Vec<String> {
    names(&["x-litellm-attempted-retries", "x-portkey-retry-attempt-count"])
}

fn attempts() -> Vec<String> {
    names(&["x-envoy-attempt-count", "ngrok-aig-attempts"])
}

fn server_time() -> Vec<String> {
    names(&[
        "x-litellm-response-duration-ms",
        "x-response-time",
        "server-timing",
        "x-envoy-upstream-service-time",
        "openai-processing-ms",
        "x-kong-upstream-latency",
        "x-kong-response-latency",
        "x-kong-proxy-latency",
        "x-runtime",
        "x-process-time",
    ])
}

fn overhead() -> Vec<String> {
    names(&["x-litellm-overhead-duration-ms", "x-mlflow-gateway-overhead-duration-ms"])
}
