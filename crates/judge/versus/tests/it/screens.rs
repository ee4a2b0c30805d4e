//! The final screen of a comparison on a terminal of 24 lines.

use plimsoll_measure::{ErrorClass, Outcome};
use plimsoll_metrics::{InstrumentHealth, RunEnd, RunInfo, RunMetadata, RunSummary, Snapshot};
use plimsoll_report::Style;
use plimsoll_report::screen::Rest;
use plimsoll_versus::{Claim, Streams, Versus, judge, report, screen};

use crate::formats::{stored, versus};
use crate::simulation::{Simulation, direct, target};

/// The parts of a run's summary that a screen needs.
pub(crate) fn summary(ended: RunEnd) -> RunSummary {
    let run = RunInfo { ended, ..RunInfo::default() };
    let metadata = RunMetadata { run, ..RunMetadata::default() };
    let health = InstrumentHealth::default();
    let mut summary = RunSummary::build(metadata, health, &Snapshot::new(), &[]).unwrap();
    summary.results.total.counters.completed = 24_000;
    summary
}

/// The content of `report.txt`.
pub(crate) fn full(versus: &Versus, width: usize) -> String {
    report(versus, &summary(RunEnd::Complete)).report(Style::plain(width))
}

/// Texts of all findings.
pub(crate) fn texts(versus: &Versus) -> Vec<String> {
    versus.findings.iter().map(plimsoll_rules::Finding::text).collect()
}

/// Texts of the significant differences.
pub(crate) fn claims(versus: &Versus) -> Vec<String> {
    let hold = versus.claims.iter().filter(|claim| claim.holds).map(Claim::finding);
    hold.map(|finding| finding.text()).collect()
}

fn shown(versus: &Versus, ended: RunEnd, width: usize) -> String {
    let rest = Rest::Folder("runs/20251121T012345Z-versus".to_owned());
    screen(versus, &summary(ended), rest).text(Style::plain(width))
}

#[track_caller]
fn check(name: &str, versus: &Versus, ended: RunEnd) -> String {
    let rest = Rest::Folder("runs/20251121T012345Z-versus".to_owned());
    let whole = screen(versus, &summary(ended), rest).whole(Style::plain(10_000));
    plimsoll_test_support::check_screens(
        stored("tests/it/golden/screens"),
        name,
        &whole,
        |width| shown(versus, ended, width),
    );
    shown(versus, ended, 80)
}

fn last(text: &str) -> &str {
    text.lines().last().unwrap()
}

#[test]
fn targets_differences_and_bounds_are_on_one_screen() {
    let text = check("versus", &versus(), RunEnd::Complete);
    assert!(text.contains("+142.6us [141.5, 143.6]"), "{text}");
    assert_eq!(last(&text), "PASS: all bounds kept (measurement: valid)");
}

#[test]
fn a_refused_comparison_says_why_and_claims_nothing() {
    let mut targets = direct(100.0);
    targets.push(target("a", 143.0));
    let short = Simulation { seconds: 7, ..Simulation::new(targets.clone()) };
    let text = check("short", &judge(&short.facts(), &short.blocks()), RunEnd::Complete);
    let why = "no difference could be measured: a stage is too short: an interval needs 8 batches";
    assert!(last(&text).contains(why), "{text}");
    assert!(!text.contains("rank"), "a tie is a result, too: {text}");
    let off = Simulation::new(targets);
    let text = check("invalid", &judge(&off.facts(), &off.blocks()), RunEnd::Complete);
    assert!(last(&text).starts_with("INVALID: direct' and direct are the same target"), "{text}");
    assert!(!text.contains("Statistically significant"), "{text}");
}

#[test]
fn how_it_ended_is_the_verdict() {
    let text = check("interrupted", &versus(), RunEnd::Interrupted);
    assert!(last(&text).starts_with("INTERRUPTED: "), "{text}");
    let mut worse = versus();
    worse.worse_than_margin = vec!["b is worse than a by more than 5 %".to_owned()];
    let text = check("failed", &worse, RunEnd::Complete);
    assert!(text.contains("\nFAIL  b is worse than a by more than 5 %\n"), "{text}");
    assert_eq!(last(&text), "FAIL: b is worse than a by more than 5 % (measurement: valid)");
}

