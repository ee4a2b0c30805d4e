//! The end of a suite on a terminal of 24 lines, from stored results.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_metrics::Judgement;
use plimsoll_report::Style;
use plimsoll_report::screen::{Item, Rest};
use plimsoll_suite::Report;

fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(relative)
}

/// The stored result of an earlier suite.
fn stored(name: &str) -> Report {
    let text = fs::read_to_string(path(&format!("fixtures/{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn shown(report: &Report, width: usize) -> String {
    let rest = Rest::Folder(format!("runs/{}-suite-{}", report.started, report.suite));
    report.screen(rest).text(Style::plain(width))
}

/// The screen at every width. Its tables leave out columns that do not fit, so that all of its
/// words are found only on a very wide one.
#[track_caller]
fn check(name: &str, report: &Report) {
    let rest = Rest::Folder(format!("runs/{}-suite-{}", report.started, report.suite));
    let whole = report.screen(rest).whole(Style::plain(10_000));
    plimsoll_test_support::check_screens(path("golden"), name, &whole, |width| {
        shown(report, width)
    });
}

#[test]
fn a_suite_without_bounds_is_complete_unless_the_host_was_busy() {
    let mut report = stored("quick");
    check("quick", &report);
    let text = shown(&report, 80);
    assert!(text.contains("moderate, 100 connections"), "{text}");
    let last = "INCONCLUSIVE (measurement: 2 of 2 measurements on a busy host)";
    assert_eq!(text.lines().last(), Some(last), "{text}");
    let passes = report.measurements.iter_mut().flat_map(|result| &mut result.passes);
    passes.for_each(|pass| pass.busy_host = None);
    let text = shown(&report, 80);
    assert!(text.lines().last().unwrap().starts_with("COMPLETE"), "{text}");
}

/// 11 of its 12 measurements are invalid.
#[test]
fn a_suite_whose_measurements_must_not_be_used_shows_none_of_their_rates() {
    let report = stored("baseline");
    check("baseline", &report);
    let text = shown(&report, 120);
    let row = text.lines().find(|line| line.contains("[INVALID] GET /health/live, 32")).unwrap();
    assert!(!row.contains("5,477") && !text.contains("req/s"), "{text}");
    // Nor on another line of the row.
    assert!(!text.contains("5,477") && !text.contains("5,127 ("), "{text}");
    assert!(
        text.lines().last().unwrap().starts_with("INCONCLUSIVE (measurement: 11 of 12"),
        "{text}"
    );
}

/// It has more tables than a screen.
#[test]
fn what_was_found_before_the_load_leaves_the_screen_first() {
    let mut report = stored("baseline");
    let first = report.sections[0].title.clone();
    assert!(shown(&report, 120).contains(&first));
    report.sections[0].before_load = true;
    assert!(!shown(&report, 120).contains(&first), "{}", shown(&report, 120));
    assert!(report.text(120).contains(&first));
}

#[test]
fn a_broken_bound_comes_first_and_an_interruption_last() {
    let mut report = stored("quick");
    let bound = |what: &str, judgement| {
        let json = serde_json::json!({
            "what": what, "measured": "12.0ms", "bound": "< 10.0ms", "judgement": judgement,
            "decides": true,
        });
        serde_json::from_value(json).unwrap()
    };
    let pass = serde_json::to_value(Judgement::Pass).unwrap();
    let fail = serde_json::to_value(Judgement::Fail).unwrap();
    report.bounds = (1..30).map(|n| bound(&format!("a bound {n}"), pass.clone())).collect();
    report.bounds.push(bound("p99 of \x1b[2Jchats", fail));
    check("failed", &report);
    let text = shown(&report, 80);
    let line = "FAIL  p99 of \\u{1b}[2Jchats: 12.0ms, must be < 10.0ms";
    assert_eq!(text.lines().find(|line| line.starts_with("FAIL")), Some(line), "{text}");
    assert!(text.contains("FAIL: 1 of 30 bounds broken (p99 of \\u{1b}[2Jchats)"), "{text}");
    report.interrupted = true;
    check("interrupted", &report);
}

/// One sentence is in every rendering, whatever leaves it out for room.
#[test]
fn file_and_markdown_have_every_sentence_of_the_screen() {
    for name in ["quick", "baseline"] {
        let report = stored(name);
        let screen = report.screen(Rest::Flag);
        let (file, markdown) = (report.text(100_000), screen.markdown(""));
        let unescaped = markdown.replace('\\', "").replace("&gt;", ">").replace("&lt;", "<");
        let pointed_out = screen.pointed_out().iter().map(Item::text);
        let sentences: Vec<_> =
            pointed_out.chain(screen.facts().iter().map(String::as_str)).collect();
        for sentence in sentences.iter().chain(&[screen.last().unwrap().text()]) {
            assert!(file.contains(sentence), "{sentence}\n{file}");
            let words = sentence.split(|c: char| !c.is_alphanumeric() && c != ' ');
            words.for_each(|part| assert!(markdown.contains(part), "{part}\n{markdown}"));
        }
        for section in report.sections.iter().chain(&report.sizing).chain(&report.references) {
            assert!(file.contains(&section.title), "{}\n{file}", section.title);
            assert!(section.notes.iter().all(|note| file.contains(note)), "{file}");
        }
        let cells = report.sections.iter().flat_map(|section| section.table.rows.iter().flatten());
        for word in cells.flat_map(|cell| cell.split(' ')) {
            assert!(unescaped.contains(word), "{word}\n{markdown}");
        }
    }
}

/// The full report: its lines are never wider than the page.
#[test]
fn the_report_fits_any_width() {
    for name in ["quick", "baseline"] {
        let mut report = stored(name);
        // One word of a hundred characters.
        report.setup.retain(|(name, _)| name != "build" && !name.starts_with("gateway"));
        for width in 60..=200 {
            let text = report.text(width);
            let wide = text.lines().find(|line| line.chars().count() > width);
            assert!(wide.is_none(), "{name} at {width}: {wide:?}");
        }
    }
}
