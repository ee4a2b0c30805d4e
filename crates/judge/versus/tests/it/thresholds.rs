//! Thresholds and margins are judged by the interval.

use plimsoll_measure::{ErrorClass, Nanos, Outcome, Seed};
use plimsoll_metrics::Judgement;
use plimsoll_versus::{AddedThreshold, Facts, Role, judge};

use crate::screens::full;
use crate::simulation::{Simulation, direct, target};

fn simulation() -> Simulation {
    let mut targets = direct(0.0);
    targets.extend([target("a", 143.0), target("b", 2_143.0)]);
    Simulation::new(targets)
}

fn thresholds(bounds: &[(&str, &str)]) -> Facts {
    let parse = |(metric, expression): &(&str, &str)| AddedThreshold::parse(metric, expression);
    let thresholds = bounds.iter().map(|bound| parse(bound).unwrap()).collect();
    Facts { thresholds, ..simulation().facts() }
}

#[test]
fn a_bound_is_kept_broken_or_neither() {
    let facts = thresholds(&[
        ("added.ttft{target:a}", "p(50)<200us"),
        ("added.ttft{target:a}", "p(50)<100us"),
        ("added.ttft{target:a}", "p(50)<143us"),
        ("added.response", "p(50)<1ms"),
        ("added.ttft{target:nobody}", "p(50)<1ms"),
    ]);
    let versus = judge(&facts, &simulation().blocks());
    let states: Vec<_> = versus
        .thresholds
        .iter()
        .map(|found| match &found.judgement {
            Judgement::Pass => "pass",
            Judgement::Fail => "fail",
            Judgement::Inconclusive(_) => "inconclusive",
        })
        .collect();
    // Without a target, the threshold applies to each.
    assert_eq!(states, ["pass", "fail", "inconclusive", "pass", "fail", "inconclusive"]);
    assert_eq!(versus.thresholds[4].metric, "added.response_time{target:b}");
    assert_eq!(versus.judgement_of_bounds(), Judgement::Fail);
    let kept = thresholds(&[("added.ttft{target:a}", "p(50)<200us")]);
    assert_eq!(judge(&kept, &simulation().blocks()).judgement_of_bounds(), Judgement::Pass);
    let unknown = thresholds(&[("added.ttft{target:a}", "p(50)<143us")]);
    let unknown = judge(&unknown, &simulation().blocks());
    assert!(matches!(unknown.judgement_of_bounds(), Judgement::Inconclusive(_)));
}

/// a adds 143 us, and its requests were sent 400 us late: the overhead is between 143 us (if the
/// generator caused all of that) and 543 us.
#[test]
fn a_bound_is_judged_with_what_the_generator_may_have_added() {
    let late = Nanos::from_micros(400);
    let mut blocks = simulation().blocks();
    for block in &mut blocks {
        let turn = block.turns[2].as_mut().unwrap();
        turn.generator.send = late;
        turn.ttft = turn.ttft.map(|time| time + late);
    }
    let ttft = "added.ttft{target:a}";
    let facts = thresholds(&[(ttft, "p(50)<2ms"), (ttft, "p(50)<500us"), (ttft, "p(50)<100us")]);
    let versus = judge(&facts, &blocks);
    let is_shown = |value: f64| (value - 0.543).abs() < 0.01;
    assert!(versus.thresholds.iter().all(|found| found.measured.is_some_and(is_shown)));
    let judged: Vec<_> = versus.thresholds.iter().map(|found| &found.judgement).collect();
    let [Judgement::Pass, Judgement::Inconclusive(why), Judgement::Fail] = judged[..] else {
        panic!("{judged:?}");
    };
    assert!(why.contains("the limit is within the interval"), "{why}");
}

#[test]
fn a_wrong_threshold_is_refused_with_the_fix() {
    for (metric, expression, says) in [
        ("added.cpu", "p(50)<1ms", "overhead is known for ttft, response_time"),
        ("added.ttft", "p(98)<1ms", "p(50), p(90), p(95) and p(99)"),
        ("added.ttft", "max<1ms", "p(95) and p(99)"),
        ("added.ttft", "p(50)<1", "measured in time"),
        ("added.ttft{stage:x}", "p(50)<1ms", "is not a scope"),
    ] {
        let error = AddedThreshold::parse(metric, expression).unwrap_err().to_string();
        assert!(error.contains(says), "{metric} {expression}: {error}");
    }
}

/// b takes 2 ms more than a, whose median is some 20 ms: 10 %.
#[test]
fn a_margin_is_about_the_best_target() {
    for (margin, worse) in [(0.05, 1), (0.15, 0)] {
        let facts = Facts { margin: Some(margin), ..simulation().facts() };
        let blocks = simulation().blocks();
        let versus = judge(&facts, &blocks);
        assert_eq!(versus.worse_than_margin.len(), worse, "{margin}: {versus:?}");
        assert!(versus.margin_unknown.is_empty());
        assert_eq!(versus.judgement_of_bounds() == Judgement::Fail, worse > 0);
    }
}

