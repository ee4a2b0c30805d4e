//! Response headers to read: cache states, upstream retries, server times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

/// Response headers to read and record. Names are case-insensitive; an empty list reads none.
#[derive(Clone, Debug, SmartDefault, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseHeaders {
    /// Headers that report whether a cache answered. One `hit` in any of them is a hit. Default:
    /// headers of known gateways, proxies and content delivery networks.
    #[default(names("cache"))]
    pub cache: Vec<String>,
    /// Headers with the number of times that the target retried its upstream; the largest counts.
    #[default(names("retries"))]
    pub retries: Vec<String>,
    /// Headers with the number of attempts of the target at its upstream, including the first.
    #[default(names("attempts"))]
    pub attempts: Vec<String>,
    /// Headers with the time that the target took, in milliseconds, or with a unit such as `12ms`
    /// or `0.5s`; `x-runtime` and `x-process-time` are in seconds. The first header of the list in
    /// a response counts. For `server-timing`, the entry `total` is used, or else the longest one;
    /// its other entries are kept by name, as parts of the time to first byte.
    #[default(names("server_time"))]
    pub server_time: Vec<String>,
    /// Headers with a gateway's own overhead, in milliseconds or with a unit. It is kept as a part
    /// of the time to first byte, under the header's name.
    #[default(names("overhead"))]
    pub overhead: Vec<String>,
    /// Further headers to store in `results.jsonl`, up to 256 bytes each.
    pub record: Vec<String>,
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

/// The headers of a list that are read unless the profile has others.
fn names(list: &str) -> Vec<String> {
    let rows = include_str!("response_headers.tsv").lines();
    let names = rows.filter_map(|row| row.strip_prefix(list)?.strip_prefix('\t'));
    names.map(str::to_owned).collect()
}
