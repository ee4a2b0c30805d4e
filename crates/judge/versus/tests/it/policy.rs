//! Policy decisions of several targets.

use plimsoll_measure::{Outcome, PolicyDecision};
use plimsoll_versus::judge;

use crate::screens::full;
use crate::simulation::{Simulation, direct, target};

#[test]
fn decisions_are_counted_compared_and_listed() {
    let mut targets = direct(0.0);
    targets.extend([target("a", 100.0), target("b", 100.0)]);
    let simulation = Simulation::new(targets);
    let mut blocks = simulation.blocks();
    for block in &mut blocks {
        for turn in block.turns.iter_mut().flatten() {
            (turn.expected, turn.decision) =
                (Some(PolicyDecision::Allow), Some(PolicyDecision::Allow));
        }
    }
    // b blocks 60 harmless turns, and fails to answer 5.
    for block in blocks.iter_mut().step_by(100) {
        let turn = block.turns[3].as_mut().unwrap();
        turn.outcome = Outcome::Rejected(403);
        turn.decision = Some(PolicyDecision::Block);
    }
    for block in blocks.iter_mut().skip(50).step_by(100).take(5) {
        let turn = block.turns[3].as_mut().unwrap();
        (turn.outcome, turn.decision) = (Outcome::TimedOut, None);
    }
    let versus = judge(&simulation.facts(), &blocks);
    let verdicts = versus.verdicts.as_ref().unwrap();
    let allow = &verdicts.matrix[3].turns["allow"];
    assert_eq!((allow["allow"], allow["block"], allow["unanswered"]), (5_935, 60, 5));
    assert_eq!(verdicts.matrix[2].turns["allow"]["allow"], 6_000);
    assert_eq!(verdicts.different, 60);
    let page = full(&versus, 120);
    let table = page.split("\nPolicy decisions\n").nth(1).unwrap();
    let row = table.lines().find(|line| line.starts_with("  b ")).unwrap();
    let cells: Vec<_> = row.split_whitespace().collect();
    assert_eq!((cells[1], cells[2], cells[3]), ("allow", "5,935", "60"), "{table}");
    assert!((versus.targets[3].correct.unwrap() - 5_935.0 / 5_995.0).abs() < 1e-12);
    // A rejection that is judged as a decision is not a failure; a timeout is.
    assert_eq!(versus.targets[3].failed, 5);
}

#[test]
fn without_expectations_there_are_no_decisions() {
    let simulation = Simulation::new(direct(0.0));
    assert_eq!(judge(&simulation.facts(), &simulation.blocks()).verdicts, None);
}

#[test]
fn what_is_refused_as_expected_is_not_lost() {
    let mut targets = direct(0.0);
    targets.push(target("a", 100.0));
    let simulation = Simulation::new(targets);
    let mut blocks = simulation.blocks();
    for block in blocks.iter_mut().step_by(10) {
        let turn = block.turns[2].as_mut().unwrap();
        turn.outcome = Outcome::Rejected(403);
        (turn.expected, turn.decision) = (Some(PolicyDecision::Block), Some(PolicyDecision::Block));
    }
    let versus = judge(&simulation.facts(), &blocks);
    assert_eq!((versus.blocks.complete, versus.blocks.refused_as_expected), (5_400, 600));
    assert_eq!(versus.targets[2].failed, 0);
}