/// The order of the targets is the order of their flags, and the first one is the reference. Every
/// target takes 20 ms plus its overhead; `None`: it failed all requests.
#[test]
fn a_margin_judges_every_target_but_the_best_whatever_their_order() {
    let found = |adds_ms: &[Option<f64>]| {
        let mut targets: Vec<_> = adds_ms
            .iter()
            .zip(["x", "y", "z"])
            .map(|(ms, name)| target(name, ms.unwrap_or_default() * 1e3))
            .collect();
        targets[0].role = Role::Reference;
        let simulation = Simulation::new(targets);
        let mut blocks = simulation.blocks();
        let turns = blocks.iter_mut().flat_map(|block| block.turns.iter_mut().zip(adds_ms));
        for (turn, _) in turns.filter(|(_, ms)| ms.is_none()) {
            turn.as_mut().unwrap().outcome = Outcome::Failed(ErrorClass::Reset);
        }
        let versus = judge(&Facts { margin: Some(0.05), ..simulation.facts() }, &blocks);
        let worse = versus.worse_than_margin.iter().map(|text| &text[..1]).collect::<String>();
        for why in &versus.margin_unknown {
            let reasons = ["was down", "completed", "needs a second target"];
            assert!(reasons.iter().any(|reason| why.contains(reason)), "{why}");
        }
        (worse, versus.margin_unknown.len(), versus.judgement_of_bounds() == Judgement::Pass)
    };
    for (adds_ms, worse, unknown) in [
        (&[Some(20.0), Some(0.0)][..], "x", 0),
        (&[Some(0.0), Some(20.0)], "y", 0),
        (&[Some(0.0), Some(0.0)], "", 0),
        (&[Some(0.1), Some(0.0)], "", 0),
        (&[Some(0.0), Some(40.0), Some(41.0)], "yz", 0),
        (&[Some(40.0), Some(41.0), Some(0.0)], "xy", 0),
        (&[Some(41.0), Some(0.0), Some(40.0)], "xz", 0),
        (&[None, Some(0.0)], "", 1),
        (&[Some(0.0), None], "", 1),
        (&[Some(0.0)], "", 1),
        (&[None], "", 1),
    ] {
        let (names, open, passed) = found(adds_ms);
        assert_eq!((&*names, open), (worse, unknown), "{adds_ms:?}");
        assert_eq!(passed, worse.is_empty() && unknown == 0, "{adds_ms:?}");
    }
}

/// b takes 2 ms more than a, and the upstream 20 ms less than both.
#[test]
fn no_margin_judges_the_upstream_nor_is_judged_by_it() {
    let mut targets = direct(0.0);
    targets.extend([target("a", 20_000.0), target("b", 22_000.0)]);
    let simulation = Simulation::new(targets);
    for (upstream, margin, worse) in
        [(true, 0.15, ""), (true, 0.02, "b"), (false, 0.15, "ab"), (false, 2.0, "")]
    {
        let mut facts = Facts { margin: Some(margin), ..simulation.facts() };
        facts.targets[0].direct = upstream;
        let versus = judge(&facts, &simulation.blocks());
        let names: String = versus.worse_than_margin.iter().map(|text| &text[..1]).collect();
        assert_eq!(names, worse, "{upstream} {margin}: {versus:?}");
    }
}

/// Medians with a tenth of measurement error bound the margin by their limits.
#[test]
fn a_margin_is_judged_where_the_generator_was_late_for_all_targets_alike() {
    let simulation = simulation();
    let mut blocks = simulation.blocks();
    let mut rng = Seed(3).rng("lateness", 0);
    for turn in blocks.iter_mut().flat_map(|block| block.turns.iter_mut().flatten()) {
        turn.generator.send = Nanos::new(rng.below(4_000_000));
        turn.ttft = turn.ttft.map(|time| time + turn.generator.send);
    }
    // b takes 2 ms more. The median of the best is 20 to 22 ms: 5 % are 1.1 ms and 15 % are 3 ms,
    // while 9.6 % may be more or less than 2 ms.
    for (margin, worse, unknown) in [(0.05, 1, 0), (0.15, 0, 0), (0.096, 0, 1)] {
        let facts = Facts { margin: Some(margin), ..simulation.facts() };
        let versus = judge(&facts, &blocks);
        let own = versus.targets.last().unwrap().own(versus.headline).unwrap();
        assert_eq!((own.p50_ns.is_some(), versus.invalid.len()), (true, 0), "{own:?}");
        let found = (versus.worse_than_margin.len(), versus.margin_unknown.len());
        assert_eq!(found, (worse, unknown), "{margin}: {versus:?}");
        // A margin that was kept was not shown.
        let passes = full(&versus, 400).contains("\nPASS  no target is worse than the best one by");
        assert_eq!(passes, found == (0, 0), "{margin}");
        for why in &versus.margin_unknown {
            let start = "b may be worse than direct by more than 9.60%: it adds +";
            assert!(why.starts_with(start) && why.ends_with("ms are allowed"), "{why}");
        }
    }
}
