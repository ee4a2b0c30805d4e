//! Failures, lost pairs, and targets that were taken out.

use plimsoll_measure::{ErrorClass, Nanos, Outcome};
use plimsoll_versus::{Figure, Kind, TakenOut, judge};

use crate::simulation::{Simulation, direct, target};

fn simulation() -> Simulation {
    let mut targets = direct(0.0);
    targets.extend([target("a", 143.0), target("b", 143.0)]);
    Simulation::new(targets)
}

#[test]
fn single_failures_are_proven_and_a_burst_is_not() {
    for (every, proven) in [(150, true), (1, false)] {
        let simulation = simulation();
        let mut blocks = simulation.blocks();
        // 40 failures of b: one every 150 blocks, or all in a row.
        for block in blocks.iter_mut().step_by(every).take(40) {
            block.turns[3].as_mut().unwrap().outcome = Outcome::Failed(ErrorClass::Reset);
        }
        let versus = judge(&simulation.facts(), &blocks);
        let claim = versus.claims.iter().find(|claim| claim.text.contains("b fails more")).unwrap();
        assert_eq!(claim.holds, proven, "{claim:?}");
        assert!(claim.text.contains("40 to 0 pairs"), "{claim:?}");
        assert_eq!(versus.blocks.lost[0].pairs, 40);
        assert_eq!(versus.targets[3].failures["reset"], 40);
        assert_eq!(versus.blocks.complete, 5_960);
        // More than one in a thousand: the tail is also given with failures as infinitely slow.
        let plain = versus.difference("b", "direct", Figure::Ttft, Kind::Shift, "p50").unwrap();
        let with =
            versus.difference("b", "direct", Figure::Ttft, Kind::ShiftWithFailures, "p50").unwrap();
        assert!(with.value_ns >= plain.value_ns && with.pairs == 6_000, "{with:?} {plain:?}");
        let none = versus.difference("a", "direct", Figure::Ttft, Kind::ShiftWithFailures, "p50");
        assert!(none.is_none());
    }
}

#[test]
fn what_the_generator_did_is_no_failure_of_the_target() {
    let simulation = simulation();
    let mut blocks = simulation.blocks();
    for block in blocks.iter_mut().step_by(10) {
        let turn = block.turns[2].as_mut().unwrap();
        turn.outcome = Outcome::Failed(ErrorClass::PortExhaustion);
    }
    let versus = judge(&simulation.facts(), &blocks);
    assert_eq!(versus.targets[2].failed, 0);
    assert_eq!(versus.blocks.lost[0].pairs, 600);
}

#[test]
fn a_target_that_was_taken_out_leaves_the_others_complete() {
    let simulation = simulation();
    let mut blocks = simulation.blocks();
    for block in &mut blocks[2_000..] {
        block.turns[3] = None;
    }
    let mut facts = simulation.facts();
    let why = "50 % of its turns failed for 10 s".to_owned();
    facts.targets[3].taken_out = Some(TakenOut { at: Nanos::from_secs(20), why });
    let versus = judge(&facts, &blocks);
    assert_eq!(versus.blocks.complete, 6_000);
    let pairs =
        |name| versus.difference(name, "direct", Figure::Ttft, Kind::Added, "p50").unwrap().pairs;
    assert_eq!((pairs("a"), pairs("b")), (6_000, 2_000));
    assert!(versus.targets[3].taken_out.as_ref().unwrap().contains("20s: 50 % of its"));
}
