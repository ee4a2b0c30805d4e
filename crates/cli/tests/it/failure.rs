//! Runs that cannot be: each is told with its cause and its fix, and leaves nothing behind.

use std::fs;
use std::process::Command;

use crate::support::{FAST, Finished, Fixture};

#[test]
fn a_bad_profile_is_refused_with_all_its_problems_before_anything_happens() {
    let fixture = Fixture::with(FAST);
    fs::write(
        fixture.folder.path().join("bad.yaml"),
        "taget: http://127.0.0.1:1\nstages: 5:10\nscenarios:\n  - name: a\n    weight: -1\n    max_tokens: lots\n",
    )
    .unwrap();
    let ran = fixture.run(&["bad.yaml"]).expect(2);
    for part in ["bad.yaml: taget", "did you mean `target`", "stages", "weight", "max_tokens"] {
        assert!(ran.stderr.contains(part), "{part} in:\n{}", ran.stderr);
    }
    assert!(ran.stderr.lines().count() >= 4 && ran.stdout.is_empty());
    assert_eq!((fixture.mock.stats().requests, fixture.runs().len()), (0, 0));
}

#[test]
fn what_only_preparing_shows_is_a_bad_profile_too() {
    let fixture = Fixture::with(FAST);
    fs::write(fixture.folder.path().join("tokens.json"), "{}").unwrap();
    let ran = fixture.run(&["minimal", "--set", "tokenizer=tokens.json"]).expect(2);
    assert!(ran.stderr.contains("tokens.json"), "{}", ran.stderr);
    assert_eq!(fixture.runs().len(), 0);
}

#[test]
fn a_target_that_is_not_there_is_found_by_the_probe() {
    let fixture = Fixture::with(FAST);
    let ran = fixture.run(&["minimal", "--target", "http://127.0.0.1:1"]);
    // The later flag is a mistake of the command line: a flag may be given once.
    ran.expect(2);
    let gone = ["run", "minimal", "--target", "http://127.0.0.1:1", "--key", "any", "--quiet"];
    let ran = fixture.plimsoll(&gone).expect(3);
    assert!(ran.stderr.contains("nothing listens there"), "{}", ran.stderr);
    assert!(ran.stderr.contains("no load was sent"), "{}", ran.stderr);
    assert_eq!((ran.stdout.as_str(), fixture.runs().len()), ("", 0));
}

#[test]
fn a_load_of_which_nothing_completes_is_no_pass() {
    let fixture = Fixture::with(FAST);
    let gone = ["run", "minimal", "--target", "http://127.0.0.1:1", "--key", "any", "--quiet"];
    let ran =
        fixture.plimsoll(&[&gone[..], &["--no-probe", "--stages", "1:300ms"]].concat()).expect(3);
    assert!(ran.stderr.contains("no request was completed"), "{}", ran.stderr);
    assert!(fixture.summary().results.accounting().balanced());
}

#[test]
fn a_folder_that_cannot_be_written_is_told_before_any_request() {
    let fixture = Fixture::with(FAST);
    fs::write(fixture.folder.path().join("file"), "").unwrap();
    let ran = fixture.run(&["minimal", "--out", "file/runs"]).expect(3);
    assert!(ran.stderr.contains("file/runs") && ran.stderr.contains("--out"), "{}", ran.stderr);
    assert_eq!(fixture.mock.stats().requests, 0);
}

#[test]
fn a_run_that_the_instrument_spoiled_is_invalid_unless_that_is_allowed() {
    let fixture = Fixture::with("other_models: {ttft: 20ms}");
    let target = fixture.target();
    let load =
        ["run", "minimal", "--target", &target, "--key", "any", "--quiet", "--stages", "90:500ms"];
    let short_of_files = |args: &[&str]| {
        let output = Command::new("sh")
            .current_dir(fixture.folder.path())
            .args(["-c", "ulimit -n 60; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_plimsoll")])
            .args([&load[..], args].concat())
            .output();
        Finished::from(output.unwrap())
    };
    let ran = short_of_files(&[]).expect(3);
    assert!(ran.stderr.contains("only 60 files may be open"), "{}", ran.stderr);
    assert!(ran.stdout.contains("gen_fd_exhaustion"), "{}", ran.stdout);
    let allowed = short_of_files(&["--allow-invalid"]).expect(0);
    assert!(allowed.stdout.contains("INVALID"), "{}", allowed.stdout);
}

#[test]
fn a_disk_that_fills_up_is_told_and_the_report_is_still_shown() {
    let fixture = Fixture::with(FAST);
    // No file may be longer than 16 kB; the signal that says so is ignored, and writing fails.
    let script = "trap '' XFSZ; ulimit -f 32; exec \"$0\" \"$@\"";
    let target = fixture.target();
    let output = Command::new("sh")
        .current_dir(fixture.folder.path())
        .args(["-c", script, env!("CARGO_BIN_EXE_plimsoll")])
        .args([
            "run", "minimal", "--target", &target, "--key", "any", "--quiet", "--stages", "4:1s",
        ])
        .output()
        .unwrap();
    let ran = Finished::from(output).expect(3);
    assert!(
        ran.stderr.contains("cannot write") && ran.stderr.contains("summary.json"),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.contains("results.jsonl is cut short"), "{}", ran.stdout);
    assert!(!fixture.only_run().join("summary.json").exists());
}
