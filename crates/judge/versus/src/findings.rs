//! The findings on a comparison, ordered by urgency.

use plimsoll_report::format;
use plimsoll_rules::Finding;

use crate::claims::FAILURES;
use crate::result::{TargetResult, Versus};
use crate::{control, disturbance, outage};

/// Smallest reported difference between two shares of reused connections.
const REUSED_DIFFER: f64 = 0.01;
/// The difference must also exceed this many standard errors, to exclude chance.
const STANDARD_ERRORS: f64 = 3.0;

/// All findings except single differences: outages, different answers, then the rest by code.
pub(crate) fn findings(versus: &Versus) -> Vec<Finding> {
    // The finding on an outage already reports the failures.
    let is_down = |name: &str| {
        let target = versus.targets.iter().find(|target| target.name == name);
        target.is_some_and(|target| target.outage.is_some())
    };
    let failures = versus.claims.iter().filter(|claim| claim.holds && claim.about == FAILURES);
    let failures = failures.filter(|claim| !is_down(&claim.target));
    let setup = versus.targets.iter().filter(|target| !is_down(&target.name));
    let setup = setup.flat_map(|target| target.setup.iter().cloned());
    versus
        .targets
        .iter()
        .filter_map(outage::finding)
        .chain(versus.other_answers())
        .chain(failures.map(crate::result::Claim::finding))
        .chain(control::finding(versus))
        .chain(setup)
        .chain(connections(&versus.targets))
        .chain(disturbance::findings(versus))
        .collect()
}

/// The finding on targets with different shares of reused connections.
fn connections(targets: &[TargetResult]) -> Option<Finding> {
    // Failures close connections.
    if targets.iter().any(|target| target.failed as f64 > REUSED_DIFFER * target.turns as f64) {
        return None;
    }
    let mut reused: Vec<(&TargetResult, f64)> =
        targets.iter().filter_map(|target| Some((target, target.reused?))).collect();
    let shares: Vec<_> = reused
        .iter()
        .map(|(target, share)| format!("{} {}", target.name, format::share(*share)))
        .collect();
    reused.sort_by(|one, other| one.1.total_cmp(&other.1));
    let ((least, low), (most, high)) = (reused.first()?, reused.last()?);
    let error = (variance(*low, least.turns) + variance(*high, most.turns)).sqrt();
    (high - low > REUSED_DIFFER.max(STANDARD_ERRORS * error))
        .then(|| Finding::new(405).with("shares", shares.join(", ")).with("least", &least.name))
}

/// Variance of a share of this many turns. One success and one failure are added, because a share
/// of a single turn is not certain (Agresti and Caffo, 2000).
fn variance(share: f64, turns: u64) -> f64 {
    let turns = turns as f64;
    let share = (share * turns + 1.0) / (turns + 2.0);
    share * (1.0 - share) / (turns + 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str, turns: u64, reused: f64) -> TargetResult {
        TargetResult {
            name: name.to_owned(),
            turns,
            reused: Some(reused),
            ..TargetResult::default()
        }
    }

    #[test]
    fn shares_that_chance_explains_are_not_named() {
        // 17 of 21 and 16 of 20 differ by a single connection.
        assert_eq!(connections(&[target("a", 21, 0.809), target("b", 20, 0.8)]), None);
        assert_eq!(connections(&[target("a", 1, 1.0), target("b", 1, 0.0)]), None);
        assert_eq!(connections(&[target("a", 60, 0.9), target("b", 60, 0.8)]), None);
        // 100 of 1,000 fewer; the standard error is 1.6 %.
        let found = connections(&[target("a", 1_000, 0.9), target("b", 1_000, 0.8)]).unwrap();
        assert!(found.text().contains("(a 90.00%, b 80.00%)"), "{}", found.text());
        assert!(found.fix().contains("keep-alive at b"), "{}", found.fix());
        assert!(connections(&[target("a", 1_000, 1.0), target("b", 1_000, 0.0)]).is_some());
    }
}
