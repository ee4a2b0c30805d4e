//! Whether the targets did the same work. Where their answers differ by more than chance, their
//! times are not those of the same work.

use std::collections::BTreeSet;

use plimsoll_measure::{FinishReason, Outcome, PairedTurn};
use plimsoll_report::format;
use plimsoll_stats::sign_test::sign_p;

use crate::comparisons::comparisons;
use crate::facts::Facts;
use crate::pairs::{Run, Two};
use crate::result::{TargetResult, Versus, WorkloadMismatch};

/// A run whose targets do the same work has a mismatch with this probability at most, however much
/// their answers vary: the level of all tests together, by Bonferroni.
const LEVEL: f64 = 0.001;
/// Shares that differ by fewer points, and means by a smaller part, are not named.
const NOTABLE: f64 = 0.01;
/// Shares of used connections that differ by less are not named.
const REUSED_DIFFER: f64 = 0.01;
/// Nor are those that differ by fewer standard errors of two shares: chance does that.
const STANDARD_ERRORS: f64 = 3.0;

/// The value of a feature.
type ValueOf = dyn Fn(&PairedTurn) -> Option<f64>;

/// A feature of an answer: 1 or 0 for having it, or a count; `None` if unknown.
struct Feature {
    about: String,
    is_share: bool,
    of: Box<ValueOf>,
}

impl Feature {
    fn share(about: &str, has: impl Fn(&PairedTurn) -> bool + 'static) -> Self {
        let of = Box::new(move |turn: &PairedTurn| Some(f64::from(has(turn))));
        Self { about: about.to_owned(), is_share: true, of }
    }

    fn count(about: &str, count: fn(&PairedTurn) -> u32) -> Self {
        let of =
            Box::new(move |turn: &PairedTurn| Some(f64::from(count(turn))).filter(|n| *n > 0.0));
        Self { about: about.to_owned(), is_share: false, of }
    }

    /// Compares the feature in the answers of each pair that both targets completed. Equal targets
    /// have more of it equally often (McNemar, 1947; the sign test).
    fn compare(&self, run: Run<'_>, two: Two) -> (f64, [f64; 2], u64) {
        let (mut more, mut fewer, mut pairs, mut sums) = (0, 0, 0_u64, [0.0; 2]);
        for (target, reference) in run.pairs(two) {
            if [target, reference].iter().any(|turn| turn.outcome != Outcome::Completed) {
                continue;
            }
            let Some((target, reference)) = (self.of)(target).zip((self.of)(reference)) else {
                continue;
            };
            (more, fewer) =
                (more + u64::from(target > reference), fewer + u64::from(target < reference));
            (pairs, sums) = (pairs + 1, [sums[0] + target, sums[1] + reference]);
        }
        (sign_p(more, fewer, run.batching.looks), sums.map(|sum| sum / pairs.max(1) as f64), pairs)
    }
}

/// The features in which the answers of each two targets differ.
pub(crate) fn mismatches(facts: &Facts, run: Run<'_>) -> Vec<WorkloadMismatch> {
    let (features, all) = (features(facts, run), comparisons(facts));
    let level = LEVEL / (features.len() * all.len()).max(1) as f64;
    let tests = all.iter().flat_map(|two| features.iter().map(move |feature| (*two, feature)));
    tests
        .filter_map(|(two, feature)| {
            let (p, [of_target, of_reference], pairs) = feature.compare(run, two);
            let least = if feature.is_share { NOTABLE } else { NOTABLE * of_reference };
            (p < level && (of_target - of_reference).abs() > least).then(|| WorkloadMismatch {
                target: facts.name(two.target).to_owned(),
                reference: facts.name(two.reference).to_owned(),
                about: feature.about.clone(),
                is_share: feature.is_share,
                of_target,
                of_reference,
                pairs,
            })
        })
        .collect()
}

