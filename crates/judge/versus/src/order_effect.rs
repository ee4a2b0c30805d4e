//! What the order of the targets in a block does.

use crate::facts::Facts;
use crate::figure::Figure;
use crate::pairs::{Run, Two};
use crate::result::OrderEffect;

/// A target that comes after the reference in a smaller share of the blocks, or in a share as much
/// larger than one half, is not compared in balanced order.
const BALANCED: f64 = 0.4;

/// The order effect of each compared target against the reference. By turns there is no order in a
/// block.
pub(crate) fn order_effects(facts: &Facts, run: Run<'_>, figure: Figure) -> Vec<OrderEffect> {
    if run.batching.is_by_turns() {
        return Vec::new();
    }
    let reference = facts.reference();
    let targets = facts.compared().into_iter();
    let compared = targets.map(|target| Two { target, reference });
    // Without a block that both completed there is no order to look at.
    compared
        .filter(|two| run.pairs(*two).next().is_some())
        .map(|two| of_target(facts, run, two, figure))
        .collect()
}

fn of_target(facts: &Facts, run: Run<'_>, two: Two, figure: Figure) -> OrderEffect {
    let (by_order, after_share) = run.by_order(two, figure);
    let target = facts.targets[two.target].name.clone();
    let empty = OrderEffect { target, after_share, ..OrderEffect::default() };
    match by_order.estimate(0.5) {
        Ok(estimate) => OrderEffect {
            value_ns: Some(estimate.value),
            low_ns: Some(estimate.interval.low),
            high_ns: Some(estimate.interval.high),
            ..empty
        },
        Err(_) if after_share == 0.0 || after_share >= 1.0 => OrderEffect {
            refused: Some("the order of the targets was the same in every block".to_owned()),
            ..empty
        },
        Err(why) => OrderEffect { refused: Some(run.words(why)), ..empty },
    }
}

/// Warnings for targets whose order was not balanced.
pub(crate) fn warnings(effects: &[OrderEffect]) -> Vec<String> {
    let unbalanced =
        effects.iter().filter(|effect| !(BALANCED..=1.0 - BALANCED).contains(&effect.after_share));
    unbalanced
        .map(|effect| {
            let share = plimsoll_report::format::percent(effect.after_share);
            let size = effect.value_ns.map_or_else(String::new, |value| {
                let time = plimsoll_report::format::time(value.abs() / 1e6);
                format!(", and the order makes a difference of {time}")
            });
            format!(
                "{} came after the reference in {share} of the blocks, not in half{size}",
                effect.target
            )
        })
        .collect()
}
