//! `plimsoll report`: the report of a stored run.

use std::fs;

use crate::support::{FAST, Fixture};

#[test]
fn every_format_prints_the_file_that_the_run_wrote() {
    let fixture = Fixture::with(FAST);
    let ended = fixture.run(&["minimal", "--stages", "2:300ms", "--junit", "junit.xml"]).expect(0);
    let run = fixture.only_run();
    let folder = run.to_str().unwrap();
    let junit = fixture.plimsoll(&["report", folder, "--format", "junit"]).expect(0).stdout;
    assert_eq!(junit, fs::read_to_string(fixture.folder.path().join("junit.xml")).unwrap());
    assert!(junit.contains("<testcase name=\"verdict\" classname=\"plimsoll\">"), "{junit}");
    let github = fixture.plimsoll(&["report", folder, "--format", "github"]).expect(0).stdout;
    assert!(github.lines().all(|line| line.starts_with("::warning title=plimsoll: ")), "{github}");
    // Without a format, the report is the final screen of the command.
    let screen = fixture.plimsoll(&["report", folder]).expect(0);
    assert_eq!(screen.stdout.lines().last(), ended.stdout.lines().last());
    assert!(screen.stdout.lines().count() <= 23, "{}", screen.stdout);
    for (format, file) in [
        ("text", "report.txt"),
        ("json", "summary.json"),
        ("csv", "report.csv"),
        ("prometheus", "metrics.prom"),
        ("timeline", "timeline.json"),
    ] {
        let shown = fixture.plimsoll(&["report", folder, "--format", format]).expect(0);
        assert_eq!(shown.stdout, fs::read_to_string(run.join(file)).unwrap(), "{format}");
        assert_eq!(shown.stderr, "");
    }
    let full = fixture.plimsoll(&["report", folder, "--full"]).expect(0);
    assert_eq!(full.stdout, fs::read_to_string(run.join("report.txt")).unwrap());
    let page = fixture.plimsoll(&["report", folder, "--html"]).expect(0);
    assert_eq!(page.stdout, fs::read_to_string(run.join("report.html")).unwrap());
}

/// The folders of this test are copies of one run, with names of other days.
#[test]
fn of_a_folder_of_runs_the_latest_is_shown_and_named() {
    let fixture = Fixture::with(FAST);
    fixture.run(&["minimal", "--stages", "2:300ms", "--name", "first"]).expect(0);
    let run = fixture.only_run();
    let copy = |name: &str, title: &str| {
        let folder = run.with_file_name(name);
        fs::create_dir(&folder).unwrap();
        let text = fs::read_to_string(run.join("summary.json")).unwrap();
        let text = text.replace("\"name\": \"first\"", &format!("\"name\": \"{title}\""));
        fs::write(folder.join("summary.json"), text).unwrap();
    };
    copy("20990102T030405Z-later", "later");
    copy("20010102T030405Z-earlier", "earlier");
    for args in [&["report"][..], &["report", "runs"]] {
        let output = fixture.plimsoll(args).expect(0);
        assert!(output.stdout.contains("later"), "{}", output.stdout);
        let note = "showing runs/20990102T030405Z-later, the latest of 3 runs\n";
        assert_eq!(output.stderr, note);
    }
    // Stdout contains only the data of the run.
    let json = fixture.plimsoll(&["report", "runs", "--format", "json"]).expect(0);
    assert!(json.stdout.starts_with("{\n") && json.stdout.contains("\"name\": \"later\""));
}

