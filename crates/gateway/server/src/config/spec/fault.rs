//! Configuration keys of injected faults.

use serde::Deserialize;

use crate::config::units::HumanDuration;

/// Injected faults. Shares are between 0 and 1, of the requests that an upstream would answer.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct FaultSpec {
    /// Delay of every request, exact to microseconds at the price of CPU time.
    pub delay: HumanDuration,
    /// Share of requests answered with 500.
    pub error_share: f64,
    /// The policy lets everything pass without a trace.
    pub policy_off: bool,
    /// Rate limits let everything pass.
    pub limiter_open: bool,
    /// Share of the audit rows that are lost without being counted.
    pub audit_drop_share: f64,
    /// Seed of the random choices.
    pub seed: u64,
}

impl FaultSpec {
    /// Names of the faults that are injected.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let faults = [
            ("delay", self.delay.nanos() > 0),
            ("error_share", self.error_share > 0.0),
            ("policy_off", self.policy_off),
            ("limiter_open", self.limiter_open),
            ("audit_drop_share", self.audit_drop_share > 0.0),
        ];
        faults.into_iter().filter_map(|(name, on)| on.then_some(name)).collect()
    }

    /// Whether every share is between 0 and 1.
    pub(crate) fn has_valid_shares(&self) -> bool {
        let shares = [self.error_share, self.audit_drop_share];
        shares.iter().all(|share| (0.0..=1.0).contains(share))
    }
}
