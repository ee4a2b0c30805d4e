//! Policy decisions: the decisions of each target, and how often targets disagree.

use plimsoll_measure::Block;
use plimsoll_metrics::ConfusionMatrix;
use plimsoll_metrics::confusion_matrix::Matrix;

use crate::facts::Facts;
use crate::pairs::{Run, turn};
use crate::result::{TargetMatrix, Verdicts};

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
    // The upstream decides nothing, so only compared targets can disagree.
    let judged = facts.compared();
    let measured = run.batching.measured(run.blocks);
    let different = measured.filter(|block| differ(block, &judged)).count() as u64;
    Some(Verdicts { matrix, different })
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
