//! The text report.

use plimsoll_measure::{ScenarioId, StageId, TargetId};
use plimsoll_metrics::{InstrumentHealth, Lag, Recorder, RunEnd, RunSummary, TargetInfo};
use plimsoll_report::{Style, text};

use crate::support::{golden, health, metadata, samples, stage_ends, summary};

fn plain(summary: &RunSummary) -> String {
    text(summary, Style::default())
}

#[test]
fn a_valid_run_reads_like_this() {
    golden("report.txt", &plain(&summary(metadata(), health())));
}

#[test]
fn an_invalid_run_is_marked_before_any_figure() {
    let mut metadata = metadata();
    metadata.run.ended = RunEnd::Interrupted;
    let late = Some(Lag { p50: 3.0, p99: 250.0, max: 900.0, mean: 9.0 });
    let health = InstrumentHealth {
        pacing_lag_ms: late,
        achieved_arrivals: Some(640),
        worker_cpu_shares: vec![0.99],
        sink_written: Some(2_068),
        sink_overflowed: Some(12),
        ..health()
    };
    let report = plain(&summary(metadata, health));
    let (validity, headline) = (report.find("INVALID"), report.find("requests in"));
    assert!(validity.unwrap() < headline.unwrap(), "{report}");
    golden("report-invalid.txt", &report);
}

#[test]
fn no_line_is_wider_than_the_page() {
    for width in [120, 160] {
        let mut metadata = metadata();
        metadata.stages[1].name =
            "a stage with a name that is longer than any table can take".to_owned();
        let report = text(&summary(metadata, health()), Style { width, color: false });
        for line in report.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn colour_adds_only_escape_sequences() {
    let summary = summary(metadata(), health());
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
    let summary =
        RunSummary::build(metadata(), InstrumentHealth::default(), &nothing, &[]).unwrap();
    assert!(plain(&summary).contains("Nothing was scheduled outside of warm-up."));
}

#[test]
fn the_accounting_is_shown_by_stage_and_target_and_a_lost_request_is_marked() {
    let mut metadata = metadata();
    let direct = TargetInfo { name: "direct".to_owned(), ..metadata.targets[0].clone() };
    metadata.targets.push(direct);
    let mut recorder = Recorder::new(stage_ends());
    for mut sample in samples() {
        sample.target = TargetId(u16::from(sample.timeline.intended.as_nanos().is_multiple_of(4)));
        recorder.scheduled(sample.stage, sample.scenario, sample.target);
        recorder.record(&sample, &[], &[]);
    }
    recorder.scheduled(StageId(2), ScenarioId(0), TargetId(1));
    let summary = RunSummary::build(metadata, health(), &recorder.take(), &[]).unwrap();
    let report = plain(&summary);
    let (_, accounting) = report.split_once("\nAccounting").unwrap();
    let line = |name: &str| accounting.lines().find(|line| line.trim_start().starts_with(name));
    let wrong = |name: &str| line(name).unwrap().ends_with("WRONG");
    let names = ["w4:1s", "8:10s", "@100:10s", "to gateway", "to direct", "all"];
    assert_eq!(names.map(wrong), [false, false, true, false, true, true], "{accounting}");
    assert!(report.contains("accounting: @100:10s simple direct: "), "{report}");
}
