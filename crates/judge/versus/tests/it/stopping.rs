//! `--decide`: a run that ends as soon as it is decided. Its table must be correct although the
//! data chose the moment of stopping.

use plimsoll_measure::Nanos;
use plimsoll_stats::Looks;
use plimsoll_versus::{
    AddedThreshold, Decider, Facts, Figure, Kind, Versus, csv, judge, prometheus,
};

use crate::screens::full;
use crate::simulation::{Simulation, direct, target};

const RUNS: u64 = 100;

/// The upstream against one target with a given overhead, once.
fn simulation(adds_us: f64, run: u64) -> Simulation {
    let mut targets = direct(0.0);
    targets.remove(1);
    targets.push(target("a", adds_us));
    Simulation { run, rate: 50, seed: 2_013, ..Simulation::new(targets) }
}

/// Carries out a run second by second, as the engine hands over its blocks, and judges the blocks
/// at its end.
fn carry_out(simulation: &Simulation, known: Facts) -> Versus {
    let blocks = simulation.blocks();
    let mut decider = Decider::new(&known);
    let second = usize::try_from(simulation.rate).unwrap();
    let mut chunks = blocks.chunks(second);
    let decided_at = chunks.find_map(|second| decider.add(second));
    judge(&Facts { looks: Looks::Always, decided_at, ..known }, &blocks)
}

fn run(adds_us: f64, run: u64) -> Versus {
    let simulation = simulation(adds_us, run);
    carry_out(&simulation, simulation.facts())
}

fn is_decided(versus: &Versus) -> bool {
    versus.stopping.as_ref().is_some_and(|stopping| stopping.decided_at_ns.is_some())
}

/// Counts the intervals of the table that miss the planted value, and those that are missing.
fn missed(all: &[Versus], what: (Figure, Kind, &str), planted_us: f64) -> (usize, usize) {
    let (figure, kind, quantile) = what;
    let misses = |(low, high): &(f64, f64)| planted_us < *low || *high < planted_us;
    let measured: Vec<_> = all
        .iter()
        .filter_map(|versus: &Versus| {
            let found = versus.difference("a", "direct", figure, kind, quantile).unwrap();
            found.measured().map(|(_, low, high)| (low / 1e3, high / 1e3))
        })
        .collect();
    (measured.iter().filter(|ends| misses(ends)).count(), all.len() - measured.len())
}

/// The nominal error rate is 5 %, at which more than 10 of 100 have a probability of 1.1 %; all
/// tests together stay below it.
#[test]
fn the_intervals_of_a_run_that_was_ended_early_still_cover() {
    let all: Vec<_> = (0..RUNS).map(|number| run(4.0, number)).collect();
    let early = all.iter().filter(|versus| is_decided(versus)).count();
    assert!(early >= 60, "{early} of {RUNS} were decided");
    let lengths: std::collections::BTreeSet<u64> = all
        .iter()
        .filter_map(|versus| versus.stopping.as_ref()?.decided_at_ns)
        .map(|at| at / 1_000_000_000)
        .collect();
    assert!(lengths.len() >= 5, "the data decide when: {lengths:?}");
    for what in [
        (Figure::Ttft, Kind::Added, "p50"),
        (Figure::Ttft, Kind::Added, "p90"),
        (Figure::Ttft, Kind::Added, "p99"),
        (Figure::Ttft, Kind::Shift, "p50"),
        (Figure::ResponseTime, Kind::Added, "p50"),
    ] {
        // Each target draws ways from the same distribution: p90 and p99 of the overhead differ
        // from 4 by the percentiles of the difference of two ways.
        let own = match what {
            (_, Kind::Added, "p90") => 4.0 + P90_OF_WAYS,
            (_, Kind::Added, "p99") => 4.0 + P99_OF_WAYS,
            _ => 4.0,
        };
        let (missed, refused) = missed(&all, what, own);
        println!("{what:?}: {missed} missed, {refused} refused");
        assert!(missed <= 10, "{what:?}: {missed} of {RUNS} miss {own}");
    }
    // The table shows exactly what was decided.
    for versus in all.iter().filter(|versus| is_decided(versus)) {
        assert!(
            versus.claims.iter().any(|claim| claim.holds && claim.about == "ttft"),
            "{versus:?}"
        );
    }
}

