//! Failures, lost pairs, and dropped targets.

use plimsoll_measure::{ErrorClass, Nanos, Outcome};
use plimsoll_metrics::{Judgement, RunEnd};
use plimsoll_report::Style;
use plimsoll_report::screen::Rest;
use plimsoll_rules::Finding;
use plimsoll_versus::{Figure, Kind, OVERLOAD, TakenOut, Versus, combine, judge, screen};

use crate::screens::{full, summary, texts};
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
        let claim = versus.claims.iter().find(|claim| claim.about == "failures").unwrap();
        assert_eq!(claim.holds, proven, "{claim:?}");
        assert_eq!(claim.counts, [40, 0, 6_000], "{claim:?}");
        let said = "b fails more often than direct: 40 of 6,000 requests against 0 of 6,000.";
        assert_eq!(texts(&versus).contains(&said.to_owned()), proven, "{:?}", texts(&versus));
        assert_eq!(versus.targets[3].failures["reset"], 40);
        assert_eq!(versus.blocks.complete, 5_960);
    }
}

/// A closed load sends more requests to the target that fails faster.
#[test]
fn failures_are_counted_over_all_requests_of_a_target() {
    let simulation = Simulation { seconds: 20, ..simulation() };
    let mut blocks = simulation.blocks();
    for (index, block) in blocks.iter_mut().enumerate().step_by(50) {
        block.turns[3].as_mut().unwrap().outcome = Outcome::Failed(ErrorClass::ServerError);
        if index % 100 == 0 {
            block.turns[0] = None;
        }
    }
    let versus = judge(&simulation.facts(), &blocks);
    let said = "b fails more often than direct: 40 of 2,000 requests against 0 of 1,980 \
                (20 against 0 in the 1,980 pairs that both received).";
    assert!(texts(&versus).contains(&said.to_owned()), "{:?}", texts(&versus));
    assert_eq!((versus.targets[3].failed, versus.targets[3].turns), (40, 2_000));
    // 40 failed, 20 of them without a pair.
    assert_eq!((versus.blocks.recorded, versus.blocks.complete), (2_000, 1_960));
    assert!(on_screen(&versus).contains("2,000 blocks, 1,960 completed by every target"));
}

/// Times of a target that falls behind grow with the length of the load.
#[test]
fn an_overloaded_target_comes_first_and_is_never_equal() {
    let simulation = simulation();
    let mut facts = simulation.facts();
    let overload = Finding::new(OVERLOAD).with("stage", "@100:60s").with("share", "28%");
    let overload = overload.with("backlog", 237).of(Some("b"));
    let equal = judge(&facts, &simulation.blocks());
    assert!(on_screen(&equal).contains("2-3"), "{}", on_screen(&equal));
    facts.targets[3].setup.push(overload.clone());
    let versus = judge(&facts, &simulation.blocks());
    let said = overload.text();
    let shown = on_screen(&versus);
    assert_eq!(shown.matches("PL209").count(), 1, "{shown}");
    assert!(shown.find("PL209  b: @100:60s").unwrap() < shown.find("added").unwrap(), "{shown}");
    assert!(shown.contains(&format!("DONE: {}", said.trim_end_matches('.'))), "{shown}");
    assert!(!shown.contains("2-3") && !shown.contains("no significant"), "{shown}");
    // Nor does it keep a margin.
    facts.margin = Some(10.0);
    let why = said.trim_end_matches('.').to_owned();
    let bounds = judge(&facts, &simulation.blocks()).judgement_of_bounds();
    assert_eq!(bounds, Judgement::Inconclusive(why));
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
    assert_eq!(versus.blocks.complete, 5_400);
}

#[test]
fn a_target_that_was_taken_out_leaves_the_others_compared() {
    let simulation = simulation();
    let mut blocks = simulation.blocks();
    for block in &mut blocks[2_000..] {
        block.turns[3] = None;
    }
    let mut facts = simulation.facts();
    let why = "50 % of its turns failed for 10 s".to_owned();
    facts.targets[3].taken_out = Some(TakenOut { at: Nanos::from_secs(20), why });
    let versus = judge(&facts, &blocks);
    assert_eq!((versus.blocks.recorded, versus.blocks.complete), (6_000, 2_000));
    let pairs =
        |name| versus.difference(name, "direct", Figure::Ttft, Kind::Added, "p50").unwrap().pairs;
    assert_eq!((pairs("a"), pairs("b")), (6_000, 2_000));
    let shown = on_screen(&versus);
    assert!(shown.contains("! b was dropped after 20s: 50 % of its turns failed"), "{shown}");
}

/// 25 streams that stood still for half a second came after a TTFT of 227 us.
#[test]
fn a_fault_of_one_target_precedes_a_difference_in_times() {
    let versus = judge(&simulation().facts(), &simulation().blocks());
    let stalls = Finding::new(301).with("n", "25").with("all", "123").with("mean", "511ms");
    let named = stalls.clone().of(Some("b"));
    for (fault, begins) in [
        (named.clone(), "DONE: b: 25 of 123 streams"),
        (named.of(Some("a")), "DONE: TTFT of "),
        (stalls, "DONE: TTFT of "),
        (Finding::new(305).of(Some("b")), "DONE: TTFT of "),
    ] {
        let mut run = summary(RunEnd::Complete);
        run.findings.push(fault);
        let shown = screen(&versus, &run, Rest::Flag).whole(Style::plain(400));
        assert!(shown.lines().last().unwrap().starts_with(begins), "{shown}");
    }
}

