//! Chooses the pairs of targets and the figures to compare.

use plimsoll_measure::Block;
use plimsoll_metrics::LoadModel;

use crate::facts::Facts;
use crate::figure::Figure;
use crate::pairs::{Run, Two, value};

/// Pairs each compared target with the reference, then the compared targets with each other (later
/// minus earlier). Variants of the reference are compared with it alone.
pub(crate) fn comparisons(facts: &Facts) -> Vec<Two> {
    let reference = facts.reference();
    let compared = facts.compared();
    let with_reference = compared.iter().map(|&target| Two { target, reference });
    let each_two = compared.iter().enumerate().flat_map(|(position, &target)| {
        let earlier = if facts.variants { 0 } else { position };
        compared[..earlier].iter().map(move |&reference| Two { target, reference })
    });
    with_reference.chain(each_two).collect()
}

/// Pairs the control target with the reference.
pub(crate) fn control(facts: &Facts) -> Option<Two> {
    Some(Two { target: facts.control()?, reference: facts.reference() })
}

/// Figures that both targets have.
pub(crate) fn figures(run: Run<'_>, two: Two) -> Vec<Figure> {
    Figure::ALL
        .into_iter()
        .filter(|figure: &Figure| {
            run.pairs(two).any(|(target, reference)| {
                value(target, *figure).is_some() && value(reference, *figure).is_some()
            })
        })
        .collect()
}

/// The figure that heads the report: TTFT if most completed turns are streams; otherwise the
/// response time, or the service time if all stages are closed, because closed requests have no
/// schedule to be late for.
pub(crate) fn headline(facts: &Facts, blocks: &[Block]) -> Figure {
    let reference = facts.reference();
    let turns = blocks.iter().filter_map(|block| crate::pairs::turn(block, reference));
    let (mut streams, mut completed) = (0_u64, 0_u64);
    for turn in turns.filter(|turn| value(turn, Figure::ServiceTime).is_some()) {
        completed += 1;
        streams += u64::from(turn.ttft.is_some());
    }
    if streams > 0 && streams * 2 >= completed { Figure::Ttft } else { whole_time(facts) }
}

/// The time of a whole request: service time if all stages are closed, else response time.
pub(crate) fn whole_time(facts: &Facts) -> Figure {
    if !facts.stages.is_empty()
        && facts
            .stages
            .iter()
            .all(|stage: &crate::facts::StageFacts| stage.model == LoadModel::Closed)
    {
        Figure::ServiceTime
    } else {
        Figure::ResponseTime
    }
}
