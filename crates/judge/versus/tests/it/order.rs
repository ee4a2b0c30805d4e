//! Effect of the order in a block.

use plimsoll_versus::{Figure, Kind, judge};

use crate::simulation::{Simulation, direct, microseconds, target};

fn simulation(random_order: bool) -> Simulation {
    let mut targets = direct(0.0);
    targets.push(target("a", 143.0));
    Simulation { random_order, place_us: 40.0, ..Simulation::new(targets) }
}

#[test]
fn a_balanced_order_cancels_out() {
    let simulation = simulation(true);
    let versus = judge(&simulation.facts(), &simulation.blocks());
    let added = versus.difference("a", "direct", Figure::Ttft, Kind::Added, "p50").unwrap();
    let (low, high) = (microseconds(added.low_ns), microseconds(added.high_ns));
    assert!(low < 143.0 && 143.0 < high, "{low} {high}");
    assert!(versus.findings.is_empty(), "{:?}", versus.findings);
}

/// The control target is always second, so its difference of 40 us is the effect of the order.
#[test]
fn the_control_shows_a_fixed_order() {
    let simulation = simulation(false);
    let versus = judge(&simulation.facts(), &simulation.blocks());
    assert!(versus.control.unwrap().differs);
}
