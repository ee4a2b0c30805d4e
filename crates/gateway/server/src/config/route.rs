//! Configuration keys of routes.

use serde::Deserialize;
use smart_default::SmartDefault;

use crate::config::units::HumanDuration;

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
    pub upstream: Option<String>,
    /// A fixed response, instead of an upstream.
    pub respond: Option<RespondSpec>,
    /// Prefix that is removed from the path before the request is sent upstream.
    pub strip: Option<String>,
    /// Consumers that may use the route; an empty list allows all.
    #[serde(default)]
    pub consumers: Vec<String>,
    /// Scope that a key needs.
    pub scope: Option<String>,
    /// Time limit until a response begins, instead of the upstream's.
    pub timeout: Option<HumanDuration>,
    /// Whether it is an LLM route, with chat completions or messages that are translated, scanned,
    /// cached and budgeted.
    #[serde(default)]
    pub llm: bool,
    /// Whether `WebSocket` connections are passed through.
    #[serde(default)]
    pub websocket: bool,
}

/// A fixed response.
#[derive(Clone, Debug, SmartDefault, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RespondSpec {
    /// HTTP status.
    #[default(200)]
    pub status: u16,
    /// Content type.
    #[default("application/json".to_owned())]
    pub content_type: String,
    /// Body.
    pub body: String,
}
