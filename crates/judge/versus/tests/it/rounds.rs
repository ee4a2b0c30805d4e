//! Several rounds: the interval includes the variation between windows.

use plimsoll_metrics::RunEnd;
use plimsoll_report::Style;
use plimsoll_report::screen::Rest;
use plimsoll_rules::Finding;
use plimsoll_versus::{Figure, Kind, Versus, WorkloadMismatch, combine, judge, screen};

use crate::screens::{full, summary};
use crate::simulation::{Simulation, direct, microseconds, target};

/// Rounds in which a adds the given microseconds.
fn rounds(adds_us: &[f64]) -> Vec<Versus> {
    (0..)
        .zip(adds_us)
        .map(|(run, &adds_us): (u64, &f64)| {
            let mut targets = direct(0.0);
            targets.push(target("a", adds_us));
            let simulation = Simulation { run, seconds: 20, ..Simulation::new(targets) };
            judge(&simulation.facts(), &simulation.blocks())
        })
        .collect()
}

fn added(versus: &Versus) -> (f64, f64, f64) {
    let found = versus.difference("a", "direct", Figure::Ttft, Kind::Added, "p50").unwrap();
    let [value, low, high] = [found.value_ns, found.low_ns, found.high_ns].map(microseconds);
    (value, low, high)
}

/// 100, 140, 120 and 160: the mean is 130, the standard deviation 25.82, t(3) is 3.182.
#[test]
fn the_interval_over_rounds_is_that_of_their_means() {
    let rounds = rounds(&[100.0, 140.0, 120.0, 160.0]);
    let (_, low, high) = added(&rounds[0]);
    assert!(high < 106.0 && low > 94.0, "{low} {high}");
    let versus = combine(&rounds).unwrap();
    let (value, low, high) = added(&versus);
    let half = 3.182_446 * 25.819_889 / 2.0;
    assert!((value - 130.0).abs() < 3.0, "{value}");
    assert!(((high - low) / 2.0 - half).abs() < 4.0, "{low} {high} {half}");
    assert_eq!((versus.rounds, versus.blocks.recorded), (4, 8_000));
    assert!((versus.duration_s - 80.0).abs() < 1e-9);
    assert!(
        versus
            .claims
            .iter()
            .any(|claim| claim.holds && claim.target == "a" && claim.values[0] > 0.0)
    );
}

#[test]
fn a_difference_that_changes_its_sign_between_rounds_is_not_said() {
    let rounds = rounds(&[80.0, -70.0, 60.0, -90.0]);
    // Each round alone is significant.
    assert!(rounds.iter().all(|round| round.claims.iter().any(|claim| claim.holds)));
    let versus = combine(&rounds).unwrap();
    let (_, low, high) = added(&versus);
    assert!(low < 0.0 && high > 0.0, "{low} {high}");
    assert!(versus.claims.iter().all(|claim| !claim.holds), "{:?}", versus.claims);
}

#[test]
fn one_round_stays_as_it_is_and_an_invalid_one_makes_all_invalid() {
    let mut rounds = rounds(&[100.0, 100.0]);
    assert_eq!(combine(&rounds[..1]), Some(rounds[0].clone()));
    assert_eq!(combine(&[]), None);
    rounds[1].invalidate("the control differs".to_owned());
    let versus = combine(&rounds).unwrap();
    assert_eq!(versus.invalid, ["round 2: the control differs"]);
    assert!(versus.claims.is_empty());
}

/// The times of the targets are means of all rounds, beside which the difference in some of them
/// says nothing. The table of the rounds has it.
#[test]
fn a_round_without_a_difference_leaves_the_mean_open_and_every_round_has_its_row() {
    let mut rounds = rounds(&[90.0, 90.0]);
    for found in &mut rounds[1].differences {
        (found.value_ns, found.low_ns, found.high_ns, found.p) = (None, None, None, None);
        found.refused = Some("a stage is too short".to_owned());
    }
    let versus = combine(&rounds).unwrap();
    let found = versus.difference("a", "direct", Figure::Ttft, Kind::Added, "p50").unwrap();
    assert_eq!((found.value_ns, found.p), (None, None));
    let why = "no difference could be measured: a stage is too short";
    assert_eq!(versus.nothing_measured().as_deref(), Some(why));
    // No difference is tested over rounds.
    assert!(versus.claims.iter().all(|claim| claim.about == "failures"), "{:?}", versus.claims);
    let page = full(&versus, 100);
    let table = page.split("TTFT by round").nth(1).unwrap();
    let row = |start: &str| table.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
    assert!(row("1 a ").contains("+9") || row("1 a ").contains("+8"), "{table}");
    assert!(row("2 a ").contains("  -  "), "{table}");
}

/// By hand: 100 pairs with 10 % and 300 with 30 % are 400 with 25 %.
#[test]
fn a_mismatch_is_of_all_rounds_or_of_its_round() {
    let mismatch = |about: &str, of_target, pairs| {
        let [target, reference, about] = ["a", "direct", about].map(str::to_owned);
        let (is_share, of_reference) = (true, 0.0);
        WorkloadMismatch { target, reference, about, is_share, of_target, of_reference, pairs }
    };
    let mut rounds = rounds(&[90.0, 90.0]);
    rounds[0].workload_mismatch = vec![mismatch("content", 0.1, 100)];
    rounds[1].workload_mismatch =
        vec![mismatch("content", 0.3, 300), mismatch("reasoning", 0.5, 300)];
    let versus = combine(&rounds).unwrap();
    let [content, reasoning] = &versus.workload_mismatch[..] else { panic!("{versus:?}") };
    assert!((content.of_target - 0.25).abs() < 1e-12 && content.pairs == 400, "{content:?}");
    assert_eq!((&*content.about, &*reasoning.about), ("content", "reasoning (round 2)"));
    let shown = screen(&versus, &summary(RunEnd::Complete), Rest::Flag).whole(Style::plain(400));
    let said = "content in 25.00% instead of 0%, reasoning (round 2) in 50.00% instead of 0%";
    assert!(shown.contains(said), "{shown}");
}

/// Counts of a single round would contradict the sums in the table.
#[test]
fn what_only_the_last_round_shows_has_its_number() {
    let versus = combine(&rounds(&[90.0, 90.0])).unwrap();
    let mut last = summary(RunEnd::Complete);
    let paused = Finding::new(301).with("n", 20).with("all", 109).with("mean", "514ms");
    last.findings = vec![paused.of(Some("a")), Finding::new(601)];
    let shown = screen(&versus, &last, Rest::Flag).whole(Style::plain(400));
    assert!(shown.contains("versus: 1 target against direct, 2 rounds, 40s"), "{shown}");
    assert!(shown.contains("PL301  round 2: a: 20 of 109 streams paused"), "{shown}");
    assert!(shown.contains("times are means of 2 rounds") && !shown.contains("601"), "{shown}");
}
