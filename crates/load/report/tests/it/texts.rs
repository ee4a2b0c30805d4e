//! The text report.

use plimsoll_measure::{Operation, Outcome, Sample, ScenarioId, StageId, TargetId};
use plimsoll_metrics::{
    DisturbedWindow, InstrumentHealth, Lag, Recorder, RunEnd, RunSummary, TargetInfo,
};
use plimsoll_report::{Style, csv, prometheus, text};

use crate::support::{
    golden, health, late_samples, metadata, samples, stage_ends, summary, summary_of,
};

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
        steal_share: Some(0.22),
        reads: Some(20_000),
        unstamped_reads: Some(120),
        disturbed_windows: (0..8)
            .map(|i| DisturbedWindow {
                start_s: 11.0 + f64::from(i),
                length_s: 0.04 + f64::from(i) / 100.0,
                workers: 1,
                causes: vec!["steal 98 %".to_owned()],
            })
            .collect(),
        disturbed_windows_omitted: Some(3),
        sink_written: Some(2_068),
        sink_overflowed: Some(12),
        ..health()
    };
    let report = plain(&summary_of(late_samples(), metadata, health));
    let mut first = report.lines().take(3);
    assert!(first.any(|line| line.ends_with("measurement: invalid)")), "{report}");
    for figure in ["requests in", "sent/s"] {
        assert!(
            report.find("measurement: invalid").unwrap() < report.find(figure).unwrap(),
            "{report}"
        );
    }
    golden("report-invalid.txt", &report);
}

/// A sweep is decided, but compares nothing; and a level that it cut off is no warm-up.
#[test]
fn the_end_of_a_sweep_is_named_by_its_reason() {
    let mut metadata = metadata();
    (metadata.run.ended, metadata.run.stopped) = (RunEnd::Decided, Some("it is flat".to_owned()));
    metadata.stages[2].warmup = true;
    let report = plain(&summary(metadata, health()));
    assert!(report.contains("\n  ended     STOPPED: it is flat\n"), "{report}");
    assert!(!report.contains("comparison") && !report.contains("after 1s of"), "{report}");
    assert!(report.lines().next().unwrap().ends_with(", 10s of load (warm-up 1s)"), "{report}");
    assert!(report.contains("\n  @100:10s (cut off)  "), "{report}");
}

/// Words that are wider than the page cannot be helped: there are none here.
#[test]
fn at_any_width_no_line_is_wider_than_the_page_and_no_word_is_broken() {
    let mut metadata = metadata();
    metadata.run.ended = RunEnd::Interrupted;
    metadata.stages[1].name =
        "a stage with a name that is longer than any table can take".to_owned();
    let health = InstrumentHealth { sink_overflowed: Some(12), ..health() };
    let summary = summary_of(late_samples(), metadata, health);
    let at = |width| text(&summary, Style::plain(width));
    let wide = words(&at(1_000));
    for width in (60..=200).step_by(5) {
        let report = at(width);
        for line in report.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        assert_eq!(words(&report), wide, "{width}");
    }
}

fn words(report: &str) -> std::collections::BTreeSet<String> {
    report.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn colour_adds_only_escape_sequences() {
    let summary = summary(metadata(), health());
    let coloured = text(&summary, Style { color: true, ..Style::plain(120) });
    assert!(coloured.contains("\n\x1b[1;31mFAIL\x1b[0m: 1 of 4 thresholds broken"), "{coloured}");
    assert!(coloured.contains("\n\x1b[1mAccounting"), "{coloured}");
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
    assert!(plain(&summary).contains("0 of 0 requests ok"), "{}", plain(&summary));
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
    let names = ["w4:1s", "8:10s", "@100:10s", "to gateway", "to direct", "all"];
    assert_eq!(
        names.map(|name| accounting
            .lines()
            .find(|line| line.trim_start().starts_with(name))
            .unwrap()
            .ends_with("WRONG")),
        [false, false, true, false, true, true],
        "{accounting}"
    );
    assert!(report.contains("Internal error: @100:10s simple direct: "), "{report}");
}

#[test]
fn operations_of_tool_servers_are_shown_with_their_codes() {
    let of = |(index, mut sample): (usize, Sample)| {
        let call = index % 3 > 0;
        sample.operation = Some(if call { Operation::CallTool } else { Operation::Ping });
        let completed = sample.outcome == Outcome::Completed;
        sample.rpc.tool_error = call && completed && index % 5 == 0;
        if call && !completed {
            sample.rpc.code = Some(-32_050);
        }
        sample
    };
    let all: Vec<_> = samples().into_iter().enumerate().map(of).collect();
    let measured = || all.iter().filter(|sample| !sample.warmup);
    let tool_errors = measured().filter(|sample| sample.rpc.tool_error).count();
    let codes = measured().filter(|sample| sample.rpc.code.is_some()).count();
    assert!(tool_errors > 0 && codes > 0);
    let summary = summary_of(all, metadata(), health());
    let report = plain(&summary);
    for part in [
        "\nOperations\n".to_owned(),
        "\n  ping ".to_owned(),
        "\n  tools/call ".to_owned(),
        format!("JSON-RPC errors: -32050 x {codes}"),
        format!("PL310  {tool_errors} of "),
    ] {
        assert!(report.contains(&part), "{part}: {report}");
    }
    let page = prometheus(&summary);
    assert!(page.contains("plimsoll_rpc_errors_total{") && page.contains("operation=\"ping\""));
    let table = csv(&summary).unwrap();
    assert!(table.lines().next().unwrap().contains("target,operation,warmup"));
    assert!(table.contains(",tools/call,"), "{table}");
}

#[test]
fn figures_are_printed_with_their_limits_wherever_they_are() {
    let summary = summary_of(late_samples(), metadata(), health());
    let report = plain(&summary);
    for part in [
        "1.04s (-886ms)",
        "total: Response time p90 1.70ms, p95 1.84ms, p99 873ms",
        "!: measurement error above 5 %",
        "?: requests without an end may make it longer.",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
}

/// T-6: the report says what the kernel did, not what it was asked for.
#[test]
fn receive_times_are_those_that_the_kernel_gave() {
    assert_eq!(receive_times(true, 0), "the kernel's time stamps");
    let refused = receive_times(false, 5_000);
    assert!(refused.starts_with("the user-space clock; 5,000 of 5,000 reads had no"), "{refused}");
}

fn receive_times(kernel: bool, unstamped: u64) -> String {
    let health = InstrumentHealth {
        kernel_timestamps: Some(kernel),
        reads: Some(5_000),
        unstamped_reads: Some(unstamped),
        ..health()
    };
    let report = plain(&summary(metadata(), health));
    let line = report.lines().find(|line| line.contains("receive times by")).unwrap();
    line.trim_start().trim_start_matches("receive times by").trim().to_owned()
}

/// T-14: no `0ns` for the time between tokens that came together.
#[test]
fn a_stream_in_one_piece_has_no_time_per_token() {
    let mut recorder = Recorder::new(stage_ends());
    for mut sample in samples() {
        sample.timeline.last_token = sample.timeline.first_token;
        sample.gaps = plimsoll_measure::GapSummary::default();
        recorder.scheduled(sample.stage, sample.scenario, sample.target);
        recorder.record(&sample, &[], &[]);
    }
    let summary = RunSummary::build(metadata(), health(), &recorder.take(), &[]).unwrap();
    let report = plain(&summary);
    assert!(!report.contains("0ns"), "{report}");
    let tpot = report.lines().find(|line| line.trim_start().starts_with("TPOT")).unwrap();
    assert!(tpot.contains("in one piece"), "{tpot}");
}