#[test]
fn of_many_targets_the_others_are_counted() {
    let mut targets = direct(0.0);
    let names = ["b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"];
    targets.extend((1_u32..).zip(names).map(|(n, name)| target(name, f64::from(n) * 100.0)));
    let many = Simulation { seconds: 20, ..Simulation::new(targets) };
    let text = check("many", &judge(&many.facts(), &many.blocks()), RunEnd::Complete);
    assert!(text.contains("more targets in report.txt"), "{text}");
}

/// All targets are shown with failures and stream shapes, even if the terminal is unknown.
#[test]
fn up_to_eight_targets_have_room() {
    for count in 2..=8 {
        let mut targets = vec![direct(0.0)[0].clone()];
        let names = ["b", "c", "d", "e", "f", "g", "h"];
        targets.extend(
            (1_u32..).zip(&names[..count - 1]).map(|(n, name)| target(name, f64::from(n) * 100.0)),
        );
        let all = Simulation { seconds: 20, ..Simulation::new(targets) };
        let mut facts = all.facts();
        let streams = Streams { begun: 2_000, judged: 2_000, stalled: 900, ..Streams::default() };
        facts.targets[1].streams = Some(streams);
        let mut blocks = all.blocks();
        for block in &mut blocks {
            let last = block.turns.last_mut().unwrap().as_mut().unwrap();
            last.outcome = Outcome::Failed(ErrorClass::ConnectRefused);
        }
        let versus = judge(&facts, &blocks);
        let text = match count {
            8 => check("eight", &versus, RunEnd::Complete),
            _ => shown(&versus, RunEnd::Complete, 80),
        };
        assert!(text.lines().count() <= 23 && !text.contains("more targets"), "{text}");
        let begins = |start: String| text.lines().any(|line| line.starts_with(&start));
        assert!(names[..count - 1].iter().all(|name| begins(format!("{name}  "))), "{text}");
        assert!(count == 2 || text.contains("900 stalled 40ms"), "{text}");
        let failed = format!("PL201  {}: 2,000 of 2,000 requests (100%) failed", names[count - 2]);
        assert!(text.lines().nth(2).unwrap().starts_with(&failed) || begins(failed), "{text}");
        assert!(text.contains("2,000 connect_refused"), "{text}");
    }
}

/// A comparison without any difference must not claim to describe the targets.
#[test]
fn without_any_difference_nothing_is_concluded() {
    let short = Simulation {
        seconds: 3,
        ..Simulation::new(vec![direct(0.0)[0].clone(), target("a", 9.0)])
    };
    let versus = judge(&short.facts(), &short.blocks());
    assert!(versus.nothing_measured().is_some());
    let text = shown(&versus, RunEnd::Complete, 200);
    assert!(last(&text).starts_with("INCONCLUSIVE: no difference could be measured"), "{text}");
    // Known values are still shown: medians and failures of both.
    assert!(text.contains("p95") && text.contains("19.7ms"), "{text}");
}

/// Targets with equal medians may differ in other figures.
#[test]
fn a_verdict_without_a_difference_names_the_tested_figures() {
    let equal = Simulation::new(vec![direct(0.0)[0].clone(), target("a", 0.0)]);
    let text = shown(&judge(&equal.facts(), &equal.blocks()), RunEnd::Complete, 200);
    let tested = "median TTFT, median response time, p99 of TTFT (measurement: valid)";
    assert_eq!(last(&text), format!("DONE: no significant difference in {tested}"));
}

/// A target's own times have limits on the screen: a tenth of the median may be measurement error,
/// and more than 5 % of the turns behind the p95 never ended.
#[test]
fn a_targets_own_times_have_their_limits() {
    let mut versus = versus();
    let target = versus.targets.iter_mut().find(|target| target.name == "a").unwrap();
    let own = target.times.iter_mut().find(|own| own.p50_ns.is_some()).unwrap();
    let (count, p50) = (own.count, own.p50_ns.unwrap());
    own.p50_between_ns = Some((p50 * 0.9, p50));
    own.p95_between_ns = Some((4e6, own.p95_ns.unwrap()));
    for other in target.times.iter_mut().filter(|own| own.count != count) {
        other.count = 0;
    }
    target.failures.insert("in_flight".to_owned(), count / 9);
    let text = shown(&versus, RunEnd::Complete, 200);
    assert!(text.contains("(-x): up to x less without Plimsoll"), "{text}");
    assert!(text.contains(">= 4.00ms"), "{text}");
}
