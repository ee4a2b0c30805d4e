//! Policy decisions: what each target decided, and where they disagree.

use plimsoll_measure::Block;
use plimsoll_metrics::ConfusionMatrix;
use plimsoll_metrics::confusion_matrix::Matrix;

use crate::comparisons::comparisons;
use crate::errors::compare;
use crate::facts::Facts;
use crate::pairs::{Run, turn};
use crate::result::{DifferentDecision, TargetMatrix, Verdicts};

/// Most turns that are listed.
const LISTED: usize = 1_000;

/// The policy decisions; `None` if no scenario expects one.
pub(crate) fn verdicts(facts: &Facts, run: Run<'_>) -> Option<Verdicts> {
    let targets = 0..facts.targets.len();
    let matrix: Vec<TargetMatrix> = targets
        .map(|index| TargetMatrix {
            target: facts.targets[index].name.clone(),
            turns: matrix(run, index),
        })
        .collect();
    if matrix.iter().all(|target| target.turns.is_empty()) {
        return None;
    }
    // The provider itself decides nothing: only those that are compared can disagree.
    let judged = facts.compared();
    let differences: Vec<_> = comparisons(facts)
        .into_iter()
        .filter(|two| judged.contains(&two.reference))
        .map(|two| compare(facts, run, two, |turn| turn.as_expected().map(|right| !right)))
        .collect();
    let different: Vec<&Block> =
        run.batching.measured(run.blocks).filter(|block| differ(block, &judged)).collect();
    Some(Verdicts {
        matrix,
        differences,
        different: different.len() as u64,
        turns: different.iter().take(LISTED).map(|block| listed(facts, block)).collect(),
    })
}

fn matrix(run: Run<'_>, target: usize) -> Matrix {
    let mut counts = ConfusionMatrix::default();
    run.turns(target).for_each(|turn| counts.count(turn.expected, turn.decision));
    counts.matrix()
}

/// Whether two of the judged targets that responded decided differently.
fn differ(block: &Block, judged: &[usize]) -> bool {
    let turns = judged.iter().filter_map(|&index| turn(block, index));
    let mut decisions =
        turns.filter(|turn| turn.expected.is_some()).filter_map(|turn| turn.decision);
    let Some(first) = decisions.next() else { return false };
    decisions.any(|decision| decision != first)
}

fn listed(facts: &Facts, block: &Block) -> DifferentDecision {
    let turns: Vec<_> = (0..facts.targets.len()).map(|index| turn(block, index)).collect();
    let expected = turns.iter().flatten().find_map(|turn| turn.expected);
    let decisions = turns.iter().map(|turn| turn.and_then(|turn| turn.decision));
    DifferentDecision {
        index: block.index,
        turn: block.turn,
        scenario: block.scenario.0,
        expected: expected.map(|decision| decision.name().to_owned()),
        decisions: decisions
            .map(|decision| decision.map(|decision| decision.name().to_owned()))
            .collect(),
    }
}