fn features(facts: &Facts, run: Run<'_>) -> Vec<Feature> {
    let turns = run.batching.measured(run.blocks).flat_map(|block| block.turns.iter().flatten());
    let turns = turns.filter(|turn| turn.outcome == Outcome::Completed);
    let seen: BTreeSet<(u16, Option<FinishReason>)> =
        turns.map(|turn| (turn.status, turn.finish_reason)).collect();
    let statuses: BTreeSet<u16> = seen.iter().map(|(status, _)| *status).collect();
    let statuses = statuses.into_iter().map(|status| {
        Feature::share(&format!("status {status}"), move |turn| turn.status == status)
    });
    // Dialects have different words for the same reason.
    let mut protocols = facts.targets.iter().map(|target| &target.protocol);
    let first = protocols.next();
    let reasons: BTreeSet<FinishReason> = seen
        .into_iter()
        .filter_map(|(_, reason)| reason)
        .filter(|_| protocols.clone().all(|protocol| Some(protocol) == first))
        .collect();
    let reasons = reasons.into_iter().map(|reason| {
        let about = format!("finish reason `{}`", reason.name());
        Feature::share(&about, move |turn| turn.finish_reason == Some(reason))
    });
    let parts = [
        Feature::share("content", |turn| turn.content_bytes > 0),
        Feature::share("token counts", |turn| turn.output_tokens > 0),
        Feature::share("reasoning", |turn| turn.reasoning),
        Feature::share("tool calls", |turn| turn.tool_calls),
        Feature::count("content bytes", |turn| turn.content_bytes),
        Feature::count("output tokens", |turn| turn.output_tokens),
        Feature::count("input tokens", |turn| turn.input_tokens),
    ];
    statuses.chain(parts).chain(reasons).collect()
}

impl Versus {
    /// A sentence on each target that did not do the work of the reference.
    pub fn unlike_work(&self) -> Vec<String> {
        self.compared().into_iter().filter_map(|target| self.unlike_work_of(target)).collect()
    }

    fn unlike_work_of(&self, target: &str) -> Option<String> {
        let reference = self.reference();
        let own = self.workload_mismatch.iter().filter(|found| found.is_of(target, reference));
        let parts: Vec<_> = own.map(|found| found.words(reference)).collect();
        let parts = (!parts.is_empty()).then(|| parts.join(", "))?;
        Some(format!("{target} and {reference} did not do the same work: {parts}"))
    }

    /// Whether the answers of two targets differ, so that their times are not those of the same
    /// work.
    pub(crate) fn is_mismatch(&self, target: &str, reference: &str) -> bool {
        self.workload_mismatch.iter().any(|found| found.is_of(target, reference))
    }
}

impl WorkloadMismatch {
    /// Whether it is that of these two targets, in any order.
    pub(crate) fn is_of(&self, target: &str, reference: &str) -> bool {
        let own = (&*self.target, &*self.reference);
        own == (target, reference) || own == (reference, target)
    }

    fn words(&self, reference: &str) -> String {
        let Self { about, of_target, of_reference, .. } = self;
        if self.is_share {
            let [own, other] = [of_target, of_reference].map(|share| format::share(*share));
            format!("{about} in {own} of the answers ({reference} {other})")
        } else {
            let [own, other] = [of_target, of_reference].map(|mean| format::digits(*mean));
            format!("{own} {about} an answer ({reference} {other})")
        }
    }
}

/// A warning where targets used their connections again in different shares.
pub(crate) fn connections(targets: &[TargetResult]) -> Option<String> {
    let reused: Vec<_> = targets.iter().filter(|target| target.reused.is_some()).collect();
    let by_share = |a: &&&TargetResult, b: &&&TargetResult| {
        a.reused.unwrap_or_default().total_cmp(&b.reused.unwrap_or_default())
    };
    let (least, most) = (reused.iter().min_by(by_share)?, reused.iter().max_by(by_share)?);
    let shares: Vec<_> = reused
        .iter()
        .filter_map(|target| Some(format!("{} {}", target.name, format::share(target.reused?))))
        .collect();
    differ(least, most).then(|| {
        format!(
            "connections were used again in different shares ({}): new ones take longer",
            shares.join(", ")
        )
    })
}

/// Whether two shares of turns over used connections differ, by more than chance.
fn differ(least: &TargetResult, most: &TargetResult) -> bool {
    let (Some(low), Some(high)) = (least.reused, most.reused) else { return false };
    let error = (variance(low, least.turns) + variance(high, most.turns)).sqrt();
    high - low > REUSED_DIFFER.max(STANDARD_ERRORS * error)
}

/// The variance of a share of so many turns, with a success and a failure more, so that a share of
/// one turn is not certain (Agresti and Caffo, 2000).
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
        // 17 of 21 and 16 of 20: one connection more or less.
        assert_eq!(connections(&[target("a", 21, 0.809), target("b", 20, 0.8)]), None);
        assert_eq!(connections(&[target("a", 1, 1.0), target("b", 1, 0.0)]), None);
        assert_eq!(connections(&[target("a", 60, 0.9), target("b", 60, 0.8)]), None);
        // 100 of 1,000 less: the standard error is 1.6 %.
        let said = connections(&[target("a", 1_000, 0.9), target("b", 1_000, 0.8)]).unwrap();
        assert!(said.contains("(a 90.00%, b 80.00%)"), "{said}");
        assert!(connections(&[target("a", 1_000, 1.0), target("b", 1_000, 0.0)]).is_some());
    }
}
