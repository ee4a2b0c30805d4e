//! Configuration keys of approvals.

use serde::Deserialize;

use crate::config::units::{ByteSize, HumanDuration};

/// Approvals by people.
#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalsSpec {
    /// Time that an approval waits for a decision, if it names none. Then it is expired.
    pub ttl: HumanDuration,
    /// Longest time that an approval may name.
    pub max_ttl: HumanDuration,
    /// Time that a decided approval can still be read.
    pub keep: HumanDuration,
    /// Most approvals of all tenants. The one that was decided first gives way to a new one; where
    /// all are pending, the new one is refused with 503.
    pub max: usize,
    /// Most bytes of an action and its details together, and of a reason.
    pub bytes: ByteSize,
}

impl Default for ApprovalsSpec {
    fn default() -> Self {
        Self {
            ttl: HumanDuration::secs(3_600),
            max_ttl: HumanDuration::secs(604_800),
            keep: HumanDuration::secs(3_600),
            max: 100_000,
            bytes: ByteSize(4 << 10),
        }
    }
}
