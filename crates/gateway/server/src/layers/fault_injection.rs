//! Injected faults: known errors and costs, to show that a measurement finds them.

use std::cell::Cell;
use std::time::Duration;

use serde::Deserialize;
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::base::clock;
use crate::base::rng::splitmix64;
use crate::config::units::HumanDuration;

/// Injected faults. Shares are between 0 and 1, of the requests to an upstream.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct FaultSpec {
    /// Delay of every request, exact to microseconds at the price of CPU time.
    pub delay: HumanDuration,
    /// Share of requests answered with 500.
    pub error_share: f64,
    /// The policy passes all texts and records nothing.
    pub policy_off: bool,
    /// Rate limits admit all requests.
    pub limiter_open: bool,
    /// Share of the audit rows that are lost and not counted.
    pub audit_drop_share: f64,
    /// Seed of the random choices.
    pub seed: u64,
}

impl FaultSpec {
    /// Names of the faults that are injected.
    pub(crate) fn names(&self) -> Vec<&'static str> {
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

/// tokio's timer has a resolution of a millisecond; the last 2 ms of a delay are spent yielding.
const TIMER_MARGIN: u64 = 2_000_000;

/// The random choices of one worker.
#[derive(Debug, Default)]
pub(crate) struct FaultInjector {
    draws: Cell<u64>,
}

impl FaultInjector {
    /// Whether a fault with this share is injected this time.
    pub(crate) fn should_inject(&self, spec: &FaultSpec, share: f64) -> bool {
        if share <= 0.0 {
            return false;
        }
        self.draws.set(self.draws.get().wrapping_add(1));
        let draw = splitmix64(splitmix64(spec.seed) ^ self.draws.get()) >> 11;
        (draw as f64) < share * (1_u64 << 53) as f64
    }
}

/// Waits exactly: the last part by yielding to other tasks.
pub(crate) async fn delay(nanos: u64) {
    let until = clock::now().saturating_add(nanos);
    if nanos > TIMER_MARGIN {
        sleep(Duration::from_nanos(nanos - TIMER_MARGIN)).await;
    }
    while clock::now() < until {
        yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_injected_as_often_as_its_share_says() {
        let injector = FaultInjector::default();
        let spec = FaultSpec { seed: 7, ..FaultSpec::default() };
        for share in [0.0, 0.01, 0.5, 1.0] {
            let count =
                (0..100_000).filter(|_| injector.should_inject(&spec, share)).count() as f64;
            // Four standard deviations of a binomial draw.
            let bound = 4.0 * (100_000.0 * share * (1.0 - share)).sqrt();
            assert!((count - 100_000.0 * share).abs() <= bound, "{share}: {count}");
        }
    }
}