/// Percentiles of the difference of two independent sums of two exponential times of 20 us. Its
/// tail is `P(D > x) = (2 + x/20) exp(-x/20) / 4`: by partial fractions of the characteristic
/// function `1 / (1 + t^2)^2`. Solved for 10 % and 1 %.
const P90_OF_WAYS: f64 = 20.0 * 2.397_276;
const P99_OF_WAYS: f64 = 20.0 * 5.191_82;

#[test]
fn equal_targets_are_hardly_ever_told_apart_by_looking_all_the_time() {
    let all: Vec<_> = (0..RUNS).map(|number| run(0.0, number)).collect();
    let alarms = all.iter().filter(|versus| is_decided(versus)).count();
    let said = all.iter().filter(|v| v.claims.iter().any(|claim| claim.holds)).count();
    println!("decided {alarms}, said {said} of {RUNS}");
    assert!(alarms <= 10 && said <= 10, "{alarms} {said}");
}

#[test]
fn a_difference_that_is_plain_ends_the_run_after_twenty_seconds_and_some() {
    let versus = run(143.0, 0);
    let stopping = versus.stopping.as_ref().unwrap();
    // Twenty whole seconds; their end is detected a little later.
    assert_eq!(stopping.decided_at_ns, Some(20_000_000_000));
    assert!((versus.duration_s - 20.0).abs() < 1e-9 && (stopping.planned_s - 60.0).abs() < 1e-9);
    assert_eq!(versus.blocks.recorded, 20 * 50);
    let shown = full(&versus, 80);
    for part in ["Ended early: decided after 20s of 60s.", "always-valid", "TTFT of a: +"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(csv(&versus).lines().skip(1).all(|line| line.contains(",always_valid,")));
    assert!(prometheus(&versus).contains("plimsoll_versus_always_valid"));
    // The intervals are wider than those of a run of fixed length with the same blocks.
    let simulation = simulation(143.0, 0);
    let blocks = simulation.blocks();
    let fixed = judge(&simulation.facts(), &blocks[..1_000]);
    let width = |versus: &Versus| {
        let found = versus.difference("a", "direct", Figure::Ttft, Kind::Added, "p50").unwrap();
        let (_, low, high) = found.measured().unwrap();
        high - low
    };
    assert!(width(&versus) > 1.2 * width(&fixed), "{} {}", width(&versus), width(&fixed));
    assert!(csv(&fixed).lines().skip(1).all(|line| line.contains(",fixed,")));
    assert!(!prometheus(&fixed).contains("always_valid"));
}

#[test]
fn what_is_not_decided_in_time_is_said_with_always_valid_intervals() {
    let versus = run(0.0, 1);
    assert!(!is_decided(&versus));
    let shown = full(&versus, 80);
    assert!(shown.contains("Not decided within 60s. Intervals are always-valid"), "{shown}");
}

#[test]
fn with_a_margin_it_is_decided_that_targets_are_about_equal() {
    let simulation = simulation(0.0, 2);
    // Some 20 ms: 5 % are a millisecond.
    let facts = Facts { margin: Some(0.05), ..simulation.facts() };
    assert!(is_decided(&carry_out(&simulation, facts)));
}

/// A threshold in the middle of the interval cannot be judged, so the run goes on.
#[test]
fn a_bound_that_is_open_keeps_the_run_going() {
    let simulation = simulation(143.0, 3);
    for (bound, ends) in [("p(50)<143us", false), ("p(50)<200us", true), ("p(50)<100us", true)] {
        let threshold = AddedThreshold::parse("added.ttft", bound).unwrap();
        let facts = Facts { thresholds: vec![threshold], ..simulation.facts() };
        assert_eq!(is_decided(&carry_out(&simulation, facts)), ends, "{bound}");
    }
}

/// Slow requests of the last seconds are still in flight, so a test without them would see fast
/// ones only.
#[test]
fn seconds_whose_requests_may_still_be_open_are_not_looked_at() {
    let simulation = simulation(143.0, 4);
    let mut blocks = simulation.blocks();
    let turn = blocks[5].turns[0].as_mut().unwrap();
    turn.response = Some(Nanos::from_secs(10));
    let mut decider = Decider::new(&simulation.facts());
    let after = blocks.chunks(50).position(|second| decider.add(second).is_some()).unwrap();
    // 20 s of load, 10 s of the longest request, 2 s up to the last report.
    assert!((31..=33).contains(&after), "{after}");
}
