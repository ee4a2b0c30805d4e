//! J7: a control target that differs makes the comparison invalid, and one that does not, does not.

use plimsoll_metrics::Judgement;
use plimsoll_versus::judge;

use crate::simulation::{Simulation, direct, target};

fn simulation(control_us: f64, run: u64) -> Simulation {
    let mut targets = direct(control_us);
    targets.push(target("a", 143.0));
    Simulation { run, ..Simulation::of(targets) }
}

#[test]
fn a_control_target_that_is_100_us_slower_makes_all_of_20_comparisons_invalid() {
    for run in 0..20 {
        let simulation = simulation(100.0, run);
        let versus = judge(&simulation.facts(), &simulation.blocks());
        assert!(versus.control.as_ref().unwrap().differs, "{run}: {:?}", versus.control);
        assert!(versus.invalid[0].contains("the control differs"), "{:?}", versus.invalid);
        assert!(matches!(versus.judgement(), Judgement::Inconclusive(_)));
        // Nothing is said, though a is certainly slower.
        assert!(versus.claims.is_empty());
    }
}

#[test]
fn an_honest_control_target_leaves_100_comparisons_valid() {
    let invalid = (0..100).filter(|&run| {
        let simulation = Simulation { seconds: 15, ..simulation(0.0, run) };
        !judge(&simulation.facts(), &simulation.blocks()).invalid.is_empty()
    });
    // At 99.9 % confidence one in a thousand; more than 2 of 100 happen in 0.02 %.
    assert!(invalid.count() <= 2);
}

#[test]
fn the_control_target_is_not_compared_with_the_others() {
    let simulation = simulation(0.0, 0);
    let versus = judge(&simulation.facts(), &simulation.blocks());
    assert_eq!(versus.compared(), ["a"]);
    assert!(versus.claims.iter().all(|claim| !claim.text.contains("direct'")), "{versus:?}");
}