/// A target that is down: its host refuses every turn from block `from` on.
fn down_from(from: usize, seconds: u64) -> Versus {
    let simulation = Simulation { seconds, ..simulation() };
    let mut blocks = simulation.blocks();
    for block in &mut blocks[from..] {
        block.turns[3].as_mut().unwrap().outcome = Outcome::Failed(ErrorClass::ConnectRefused);
    }
    let mut facts = simulation.facts();
    facts.targets[3].failure = Some("127.0.0.1:8080: Connection refused".to_owned());
    judge(&facts, &blocks)
}

#[test]
fn a_target_that_dies_fails_the_comparison_with_the_time_and_its_own_words() {
    let versus = down_from(2_000, 60);
    assert_eq!(versus.judgement_of_bounds(), Judgement::Fail);
    let outage = versus.targets[3].outage.as_ref().unwrap();
    assert_eq!((outage.since_s, outage.failed_since), (Some(20.0), Some(4_000)));
    assert!(versus.targets[..3].iter().all(|target| target.outage.is_none()));
    let said = "b: 4,000 of 6,000 requests (66.67%) failed, every one since 20s of the run: connection refused";
    for shown in [full(&versus, 400), on_screen(&versus)] {
        let at = shown.find(&format!("PL201  {said}")).expect(&shown);
        assert!(at < shown.find("added, median").unwrap(), "{shown}");
        // Results from before the outage are still reported.
        assert!(shown.contains("TTFT of b: +"), "{shown}");
    }
    assert!(
        on_screen(&versus).ends_with(&format!("\nFAIL: {said} (measurement: valid)\n")),
        "{}",
        on_screen(&versus)
    );
}

#[test]
fn a_target_that_failed_everything_is_named_and_no_short_stage_is_blamed() {
    for (from, said) in [
        (0, "b: 6,000 of 6,000 requests (100%) failed: connection refused"),
        (300, "b: 5,700 of 6,000 requests (95.00%) failed, every one since 3s of the run"),
    ] {
        let versus = down_from(from, 60);
        assert_eq!(versus.judgement_of_bounds(), Judgement::Fail);
        let shown = on_screen(&versus);
        assert!(shown.contains(said), "{shown}");
        assert!(!shown.contains("too short"), "{shown}");
        if from > 0 {
            assert!(shown.contains("-: b was down"), "{shown}");
        }
    }
    // Six seconds prove nothing, but all that is known is shown.
    let shown = on_screen(&down_from(0, 6));
    assert!(shown.contains("b: 600 of 600 requests (100%) failed"), "{shown}");
}

#[test]
fn failures_of_a_target_that_works_do_not_fail_the_comparison() {
    let simulation = simulation();
    // Single failures; a burst that ends; the last nine.
    let cases: [Vec<usize>; 3] =
        [(0..6_000).step_by(100).collect(), (1_000..2_000).collect(), (5_991..6_000).collect()];
    for lost in cases {
        let mut blocks = simulation.blocks();
        for index in lost {
            let turn = blocks[index].turns[3].as_mut().unwrap();
            turn.outcome = Outcome::Failed(ErrorClass::ServerError);
        }
        let versus = judge(&simulation.facts(), &blocks);
        assert_eq!(versus.targets[3].outage, None);
        assert_eq!(versus.judgement_of_bounds(), Judgement::Pass);
    }
}

#[test]
fn a_target_that_was_down_in_one_round_fails_all_rounds() {
    let rounds = [down_from(6_000, 60), down_from(2_000, 60)];
    let all = combine(&rounds).unwrap();
    assert_eq!(all.judgement_of_bounds(), Judgement::Fail);
    let shown = on_screen(&all);
    assert!(
        shown.contains("b: 4,000 of 12,000 requests (33.33%) failed: connection refused"),
        "{shown}"
    );
}

/// The load of a round is over when the next one begins, so that none hides an overload. Its counts
/// are those of one round, beside sums over all.
#[test]
fn an_overload_in_any_round_is_named_with_its_round() {
    let simulation = Simulation { seconds: 20, ..simulation() };
    let quiet = judge(&simulation.facts(), &simulation.blocks());
    let mut facts = simulation.facts();
    let overload = Finding::new(OVERLOAD).with("stage", "@100:20s").with("done", "28.0");
    let overload = overload.with("planned", 100).with("backlog", 237);
    facts.targets[3].setup.push(overload.of(Some("b")));
    let overloaded = judge(&facts, &simulation.blocks());
    for (rounds, numbers) in [
        ([overloaded.clone(), quiet.clone()], &[1][..]),
        ([quiet, overloaded.clone()], &[2]),
        ([overloaded.clone(), overloaded], &[1, 2]),
    ] {
        let shown = on_screen(&combine(&rounds).unwrap());
        assert_eq!(shown.matches("PL209  b: ").count(), numbers.len(), "{shown}");
        for number in numbers {
            let named =
                format!("PL209  b: @100:20s of round {number}: 28.0/s answered of 100/s due");
            assert!(shown.contains(&named), "{shown}");
        }
        assert!(shown.contains("DONE: b: @100:20s of round "), "{shown}");
        assert!(!shown.contains("2-3"), "{shown}");
    }
}

fn on_screen(versus: &Versus) -> String {
    screen(versus, &summary(RunEnd::Complete), Rest::Flag).whole(Style::plain(400))
}
