//! Configuration keys of pages of other origins.

use serde::Deserialize;

use crate::config::units::HumanDuration;

/// Pages of other origins (CORS).
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct CorsSpec {
    /// Origins, like `https://app.example`, whose pages may read answers and open `WebSocket`
    /// chats; `*` for every one.
    pub origins: Vec<String>,
    /// Whether their pages may send cookies and logins of the browser along.
    pub credentials: bool,
    /// Headers of answers that their pages may read.
    pub expose_headers: Vec<String>,
    /// Time for which a browser remembers that it may ask.
    pub max_age: HumanDuration,
}

impl Default for CorsSpec {
    fn default() -> Self {
        Self {
            origins: Vec::new(),
            credentials: false,
            expose_headers: ["x-request-id", "x-cache", "x-gateway-left-out", "retry-after"]
                .map(str::to_owned)
                .into(),
            max_age: HumanDuration::secs(600),
        }
    }
}
