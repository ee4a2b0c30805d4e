//! Configuration keys of injected faults.

use serde::Deserialize;

use crate::config::units::{ByteSize, HumanDuration};

/// Injected faults. Shares are between 0 and 1, of the requests that an upstream would answer.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate fault")]
pub struct FaultSpec {
    /// Delay of every request, exact to microseconds at the price of CPU time.
    pub delay: HumanDuration,
    /// Share of requests answered with 500.
    pub error_share: f64,
    /// Share of requests whose connection is reset within the response.
    pub reset_share: f64,
    /// Share of responses that stall for `stall` after their first chunk.
    pub stall_share: f64,
    /// Length of such a stall.
    pub stall: HumanDuration,
    /// Periodic pauses of the whole process.
    pub pause: Option<PauseSpec>,
    /// Memory that every request leaks.
    pub leak_bytes: ByteSize,
    /// Streams are held back until they are complete.
    pub buffer_streams: bool,
    /// The policy lets everything pass without a trace.
    pub policy_off: bool,
    /// Rate limits let everything pass.
    pub limiter_open: bool,
    /// Share of the audit rows that are lost without being counted.
    pub audit_drop_share: f64,
    /// Seed of the random choices.
    pub seed: u64,
}

/// Periodic pauses of the whole process.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PauseSpec {
    /// Time from one pause to the next.
    pub every: HumanDuration,
    /// Length of a pause.
    #[serde(rename = "for")]
    pub length: HumanDuration,
}

impl FaultSpec {
    /// Names of the faults that are injected.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let faults = [
            ("delay", self.delay.nanos() > 0),
            ("error_share", self.error_share > 0.0),
            ("reset_share", self.reset_share > 0.0),
            ("stall_share", self.stall_share > 0.0),
            ("pause", self.pause.is_some()),
            ("leak", self.leak_bytes.0 > 0),
            ("buffer_streams", self.buffer_streams),
            ("policy_off", self.policy_off),
            ("limiter_open", self.limiter_open),
            ("audit_drop_share", self.audit_drop_share > 0.0),
        ];
        faults.into_iter().filter_map(|(name, on)| on.then_some(name)).collect()
    }

    /// Whether every share is between 0 and 1.
    pub(crate) fn has_valid_shares(&self) -> bool {
        let shares = [self.error_share, self.reset_share, self.stall_share, self.audit_drop_share];
        shares.iter().all(|share| (0.0..=1.0).contains(share))
    }
}
