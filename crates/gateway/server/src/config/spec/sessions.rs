//! Configuration keys of sessions.

use serde::Deserialize;

use crate::config::units::{ByteSize, HumanDuration};

/// Sessions.
#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SessionsSpec {
    /// Life time of a session that names none.
    pub ttl: HumanDuration,
    /// Longest life time that a session may name.
    pub max_ttl: HumanDuration,
    /// Most live sessions of all tenants; further ones are refused with 503. In memory one costs
    /// less than 2 KiB beside its metadata.
    pub max: usize,
    /// Most bytes of a session's metadata.
    pub metadata_bytes: ByteSize,
    /// Most tool calls of a session, and of a chat.
    pub calls: u32,
}

impl Default for SessionsSpec {
    fn default() -> Self {
        Self {
            ttl: HumanDuration::secs(1_800),
            max_ttl: HumanDuration::secs(86_400),
            max: 100_000,
            metadata_bytes: ByteSize(1 << 10),
            calls: 20,
        }
    }
}
