//! Runs that a signal ends.

use std::fs;
use std::process::Child;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_metrics::RunEnd;
use plimsoll_run_files::{parse_row, read_summary};

use crate::support::{FAST, Fixture, ProcessOutput, wait_until};

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
}

fn end(child: Child) -> ProcessOutput {
    child.wait_with_output().unwrap().into()
}

#[test]
fn the_first_signal_ends_the_load_and_writes_all_files() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let fixture = Fixture::with("other_models: {ttft: 5ms}");
        let child = fixture.start(&["minimal", "--stages", "4:60s"]);
        fixture.wait_for_requests(40);
        send(&child, signal);
        let output = end(child).expect(130);
        assert!(output.stdout.contains(" requests due in "), "{}", output.stdout);
        let verdict = output.expect_screen().to_lowercase();
        assert!(verdict.contains("interrupted") || verdict.contains("invalid"), "{verdict}");
        let summary = fixture.summary();
        assert_eq!(summary.metadata.run.ended, RunEnd::Interrupted);
        assert!(
            summary.results.accounting().balanced() && summary.results.accounting().completed > 30
        );
        assert!(summary.metadata.stages[0].duration_s < 50.0, "{:?}", summary.metadata.stages);
        for file in ["report.txt", "report.csv", "metrics.prom", "plan.json", "results.jsonl"] {
            assert!(fixture.only_run().join(file).exists(), "{file}");
        }
    }
}

#[test]
fn the_second_signal_ends_the_process_at_once() {
    // Responses never come, so an orderly end would wait for them.
    let fixture = Fixture::with("other_models: {ttft: 10m}");
    let mut child = fixture.start(&["minimal", "--stages", "4:60s", "--no-probe"]);
    fixture.wait_for_requests(4);
    // Two signals count as one if the second comes before the process has handled the first.
    while child.try_wait().unwrap().is_none() {
        send(&child, Signal::SIGINT);
        crate::support::pause();
    }
    end(child).expect(130);
    assert!(!fixture.only_run().join("summary.json").exists());
}

/// A launcher may signal a whole process group whose member forwards the signal again.
#[test]
fn two_signals_at_once_are_one() {
    let fixture = Fixture::with("other_models: {ttft: 50ms}");
    let child = fixture.start(&["minimal", "--stages", "4:60s"]);
    fixture.wait_for_requests(20);
    send(&child, Signal::SIGTERM);
    crate::support::pause();
    send(&child, Signal::SIGINT);
    end(child).expect(130);
    assert_eq!(fixture.summary().metadata.run.ended, RunEnd::Interrupted);
}

#[test]
fn a_killed_run_leaves_whole_rows_for_a_report() {
    let fixture = Fixture::with(FAST);
    let mut child = fixture.start(&["minimal", "--stages", "8:60s"]);
    let rows = || {
        let run = fixture.runs().pop()?;
        let text = fs::read(run.join("results.jsonl")).ok()?;
        Some(text.split(|&byte| byte == b'\n').count())
    };
    // Counted in the file: rows are written in batches, whatever the mock has received.
    assert!(wait_until(|| rows() > Some(500)), "{:?} rows", rows());
    child.kill().unwrap();
    assert_eq!(end(child).code, None);

    let run = fixture.only_run();
    assert!(!run.join("summary.json").exists());
    let text = fs::read(run.join("results.jsonl")).unwrap();
    let lines: Vec<_> = text.split(|&byte| byte == b'\n').collect();
    let (last, whole) = lines.split_last().unwrap();
    assert!(whole.len() > 500, "{} rows", whole.len());
    for line in whole {
        parse_row(line).unwrap();
    }
    let rows = whole.len() as u64 + u64::from(parse_row(last).is_ok());

    let folder = run.to_str().unwrap();
    assert!(run.join(".reserved").exists());
    let json = fixture.plimsoll(&["report", folder, "--format", "json"]).expect(3).stdout;
    assert!(!run.join(".reserved").exists());
    let summary = read_summary(json.as_bytes()).unwrap();
    assert_eq!(summary.results.accounting().scheduled, rows);
    assert_eq!(summary.metadata.run.ended, RunEnd::Unfinished);
    assert!(!summary.is_valid());
    let shown = fixture.plimsoll(&["report", folder, "--full"]).expect(3).stdout;
    assert!(shown.contains("rebuilt from results.jsonl"), "{shown}");
}
