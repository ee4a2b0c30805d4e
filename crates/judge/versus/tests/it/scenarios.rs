//! What targets add in single scenarios.

use plimsoll_measure::{Block, Nanos, ScenarioId};
use plimsoll_versus::{Facts, combine, judge};

use crate::screens::full;
use crate::simulation::{Simulation, direct, microseconds, target};

/// Three scenarios by turns; in the last one, b adds so many microseconds more.
fn run(more_us: u64, run: u64, seconds: u64) -> (Facts, Vec<Block>) {
    let mut targets = direct(0.0);
    targets.remove(1);
    targets.extend([target("a", 143.0), target("b", 143.0)]);
    let simulation = Simulation { seconds, run, ..Simulation::new(targets) };
    let mut blocks = simulation.blocks();
    for (index, block) in (0_u16..).zip(&mut blocks) {
        block.scenario = ScenarioId(index % 3);
        if index % 3 == 2 {
            let turn = block.turns[2].as_mut().unwrap();
            turn.ttft = turn.ttft.map(|time| time + Nanos::from_micros(more_us));
        }
    }
    let scenarios = ["short", "chat", "long"].map(str::to_owned).to_vec();
    (Facts { scenarios, ..simulation.facts() }, blocks)
}

#[test]
fn a_scenario_that_differs_is_pointed_out_and_no_other() {
    let (facts, blocks) = run(300, 0, 60);
    let versus = judge(&facts, &blocks);
    assert_eq!(versus.scenarios.len(), 6);
    for found in &versus.scenarios {
        let planted =
            if (&*found.target, &*found.scenario) == ("b", "long") { 443.0 } else { 143.0 };
        let (low, high) = (microseconds(found.low_ns), microseconds(found.high_ns));
        assert!(low < planted && planted < high && high - low < 12.0, "{found:?}");
        assert_eq!(found.pairs, 2_000);
        // The whole of b lies between its scenarios, so all of them differ from it. One in twenty
        // of those that are pointed out may be chance, so a's are held against a lower level.
        assert_eq!(found.q.unwrap() < 0.01, found.target == "b", "{found:?}");
    }
    let page = full(&versus, 200);
    assert!(page.contains("Worth a look: b in `"), "{page}");
    assert!(page.contains(" of 6 scenarios and targets differ from the whole."), "{page}");
    let rounds = [versus, judge(&run(300, 1, 60).0, &run(300, 1, 60).1)];
    let both = combine(&rounds).unwrap();
    let long = both.scenarios.iter().find(|f| f.target == "b" && f.scenario == "long").unwrap();
    assert!((microseconds(long.value_ns) - 443.0).abs() < 5.0 && long.pairs == 4_000, "{long:?}");
}

#[test]
fn equal_scenarios_are_pointed_out_in_at_most_17_of_200_runs() {
    let wrong = (0..200).filter(|&index| {
        let (facts, blocks) = run(0, index, 10);
        let versus = judge(&facts, &blocks);
        versus.scenarios.iter().any(|found| found.q.is_some_and(|q| q < 0.05))
    });
    let wrong = wrong.count();
    println!("a scenario is pointed out in {wrong} of 200");
    assert!(wrong <= 17, "{wrong}");
}

#[test]
fn a_single_scenario_is_not_compared_with_itself() {
    let simulation = Simulation::new(vec![target("a", 0.0), target("b", 0.0)]);
    assert!(judge(&simulation.facts(), &simulation.blocks()).scenarios.is_empty());
}