#[test]
fn a_folder_that_is_not_a_readable_run_is_an_error() {
    let fixture = Fixture::with(FAST);
    let write = |path: &str, text: &str| {
        let path = fixture.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("empty/notes.txt", "");
    write("torn/summary.json", "{\"schema\": \"plimsoll.summ");
    write("later/summary.json", "{\"schema\": \"plimsoll.summary/99\"}");
    write("planless/plan.json", "{}");
    for (folder, code, part) in [
        ("absent", 2, "is not a run folder"),
        ("empty", 2, "it contains no run folder"),
        ("torn", 3, "torn/summary.json"),
        ("later", 3, "plimsoll.summary/99"),
        ("planless", 3, "planless/plan.json"),
    ] {
        let output = fixture.plimsoll(&["report", folder]).expect(code);
        assert!(output.stderr.contains(part), "{folder}: {}", output.stderr);
    }
}

/// A run that was killed: its plan and its rows are there, and no summary.
fn killed_run(fixture: &Fixture) -> std::path::PathBuf {
    fixture.run(&["minimal", "--stages", "2:300ms"]).expect(0);
    let run = fixture.only_run();
    for file in ["summary.json", "shard.json"] {
        fs::remove_file(run.join(file)).unwrap();
    }
    run
}

#[test]
fn a_file_that_is_not_as_the_run_wrote_it_is_named() {
    let fixture = Fixture::with(FAST);
    fixture.run(&["minimal", "--stages", "2:300ms"]).expect(0);
    let run = fixture.only_run();
    let report = || fixture.plimsoll(&["report", run.to_str().unwrap()]);
    let rows = fs::read(run.join("results.jsonl")).unwrap();
    fs::write(run.join("results.jsonl"), &rows[..rows.len() - 9]).unwrap();
    let cut = report().expect(0).stderr;
    assert!(
        cut.contains(&format!("results.jsonl has {} bytes instead of", rows.len() - 9)),
        "{cut}"
    );
    let mut summary = fs::read(run.join("summary.json")).unwrap();
    let digit = summary.iter().rposition(u8::is_ascii_digit).unwrap();
    summary[digit] ^= 1;
    fs::write(run.join("summary.json"), summary).unwrap();
    let changed = report().expect(3).stderr;
    assert!(changed.contains("summary.json has other content than the run wrote"), "{changed}");
}

#[test]
fn the_report_of_a_killed_run_is_printed_and_does_not_exit_with_0() {
    let fixture = Fixture::with(FAST);
    let run = killed_run(&fixture);
    let output = fixture.plimsoll(&["report", run.to_str().unwrap(), "--full"]).expect(3);
    assert!(output.stdout.contains("the run did not finish"), "{}", output.stdout);
}

/// The load of a run begins after its clock, and its rows count from there.
#[test]
fn the_report_of_a_killed_run_has_the_rates_of_the_run() {
    let fixture = Fixture::with(FAST);
    fixture.run(&["minimal", "--stages", "@50:1300ms,2:300ms"]).expect(0);
    let run = fixture.only_run();
    let whole = fixture.summary();
    fs::remove_file(run.join("summary.json")).unwrap();
    let args = ["report", run.to_str().unwrap(), "--format", "json"];
    let output = fixture.plimsoll(&args).expect(3);
    let rebuilt = plimsoll_run_files::read_summary(output.stdout.as_bytes()).unwrap();
    let [open, _] = &rebuilt.results.by_stage[..] else { panic!("two stages") };
    assert_eq!(open.rates.achieved_rate_per_s, Some(50.0));
    assert_eq!(open.rates, whole.results.by_stage[0].rates);
    assert_eq!(open.counters.arrivals_in_stage, 65);
    // If half of a run is unknown, its bottleneck is unknown too.
    let why = fixture.plimsoll(&["why", run.to_str().unwrap()]).expect(4);
    assert!(why.stdout.starts_with("No finished stage to judge."), "{}", why.stdout);
}

/// A reader without a limit on lines would exceed the memory limit: the line has 400 MB.
#[test]
fn a_line_without_end_is_an_error_that_names_it() {
    let fixture = Fixture::with(FAST);
    let run = killed_run(&fixture);
    let rows = run.join("results.jsonl");
    let lines = fs::read_to_string(&rows).unwrap().lines().count();
    let file = fs::OpenOptions::new().append(true).open(&rows).unwrap();
    // A hole, which takes no space on the disk.
    file.set_len(file.metadata().unwrap().len() + 400_000_000).unwrap();
    let binary = env!("CARGO_BIN_EXE_plimsoll");
    let script = format!("ulimit -v 350000; exec {binary} report {}", run.display());
    let output: crate::support::ProcessOutput =
        std::process::Command::new("sh").args(["-c", &script]).output().unwrap().into();
    let output = output.expect(3);
    let names = format!("line {} is longer than 16777216 bytes", lines + 1);
    assert!(output.stderr.contains(&names), "{}", output.stderr);
    assert!(output.stderr.contains("results.jsonl"), "{}", output.stderr);
}

#[test]
fn control_characters_of_files_do_not_reach_the_terminal() {
    let fixture = Fixture::with(FAST);
    let run = killed_run(&fixture);
    for file in ["plan.json", "results.jsonl"] {
        let path = run.join(file);
        let text = fs::read_to_string(&path).unwrap();
        let text = text.replace("\"2:300ms\"", "\"2:300ms\\u001b]0;owned\\u0007\"");
        fs::write(&path, text.replacen("\"notes\": []", "\"notes\": [\"\\u001b[2J\"]", 1)).unwrap();
    }
    let folder = run.to_str().unwrap();
    let output = fixture.plimsoll(&["report", folder, "--full"]).expect(3);
    assert!(output.stdout.contains("\\u{1b}]0;owned\\u{7}"), "{}", output.stdout);
    // A name that the plan does not have is quoted in an error.
    let rows = run.join("results.jsonl");
    let text = fs::read_to_string(&rows).unwrap().replace("owned", "other");
    fs::write(&rows, text).unwrap();
    let refused = fixture.plimsoll(&["report", folder]).expect(3);
    assert!(refused.stderr.contains("\\u{1b}]0;other"), "{}", refused.stderr);
    for text in [output.stdout, output.stderr, refused.stdout, refused.stderr] {
        assert!(!text.contains(['\x1b', '\x07']), "{text:?}");
    }
}

#[test]
fn a_run_is_made_again_from_its_folder_and_needs_its_key_again() {
    let fixture = Fixture::with(FAST);
    let first = ["minimal", "--stages", "2:300ms", "--set", "labels.of=this", "--name", "again"];
    fixture.run(&first).expect(0);
    let run = fixture.only_run();
    let folder = run.to_str().unwrap();
    let plan = run.join("plan.json");
    for named in [folder, plan.to_str().unwrap()] {
        let refused = fixture.plimsoll(&["run", named, "--out", "second"]).expect(2);
        assert!(
            refused.stderr.contains("stored profiles contain no credentials"),
            "{}",
            refused.stderr
        );
    }
    let again = ["run", folder, "--key", "k", "--out", "second", "--quiet", "--allow-invalid"];
    fixture.plimsoll(&again).expect(0);
    let second = fs::read_dir(fixture.folder.path().join("second")).unwrap().next().unwrap();
    let plans = [plan, second.unwrap().path().join("plan.json")].map(|path| {
        let plan: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        ["name", "stages", "scenarios", "targets", "seed", "labels", "limits"]
            .map(|key| plan["plan"][key].clone())
    });
    assert_eq!(plans[0], plans[1]);
}
