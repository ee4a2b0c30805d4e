//! Runs that fail: each prints its cause and its fix, and leaves no files behind.

use std::fs;
use std::process::Command;

use crate::support::{FAST, Fixture, ProcessOutput};

#[test]
fn an_invalid_profile_prints_all_its_problems_before_any_request() {
    let fixture = Fixture::with(FAST);
    fs::write(
        fixture.folder.path().join("bad.yaml"),
        "taget: http://127.0.0.1:1\nstages: 5:10\nscenarios:\n  - name: a\n    weight: -1\n    max_tokens: lots\n",
    )
    .unwrap();
    let output = fixture.run(&["bad.yaml"]).expect(2);
    for part in ["bad.yaml:1: taget", "did you mean `target`", "stages", "weight", "max_tokens"] {
        assert!(output.stderr.contains(part), "{part} in:\n{}", output.stderr);
    }
    assert!(output.stderr.lines().count() >= 4 && output.stdout.is_empty());
    assert_eq!((fixture.mock.stats().requests, fixture.runs().len()), (0, 0));
}

#[test]
fn an_unusable_tokenizer_file_is_an_invalid_profile() {
    let fixture = Fixture::with(FAST);
    fs::write(fixture.folder.path().join("tokens.json"), "{}").unwrap();
    let output = fixture.run(&["minimal", "--set", "tokenizer=tokens.json"]).expect(2);
    assert!(output.stderr.contains("tokens.json"), "{}", output.stderr);
    assert_eq!(fixture.runs().len(), 0);
}

#[test]
fn the_probe_finds_a_target_that_does_not_listen() {
    let fixture = Fixture::with(FAST);
    let output = fixture.run(&["minimal", "--target", "http://127.0.0.1:1"]);
    // The helper has set --target already, and a flag may be given only once.
    output.expect(2);
    let gone = ["run", "minimal", "--target", "http://127.0.0.1:1", "--key", "any", "--quiet"];
    let output = fixture.plimsoll(&gone).expect(1);
    assert!(output.stderr.starts_with("FAIL: "), "{}", output.stderr);
    assert!(output.stderr.contains("nothing listens on that address"), "{}", output.stderr);
    assert!(output.stderr.contains("no load was sent"), "{}", output.stderr);
    assert_eq!((output.stdout.as_str(), fixture.runs().len()), ("", 0));
}

#[test]
fn a_run_without_a_completed_request_does_not_pass() {
    let fixture = Fixture::with(FAST);
    let gone = ["run", "minimal", "--target", "http://127.0.0.1:1", "--key", "any", "--quiet"];
    let output =
        fixture.plimsoll(&[&gone[..], &["--no-probe", "--stages", "1:300ms"]].concat()).expect(1);
    let verdict = output.stdout.lines().last().unwrap_or_default();
    assert!(
        verdict.starts_with("FAIL: ") && verdict.contains("(100%) failed: connection refused"),
        "{}",
        output.stdout
    );
    assert_eq!(output.stderr, "", "nothing follows the verdict");
    assert!(fixture.summary().results.accounting().balanced());
}

/// It answers neither the probe nor the load: each user, or each slot of `max_in_flight`, waits for
/// a request of the warm-up.
#[test]
fn a_target_that_hangs_fails_its_run() {
    let fixture = Fixture::with("other_models: {faults: [{fault: hang, share: 1.0}]}");
    let cases =
        [("w4:500ms,4:500ms", "4 of 4"), ("@10:1s", "10 of 10"), ("w@10:1s,@10:1s", "7 of 7")];
    for (stages, failed) in cases {
        let slots = if stages.starts_with("w@") { "max_in_flight=7" } else { "max_in_flight=50" };
        let args = ["minimal", "--stages", stages, "--set", "drain=2s", "--set", slots];
        let more = ["--no-probe", "--out", &failed[..2]];
        let output = fixture.run(&[&args[..], &more[..]].concat()).expect(1);
        let verdict = output.expect_screen();
        let expected = format!("FAIL: {failed} requests (100%) failed: no response (PL201");
        assert!(verdict.starts_with(&expected), "{verdict}");
    }
}

/// A server that accepts connections and never answers ends a load of 60 s after 10 s.
#[test]
fn a_target_that_hangs_ends_the_load() {
    let fixture = Fixture::with(FAST);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let output = fixture.plimsoll(&["http", &url, "-c", "2", "-d", "60s", "--no-probe"]).expect(1);
    let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("no success for 2"), "{text}");
    let verdict = output.expect_screen();
    assert!(verdict.starts_with("FAIL: 2 of 2 requests (100%) failed: no response"), "{verdict}");
}

#[test]
fn an_unwritable_output_folder_is_an_error_before_any_request() {
    let fixture = Fixture::with(FAST);
    fs::write(fixture.folder.path().join("file"), "").unwrap();
    let output = fixture.run(&["minimal", "--out", "file/runs"]).expect(3);
    assert!(
        output.stderr.contains("file/runs") && output.stderr.contains("--out"),
        "{}",
        output.stderr
    );
    assert_eq!(fixture.mock.stats().requests, 0);
}

#[test]
fn a_run_short_of_file_descriptors_is_invalid_unless_that_is_allowed() {
    let fixture = Fixture::with("other_models: {ttft: 20ms}");
    let target = fixture.target();
    let load =
        ["run", "minimal", "--target", &target, "--key", "any", "--quiet", "--stages", "90:500ms"];
    let with_60_descriptors = |args: &[&str]| {
        let output = Command::new("sh")
            .current_dir(fixture.folder.path())
            .args(["-c", "ulimit -n 60; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_plimsoll")])
            .args([&load[..], args].concat())
            .output();
        ProcessOutput::from(output.unwrap())
    };
    let output = with_60_descriptors(&[]).expect(3);
    assert!(output.stderr.contains("only 60 files may be open"), "{}", output.stderr);
    assert!(
        output.stdout.contains("failed on this host: gen_fd_exhaustion (limit 60)"),
        "{}",
        output.stdout
    );
    let allowed = with_60_descriptors(&["--allow-invalid"]).expect(0);
    assert!(allowed.stdout.contains("INVALID"), "{}", allowed.stdout);
}

#[test]
fn a_full_disk_is_an_error_and_the_report_is_still_printed() {
    let fixture = Fixture::with(FAST);
    // No file may be longer than 16 kB. The signal for that is ignored, so that writing fails.
    let script = "trap '' XFSZ; ulimit -f 32; exec \"$0\" \"$@\"";
    let target = fixture.target();
    let output = Command::new("sh")
        .current_dir(fixture.folder.path())
        .args(["-c", script, env!("CARGO_BIN_EXE_plimsoll")])
        .args([
            "run", "minimal", "--target", &target, "--key", "any", "--quiet", "--stages", "4:1s",
            "--full",
        ])
        .output()
        .unwrap();
    let output = ProcessOutput::from(output).expect(3);
    assert!(
        output.stderr.contains("cannot write") && output.stderr.contains("summary.json"),
        "{}",
        output.stderr
    );
    assert!(output.stdout.contains("PL105"), "{}", output.stdout);
    assert!(!fixture.only_run().join("summary.json").exists());
}
