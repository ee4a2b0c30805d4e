//! A control target that differs makes the comparison invalid; one that does not differ leaves it
//! valid.

use plimsoll_measure::{Nanos, Seed};
use plimsoll_versus::{Kind, judge};

use crate::screens::{full, texts};
use crate::simulation::{Simulation, direct, target};

fn simulation(control_us: f64, run: u64) -> Simulation {
    let mut targets = direct(control_us);
    targets.push(target("a", 143.0));
    Simulation { run, ..Simulation::new(targets) }
}

#[test]
fn a_control_target_that_is_100_us_slower_makes_all_of_20_comparisons_invalid() {
    for run in 0..20 {
        let simulation = simulation(100.0, run);
        let versus = judge(&simulation.facts(), &simulation.blocks());
        assert!(versus.control.as_ref().unwrap().differs, "{run}: {:?}", versus.control);
        assert!(
            versus.invalid[0].contains("direct' and direct are the same target"),
            "{:?}",
            versus.invalid
        );
        // No claim is made, although a is certainly slower.
        assert!(versus.claims.is_empty());
    }
}

#[test]
fn an_honest_control_target_leaves_100_comparisons_valid() {
    let invalid = (0..100).filter(|&run| {
        let simulation = Simulation { seconds: 15, ..simulation(0.0, run) };
        !judge(&simulation.facts(), &simulation.blocks()).invalid.is_empty()
    });
    // At 99.9 % confidence one in 1,000 is expected; more than 2 of 100 have a probability of 0.02
    // %.
    assert!(invalid.count() <= 2);
}

/// The control's times are off by up to 8 ms at random, so it does not differ but proves nothing
/// either: its interval is as wide as the overhead of a.
#[test]
fn a_control_whose_interval_is_wide_is_unclear() {
    let simulation = simulation(0.0, 0);
    let mut blocks = simulation.blocks();
    let clear = judge(&simulation.facts(), &blocks);
    // The p90 of the differences of equal targets is not zero, so only the median has a p value.
    let p = |quantile: &str| {
        clear.difference("direct'", "direct", clear.headline, Kind::Added, quantile).unwrap().p
    };
    assert!(p("p50").is_some() && p("p90").is_none());
    assert!(clear.findings.is_empty(), "{:?}", texts(&clear));
    let mut rng = Seed(5).rng("noise", 0);
    for block in &mut blocks {
        let [direct, control] = [rng.below(8_000_000), rng.below(8_000_000)].map(Nanos::new);
        for (target, off) in [(0, direct), (1, control)] {
            let turn = block.turns[target].as_mut().unwrap();
            turn.ttft = turn.ttft.map(|time| time + off);
        }
        let ttft = block.turns[0].unwrap().ttft;
        let a = block.turns[2].as_mut().unwrap();
        a.ttft = ttft.map(|time| time + Nanos::from_micros(60));
    }
    let versus = judge(&simulation.facts(), &blocks);
    let control = versus.control.as_ref().unwrap();
    assert!(!control.differs && control.refused.is_none(), "{control:?}");
    let [text] = &texts(&versus)[..] else { panic!("{:?}", texts(&versus)) };
    let begin = "direct' and direct are the same target; their difference of ";
    let end = "] is not significant; its interval reaches the difference of a.";
    assert!(text.starts_with(begin) && text.ends_with(end), "{text}");
    assert!(full(&versus, 400).contains(&**text), "{}", full(&versus, 400));
}

#[test]
fn the_control_target_is_not_compared_with_the_others() {
    let simulation = simulation(0.0, 0);
    let versus = judge(&simulation.facts(), &simulation.blocks());
    assert_eq!(versus.compared(), ["a"]);
    assert!(
        versus.claims.iter().all(|c| c.target != "direct'" && c.reference != "direct'"),
        "{versus:?}"
    );
}
