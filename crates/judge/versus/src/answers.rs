//! Detects targets that return different answers. If answers differ significantly, the targets did
//! different work and their times are not comparable.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_measure::{FinishReason, Outcome, PairedTurn};
use plimsoll_report::format;
use plimsoll_rules::Finding;
use plimsoll_stats::sign_test::sign_p;

use crate::comparisons::{comparisons, control};
use crate::facts::Facts;
use crate::pairs::{Run, Turns, Two};
use crate::result::{Versus, WorkloadMismatch};

/// Significance level of all mismatch tests together (Bonferroni): the probability of a false
/// mismatch between equal targets, however much their answers vary.
const LEVEL: f64 = 0.001;
/// Smallest reported difference: as a share of the pairs, or relative to the mean.
const NOTABLE: f64 = 0.01;
/// Number of standard errors above which a share of changed texts is reported.
const STANDARD_ERRORS: f64 = 4.0;

/// The value of a feature.
type ValueOf = dyn Fn(&PairedTurn) -> Option<f64>;

/// A feature of an answer: 1 or 0 if it is present or absent, or a count; `None` if unknown.
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

    /// Whether an answer names the reference's most frequent model; `None` if the reference names
    /// no model, or if the targets are asked for different ones.
    fn model(facts: &Facts, run: Run<'_>, two: Two) -> Option<Self> {
        let asked = |target: usize| facts.targets[target].model.rsplit('/').next();
        if asked(two.target) != asked(two.reference) {
            return None;
        }
        let mut named: BTreeMap<u32, u64> = BTreeMap::new();
        for (_, reference) in completed(run, two).filter(|(_, turn)| turn.model != 0) {
            *named.entry(reference.model).or_default() += 1;
        }
        let (model, _) = named.into_iter().max_by_key(|(_, count)| *count)?;
        Some(Self {
            about: format!("the same `model` as {}", facts.name(two.reference)),
            is_share: true,
            of: Box::new(move |turn| (turn.model != 0).then_some(f64::from(turn.model == model))),
        })
    }

    /// Compares the feature over the pairs that both targets completed. Equal targets are equally
    /// likely to have the larger value (McNemar, 1947; the sign test).
    fn compare(&self, run: Run<'_>, two: Two) -> (f64, [f64; 2], u64) {
        let (mut more, mut fewer, mut pairs, mut sums) = (0, 0, 0_u64, [0.0; 2]);
        for (target, reference) in completed(run, two) {
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

/// Pairs that both targets completed.
fn completed(run: Run<'_>, two: Two) -> impl Iterator<Item = Turns<'_>> {
    run.pairs(two).filter(|(target, reference)| {
        [target, reference].iter().all(|turn| turn.outcome == Outcome::Completed)
    })
}

/// Returns the features in which the answers of any two compared targets differ.
pub(crate) fn mismatches(facts: &Facts, run: Run<'_>) -> Vec<WorkloadMismatch> {
    let (features, all) = (features(facts, run), comparisons(facts));
    let level = LEVEL / ((features.len() + 1) * all.len()).max(1) as f64;
    let fixed = fixed_texts(facts, run);
    let mut found = Vec::new();
    for two in all {
        let model = Feature::model(facts, run, two);
        let own: Vec<_> = features
            .iter()
            .chain(&model)
            .filter_map(|feature| {
                let (p, [of_target, of_reference], pairs) = feature.compare(run, two);
                let least = if feature.is_share { NOTABLE } else { NOTABLE * of_reference };
                (p < level && (of_target - of_reference).abs() > least).then(|| {
                    let (about, is_share) = (feature.about.clone(), feature.is_share);
                    mismatch(facts, two, about, is_share, [of_target, of_reference], pairs)
                })
            })
            .collect();
        // A text that is shorter or lacks a part is already reported as another difference.
        let text = fixed.filter(|_| own.is_empty()).and_then(|fixed| text(facts, run, two, fixed));
        found.extend(own.into_iter().chain(text));
    }
    found
}

fn mismatch(
    facts: &Facts,
    two: Two,
    about: String,
    is_share: bool,
    [of_target, of_reference]: [f64; 2],
    pairs: u64,
) -> WorkloadMismatch {
    let (target, reference) =
        (facts.name(two.target).to_owned(), facts.name(two.reference).to_owned());
    WorkloadMismatch { target, reference, about, is_share, of_target, of_reference, pairs }
}

/// The share of pairs with the same text, and its variance.
#[derive(Clone, Copy)]
struct SameText {
    share: f64,
    variance: f64,
    pairs: u64,
}

impl SameText {
    fn of(run: Run<'_>, two: Two) -> Self {
        let (mut pairs, mut same) = (0_u64, 0_u64);
        let known = completed(run, two).filter(|(target, reference)| {
            target.content_digest != 0 && reference.content_digest != 0
        });
        for (target, reference) in known {
            (pairs, same) =
                (pairs + 1, same + u64::from(target.content_digest == reference.content_digest));
        }
        let count = pairs.max(1) as f64;
        let share = same as f64 / count;
        // One success and one failure are added, because a share of 100 % of a few pairs is not
        // certain.
        let smooth = (same as f64 + 1.0) / (count + 2.0);
        Self { share, variance: smooth * (1.0 - smooth) / (count + 2.0), pairs }
    }
}

/// The highest share of equal texts between two targets, if it is nearly 1. Otherwise the model's
/// texts vary, and a difference is not the target's.
fn fixed_texts(facts: &Facts, run: Run<'_>) -> Option<SameText> {
    let all = control(facts).into_iter().chain(comparisons(facts));
    let same = all.map(|two| SameText::of(run, two)).filter(|same| same.pairs > 0);
    let most = same.max_by(|one, other| one.share.total_cmp(&other.share))?;
    (most.share >= 1.0 - NOTABLE).then_some(most)
}

fn text(facts: &Facts, run: Run<'_>, two: Two, fixed: SameText) -> Option<WorkloadMismatch> {
    let own = SameText::of(run, two);
    let error = (own.variance + fixed.variance).sqrt();
    let about = format!("the text of {}", facts.name(two.reference));
    (own.pairs > 0 && fixed.share - own.share > NOTABLE.max(STANDARD_ERRORS * error))
        .then(|| mismatch(facts, two, about, true, [own.share, fixed.share], own.pairs))
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
    // Each API format has its own words for the same finish reason.
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
    /// Returns the findings on targets whose answers differ from the reference's.
    pub(crate) fn other_answers(&self) -> impl Iterator<Item = Finding> {
        let reference = self.reference();
        self.compared().into_iter().filter_map(move |target| {
            let own = self.workload_mismatch.iter().filter(|found| found.is_of(target, reference));
            let parts: Vec<_> = own.map(WorkloadMismatch::words).collect();
            (!parts.is_empty()).then(|| {
                let finding = Finding::new(401).with("target", target).with("reference", reference);
                finding.with("what", parts.join(", "))
            })
        })
    }

    /// Whether the answers of two targets differ, so that their times are not comparable.
    pub(crate) fn is_mismatch(&self, target: &str, reference: &str) -> bool {
        self.workload_mismatch.iter().any(|found| found.is_of(target, reference))
    }
}

impl WorkloadMismatch {
    /// Whether it concerns these two targets, in either order.
    pub(crate) fn is_of(&self, target: &str, reference: &str) -> bool {
        let own = (&*self.target, &*self.reference);
        own == (target, reference) || own == (reference, target)
    }

    /// Formats as `reasoning in 0% instead of 100%` or `200 content bytes instead of 400`.
    fn words(&self) -> String {
        let Self { about, of_target, of_reference, .. } = self;
        if self.is_share {
            let [own, other] = [of_target, of_reference].map(|share| format::share(*share));
            format!("{about} in {own} instead of {other}")
        } else {
            let [own, other] = [of_target, of_reference].map(|mean| format::digits(*mean));
            format!("{own} {about} instead of {other}")
        }
    }
}
