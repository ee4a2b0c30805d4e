//! The end of a comparison on a terminal of 24 lines.

use plimsoll_metrics::{InstrumentHealth, RunEnd, RunInfo, RunMetadata, RunSummary, Snapshot};
use plimsoll_report::Style;
use plimsoll_report::screen::Rest;
use plimsoll_versus::{Versus, judge, screen};

use crate::formats::{stored, versus};
use crate::simulation::{Simulation, direct, target};

/// What a screen needs of the run itself.
fn summary(ended: RunEnd) -> RunSummary {
    let run = RunInfo { ended, ..RunInfo::default() };
    let metadata = RunMetadata { run, ..RunMetadata::default() };
    let health = InstrumentHealth::default();
    let mut summary = RunSummary::build(metadata, health, &Snapshot::new(), &[]).unwrap();
    summary.results.total.counters.completed = 24_000;
    summary
}

fn shown(versus: &Versus, ended: RunEnd, width: usize) -> String {
    let rest = Rest::Folder("runs/20251121T012345Z-versus".to_owned());
    screen(versus, &summary(ended), rest).text(Style { width, color: false })
}

#[track_caller]
fn check(name: &str, versus: &Versus, ended: RunEnd) -> String {
    let rest = Rest::Folder("runs/20251121T012345Z-versus".to_owned());
    let whole = screen(versus, &summary(ended), rest).with_lines(1_000);
    let whole = whole.text(Style { width: 10_000, color: false });
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
    assert_eq!(
        last(&text),
        "PASS: every bound is kept. VALID: the differences describe the targets"
    );
}

#[test]
fn a_refused_comparison_says_why_and_claims_nothing() {
    let mut targets = direct(100.0);
    targets.push(target("a", 143.0));
    let short = Simulation { seconds: 7, ..Simulation::new(targets.clone()) };
    let text = check("short", &judge(&short.facts(), &short.blocks()), RunEnd::Complete);
    assert!(text.contains("! -: a stage is too short: an interval needs 8 batches"), "{text}");
    let off = Simulation::new(targets);
    let text = check("invalid", &judge(&off.facts(), &off.blocks()), RunEnd::Complete);
    assert!(last(&text).starts_with("INVALID: the control"), "{text}");
    assert!(!text.contains("is slower than"), "{text}");
}

#[test]
fn how_it_ended_is_the_verdict() {
    let text = check("interrupted", &versus(), RunEnd::Interrupted);
    assert!(last(&text).starts_with("INTERRUPTED: "), "{text}");
    let mut worse = versus();
    worse.worse_than_margin = vec!["b is worse than a by more than 5 %".to_owned()];
    let text = check("failed", &worse, RunEnd::Complete);
    assert!(text.contains("\nFAIL  b is worse than a by more than 5 %\n"), "{text}");
    assert_eq!(last(&text), "FAIL: b is worse than a by more than 5 %");
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

#[test]
fn where_one_row_has_room_it_is_that_of_a_difference() {
    let mut targets = direct(0.0);
    targets.push(target("a", 143.0));
    let one = Simulation { seconds: 20, ..Simulation::new(targets) };
    let versus = judge(&one.facts(), &one.blocks());
    let rest = Rest::Folder("runs/20251121T012345Z-versus".to_owned());
    let style = Style { width: 80, color: false };
    let screen = screen(&versus, &summary(RunEnd::Complete), rest);
    let row_of = |text: &str, name: &str| text.lines().any(|line| line.starts_with(name));
    let short: Vec<_> = (6..24).map(|lines| screen.clone().with_lines(lines).text(style)).collect();
    let with_rows = short.iter().filter(|text| row_of(text, "direct  ") || row_of(text, "a  "));
    assert!(with_rows.clone().any(|text| !row_of(text, "direct  ")));
    with_rows.for_each(|text| assert!(row_of(text, "a  "), "{text}"));
}
