//! J6: what the order in a block does.

use plimsoll_versus::{Figure, Kind, judge};

use crate::simulation::{Simulation, direct, microseconds, target};

fn simulation(random_order: bool) -> Simulation {
    let mut targets = direct(0.0);
    targets.push(target("a", 143.0));
    Simulation { random_order, place_us: 40.0, ..Simulation::new(targets) }
}

#[test]
fn a_balanced_order_cancels_out_and_its_effect_is_reported() {
    let simulation = simulation(true);
    let versus = judge(&simulation.facts(), &simulation.blocks());
    let added = versus.difference("a", "direct", Figure::Ttft, Kind::Added, "p50").unwrap();
    let (low, high) = (microseconds(added.low_ns), microseconds(added.high_ns));
    assert!(low < 143.0 && 143.0 < high, "{low} {high}");
    // Each of three places adds 40 us: after less before is 2 * 4/3 * 40 on average.
    let effect = &versus.order_effect[0];
    assert!((0.4..0.6).contains(&effect.after_share), "{effect:?}");
    let value = microseconds(effect.value_ns);
    assert!((value - 106.7).abs() < 25.0 && microseconds(effect.low_ns) > 0.0, "{effect:?}");
    assert!(versus.warnings.is_empty(), "{:?}", versus.warnings);
}

#[test]
fn a_fixed_order_is_named() {
    let simulation = simulation(false);
    let versus = judge(&simulation.facts(), &simulation.blocks());
    let effect = &versus.order_effect[0];
    assert!(effect.refused.as_ref().unwrap().contains("the same in every block"), "{effect:?}");
    assert!(versus.warnings[0].contains("a came after the reference in 100%"), "{versus:?}");
    // The control target is always second: its difference of 40 us is the order's.
    assert!(versus.control.unwrap().differs);
}
