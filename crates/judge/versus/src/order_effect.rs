//! What the order of the targets in a block does.

use crate::facts::Facts;
use crate::figure::Figure;
use crate::pairs::{Run, Two};
use crate::result::OrderEffect;

/// A target that comes after the reference in a smaller share of the blocks, or in a share as much
/// larger than one half, is not compared in balanced order.
const BALANCED: f64 = 0.4;
/// Nor is that said of a share that is fewer standard errors from one half: chance does that.
const STANDARD_ERRORS: f64 = 2.6;

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
    let by_order = run.by_order(two, figure);
    let blocks = by_order.blocks;
    let after_share = by_order.after as f64 / blocks.max(1) as f64;
    let target = facts.targets[two.target].name.clone();
    let empty = OrderEffect { target, after_share, blocks, ..OrderEffect::default() };
    match by_order.added.estimate(0.5) {
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
    effects
        .iter()
        .filter(|effect| is_unbalanced(effect))
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

/// Whether the order was not balanced, by more than chance.
fn is_unbalanced(effect: &OrderEffect) -> bool {
    let error = 0.5 / (effect.blocks as f64).sqrt();
    !(BALANCED..=1.0 - BALANCED).contains(&effect.after_share)
        && (effect.after_share - 0.5).abs() > STANDARD_ERRORS * error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_chance_explains_is_not_named() {
        for (blocks, after_share, is_named) in [
            // 10 of 27, and 35 of 60: chance. 300 of 1,000 is not.
            (27, 0.37, false),
            (60, 0.583, false),
            (1_000, 0.3, true),
            (1_000, 0.45, false),
            (10, 1.0, true),
        ] {
            let effect = OrderEffect { after_share, blocks, ..OrderEffect::default() };
            assert_eq!(!warnings(&[effect]).is_empty(), is_named, "{after_share} of {blocks}");
        }
    }
}
