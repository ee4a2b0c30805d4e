//! `plimsoll run`: its files and exit codes.

use std::collections::HashSet;
use std::fs;

use plimsoll_metrics::RunEnd;
use plimsoll_run_files::parse_row;

use crate::support::{FAST, Fixture, command, summary};

const FILES: [&str; 13] = [
    "histograms.hlog",
    "levels.json",
    "metrics.prom",
    "plan.json",
    "profile.yaml",
    "report.csv",
    "report.html",
    "report.txt",
    "results.jsonl",
    "shard.json",
    "stages.csv",
    "summary.json",
    "timeline.json",
];

#[test]
fn a_run_within_its_thresholds_passes_and_writes_every_file() {
    let fixture = Fixture::with("other_models: {ttft: 5ms, gap: 1ms, output: 4}");
    let bound = "thresholds={success_rate: ['value>0.99'], completed: ['count>10']}";
    let output = fixture
        .run(&["minimal", "--stages", "w2:300ms,4:700ms", "--set", bound, "--full"])
        .expect(0);

    let run = fixture.only_run();
    let mut files: Vec<_> = fs::read_dir(&run)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, FILES);
    let name = run.file_name().unwrap().to_str().unwrap();
    assert!(
        name.len() == "20260102T030405Z-minimal".len() && name.ends_with("Z-minimal"),
        "{name}"
    );
    assert!(output.stdout.contains(&format!("runs/{name}")), "{}", output.stdout);
    // With --full, stdout and report.txt have the same text.
    assert!(output.stdout.starts_with(&fs::read_to_string(run.join("report.txt")).unwrap()));

    let summary = summary(&run);
    let accounting = summary.results.accounting();
    assert!(accounting.balanced(), "{accounting}");
    // The host decides whether the run is valid; the report must say the same as the summary.
    let verdict = if summary.is_valid() { "PASS: 2 of 2" } else { "INVALID: " };
    for line in [output.stdout.lines().nth(1), output.stdout.lines().last()] {
        assert!(line.unwrap().starts_with(verdict), "{}", output.stdout);
    }
    assert_eq!(summary.metadata.run.ended, RunEnd::Complete);
    // The mock's own count: the load, and one probe.
    assert_eq!(fixture.mock.stats().requests, accounting.scheduled - accounting.never_sent + 1);
    assert_eq!(summary.metadata.run.probes, 1);
    assert!(
        summary.metadata.environment.kernel.is_some()
            && summary.metadata.environment.fd_limit.is_some()
    );
}

#[test]
fn each_request_has_one_row_with_the_id_that_the_target_received() {
    let fixture = Fixture::with("log: memory");
    fixture.run(&["minimal", "--stages", "@100:500ms", "--set", "turns=2"]).expect(0);
    let text = fs::read(fixture.only_run().join("results.jsonl")).unwrap();
    let rows: Vec<_> = text
        .split(|&byte| byte == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| parse_row(l).unwrap())
        .collect();
    let summary = fixture.summary();
    assert_eq!(rows.len() as u64, summary.results.accounting().scheduled);
    assert!(
        rows.iter()
            .all(|row| row.stage == "@100:500ms" && row.target == summary.metadata.targets[0].name)
    );
    let seen: HashSet<_> =
        fixture.mock.take_log().into_iter().filter_map(|record| record.request_id).collect();
    let sent: HashSet<_> = rows.iter().map(|row| row.request_id.clone()).collect();
    assert_eq!(sent.len(), rows.len());
    assert_eq!(sent.difference(&seen).count(), 0);
    // The target received one more request: the probe.
    assert_eq!(seen.len(), sent.len() + 1);
}

#[test]
fn a_failed_threshold_exits_with_1_and_one_without_data_with_4() {
    let fixture = Fixture::with(FAST);
    for (threshold, code) in [
        ("thresholds={completed: ['count<1']}", 1),
        // The profile does not stream, so there is no time to first token.
        ("thresholds={ttft: ['p(50)<1h']}", 4),
        ("thresholds={completed: ['count>1']}", 0),
    ] {
        // Counts are exact on a busy host too, where times may be refused and the run invalid.
        let args = ["minimal", "--stages", "2:300ms", "--set", threshold];
        let output = fixture.run(&args).expect(code);
        // The last line of the screen is the verdict that the exit code follows.
        let verdict = output.expect_screen();
        let word = ["PASS: ", "FAIL: ", "", "", "INCONCLUSIVE: "][usize::try_from(code).unwrap()];
        assert!(verdict.starts_with(word) || verdict.starts_with("INVALID: "), "{verdict}");
    }
}

