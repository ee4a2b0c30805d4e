//! Configuration keys of the tools.

use std::collections::BTreeMap;

use plimsoll_gateway_mcp::client::Protocol;
use serde::Deserialize;
use smart_default::SmartDefault;

use crate::config::secret::Secret;
use crate::config::units::{ByteSize, HumanDuration};

/// Tools: the gateway's own, and tools of MCP servers.
#[derive(Clone, Debug, SmartDefault, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ToolsSpec {
    /// The gateway's own tools, of `echo`, `time`, `add` and `json_get`.
    #[default(["echo", "time", "add", "json_get"].map(str::to_owned).into())]
    pub local: Vec<String>,
    /// Servers of tools, by name. More can be registered at `POST /v1/mcp/servers`.
    pub servers: BTreeMap<String, ToolServerSpec>,
    /// The tools that each tenant may call: names of tools, `SERVER/*` for all tools of a server,
    /// `local/*` for the gateway's own. `*` matches every tenant and requests without one. Tools
    /// that are not listed are refused.
    pub allow: BTreeMap<String, Vec<String>>,
    /// Most calls of a session.
    #[default(20)]
    pub calls_per_session: u32,
    /// Most open sessions of MCP clients. One tenant, or consumer without a tenant, may use at most
    /// seven eighths.
    #[default(100_000)]
    pub sessions: usize,
    /// Lifetime of a session of an MCP client.
    #[default(HumanDuration::secs(1_800))]
    pub session_timeout: HumanDuration,
    /// Time limit of a call to a server, from its start to the last byte of its answer.
    #[default(HumanDuration::secs(30))]
    pub timeout: HumanDuration,
    /// Largest answer of a server, streamed or not.
    #[default(ByteSize(1 << 20))]
    pub result_bytes: ByteSize,
    /// Time between two requests for the tools of each server; unavailable servers are asked every
    /// two seconds.
    #[default(HumanDuration::secs(30))]
    pub refresh: HumanDuration,
}

/// A server of tools.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ToolServerSpec {
    /// Its MCP endpoint (Streamable HTTP): `http://HOST:PORT/PATH`.
    pub url: String,
    /// Key to send as `authorization: Bearer`; `${NAME}` for an environment variable.
    pub key: Option<Secret>,
    /// The versions of MCP to use.
    #[serde(default)]
    pub protocol: Protocol,
    /// Time limit of a call, instead of `tools.timeout`.
    pub timeout: Option<HumanDuration>,
}
