//! Counts requests by expected and actual policy decision.

use std::collections::BTreeMap;

use plimsoll_measure::PolicyDecision;
use serde::{Deserialize, Serialize};

/// The name of the column of requests without a response.
pub const UNANSWERED: &str = "unanswered";

/// Requests by the name of the expected policy decision, then by the actual one or [`UNANSWERED`].
/// Pairs without requests are left out.
pub type Matrix = BTreeMap<String, BTreeMap<String, u64>>;

/// Requests by expected and actual policy decision; those without an expected one are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfusionMatrix {
    /// By the expected policy decision, then by the actual one; the last column counts requests
    /// without a response.
    counts: [[u64; PolicyDecision::COUNT + 1]; PolicyDecision::COUNT],
}

impl ConfusionMatrix {
    /// Counts a request; `None` as the actual policy decision means unanswered.
    #[inline]
    pub fn count(&mut self, expected: Option<PolicyDecision>, actual: Option<PolicyDecision>) {
        if let Some(expected) = expected {
            self.counts[expected as usize][column(actual)] += 1;
        }
    }

    /// Adds another group's counts.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().flatten().zip(other.counts.iter().flatten()) {
            *mine += theirs;
        }
    }

    /// The requests with this expected and this actual policy decision; `None` means unanswered.
    fn count_of(&self, expected: PolicyDecision, actual: Option<PolicyDecision>) -> u64 {
        self.counts[expected as usize][column(actual)]
    }

    /// The same by name.
    pub fn matrix(&self) -> Matrix {
        let mut matrix = Matrix::new();
        let actual = PolicyDecision::ALL.map(Some).into_iter().chain([None]);
        let pairs =
            PolicyDecision::ALL.into_iter().flat_map(|e| actual.clone().map(move |a| (e, a)));
        for (expected, actual) in pairs.filter(|(e, a)| self.count_of(*e, *a) > 0) {
            let word = actual.map_or(UNANSWERED, PolicyDecision::name);
            let row = matrix.entry(expected.name().to_owned()).or_default();
            row.insert(word.to_owned(), self.count_of(expected, actual));
        }
        matrix
    }
}

fn column(actual: Option<PolicyDecision>) -> usize {
    actual.map_or(PolicyDecision::COUNT, |policy_decision| policy_decision as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_follow_the_list_of_policy_decisions() {
        for (index, policy_decision) in PolicyDecision::ALL.into_iter().enumerate() {
            assert_eq!(policy_decision as usize, index);
        }
    }
}