/// The profile's own bound on the same metric gives way, and the others stay.
#[test]
fn a_threshold_of_the_command_line_is_one_of_the_profile() {
    let fixture = Fixture::with(FAST);
    let own = "content: {mode: pool, prompts: [hi]}\nmodel: m\nstages: '2:300ms'\n\
        thresholds: {completed: ['count<1'], failed: ['==0']}\n";
    fs::write(fixture.folder.path().join("own.yaml"), own).unwrap();
    let args = ["own.yaml", "--threshold", "completed: count>1"];
    fixture.run(&args).expect(0);
    let summary = fixture.summary();
    let judged: Vec<_> = summary.thresholds.iter().map(|found| found.expression.as_str()).collect();
    assert_eq!(judged, [">1", "==0"]);
    // A bound that only streams have, of a profile without them.
    let bounds = ["--threshold", "completed: count>1", "--threshold", "ttft: p(50)<1s"];
    let args = [&["own.yaml", "--out", "more"][..], &bounds].concat();
    let output = fixture.run(&args).expect(4);
    let words = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("no completed request was a stream (--set stream=true)"), "{words}");
}

#[test]
fn shards_together_make_up_the_whole_schedule_and_are_merged_into_one_run() {
    let fixture = Fixture::with(FAST);
    for shard in ["0/2", "1/2"] {
        let args = ["minimal", "--stages", "@60:1s", "--shard", shard, "--run-id", "both"];
        fixture.run(&args).expect(0);
    }
    let folders = ["shard-00000-of-00002", "shard-00001-of-00002"];
    let folders = folders.map(|name| fixture.folder.path().join("runs/both").join(name));
    let scheduled = folders.each_ref().map(|run| summary(run).results.accounting().scheduled);
    assert_eq!(scheduled, [30, 30]);
    assert_eq!(summary(&folders[0]).metadata.run.shard, "0/2");
    let again = ["minimal", "--stages", "@60:1s", "--shard", "0/2", "--run-id", "both"];
    let refused = fixture.run(&again).expect(2).stderr;
    assert!(refused.contains("this run id was used before"), "{refused}");

    let merge = ["merge", "runs/both", "--expect", "2", "--out", "whole"];
    // They ran one after the other, so together they are not the planned load.
    let output = fixture.plimsoll(&merge).expect(3).stdout;
    assert!(output.contains("The shards started"), "{output}");
    let whole = fs::read_dir(fixture.folder.path().join("whole")).unwrap().next().unwrap().unwrap();
    let merged = summary(&whole.path());
    assert_eq!(merged.results.accounting().scheduled, 60);
    let rows = fs::read_to_string(whole.path().join("results.jsonl")).unwrap();
    let ids: HashSet<_> =
        rows.lines().map(|row| parse_row(row.as_bytes()).unwrap().request_id).collect();
    assert_eq!(ids.len(), 60);
    let lost = ["merge", &folders[1].display().to_string(), "--out", "part"].map(str::to_owned);
    let lost = fixture.plimsoll(&lost.each_ref().map(String::as_str)).expect(3).stdout;
    assert!(lost.contains("shard 0/2 is missing"), "{lost}");
    let wrong = fixture.plimsoll(&["merge", "runs/both", "--expect", "3"]).expect(2).stderr;
    assert!(wrong.contains("--expect 3"), "{wrong}");
}

#[test]
fn variables_override_the_profile_and_flags_override_variables() {
    let fixture = Fixture::with("api_key: right");
    let target = fixture.target();
    let run = |key: &str, args: &[&str]| {
        let mut all = vec!["run", "minimal", "--quiet", "--no-jsonl", "--allow-invalid"];
        all.extend(args);
        let mut command = command(fixture.folder.path(), &all);
        command.envs([
            ("PLIMSOLL_KEY", key),
            ("PLIMSOLL_STAGES", "1:200ms"),
            ("PLIMSOLL_TARGET", &target),
        ]);
        command.output().unwrap().status.code()
    };
    assert_eq!(run("right", &[]), Some(0));
    assert_eq!(run("wrong", &[]), Some(1));
    assert_eq!(run("wrong", &["--key", "right"]), Some(0));
    assert_eq!(summary(&fixture.runs()[0]).metadata.stages[0].name, "1:200ms");
    assert!(!fixture.runs()[0].join("results.jsonl").exists());
}

#[test]
fn progress_is_printed_in_lines_except_with_quiet() {
    let fixture = Fixture::with(FAST);
    let target = fixture.target();
    // A line each second: a pause of the host may swallow some of them.
    let args = ["run", "minimal", "--target", &target, "--key", "any", "--stages", "2:3s"];
    let args = [&args[..], &["--allow-invalid"]].concat();
    let loud = fixture.plimsoll(&args).expect(0);
    assert!(loud.stderr.contains("stage 1/1 2:3s"), "{}", loud.stderr);
    assert!(loud.stderr.contains("done/s"), "{}", loud.stderr);
    let quiet = fixture.plimsoll(&[&args[..], &["--quiet"]].concat()).expect(0);
    assert_eq!(quiet.stderr, "");
}
