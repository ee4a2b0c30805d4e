//! The report that a person reads.

use plimsoll_metrics::{Ended, InstrumentHealth, Lag, Recorder, RunSummary};
use plimsoll_report::{Style, text};

use crate::example::{facts, golden, health, summary};

fn plain(summary: &RunSummary) -> String {
    text(summary, Style::default())
}

#[test]
fn a_valid_run_reads_like_this() {
    golden("report.txt", &plain(&summary(facts(), health())));
}

#[test]
fn an_invalid_run_says_so_before_any_number() {
    let mut facts = facts();
    facts.run.ended = Ended::Interrupted;
    let late = Some(Lag { p50: 3.0, p99: 250.0, max: 900.0, mean: 9.0 });
    let health = InstrumentHealth {
        pacing_lag_ms: late,
        achieved_arrivals: Some(640),
        worker_cpu_shares: vec![0.99],
        sink_overflowed: Some(12),
        ..health()
    };
    let report = plain(&summary(facts, health));
    let (verdict, headline) = (report.find("INVALID"), report.find("requests in"));
    assert!(verdict.unwrap() < headline.unwrap(), "{report}");
    golden("report-invalid.txt", &report);
}

#[test]
fn no_line_is_wider_than_the_page() {
    for width in [120, 160] {
        let mut facts = facts();
        facts.stages[1].name =
            "a stage with a name that is longer than any table can take".to_owned();
        let report = text(&summary(facts, health()), Style { width, color: false });
        for line in report.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn colours_change_nothing_but_colours() {
    let summary = summary(facts(), health());
    let coloured = text(&summary, Style { width: 120, color: true });
    assert!(coloured.contains("\x1b[1;32mVALID\x1b[0m"));
    let mut stripped = coloured;
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[1;31m", "\x1b[1;32m", "\x1b[1;33m"] {
        stripped = stripped.replace(code, "");
    }
    assert_eq!(stripped, plain(&summary));
}

#[test]
fn a_run_without_a_single_request_is_still_a_report() {
    let nothing = Recorder::new(Vec::new()).take();
    let summary = RunSummary::build(facts(), InstrumentHealth::default(), &nothing, &[]).unwrap();
    assert!(plain(&summary).contains("Nothing was scheduled outside of warm-up."));
}
