//! `plimsoll http`: load on any endpoint.

use std::fs;

use crate::support::{FAST, Fixture, command, summary};

#[test]
fn endpoints_are_loaded_one_after_another_and_compared() {
    let fixture = Fixture::with(FAST);
    let (slow, fast) =
        (format!("{}/", fixture.target()), format!("{}/health?page=1", fixture.target()));
    let args = ["http", &slow, &fast, "-c", "4", "-d", "400ms", "--warmup", "100ms", "-q"];
    let output = fixture.plimsoll(&[&args[..], &["--allow-invalid"]].concat()).expect(0);
    output.expect_screen();
    let rows: Vec<_> =
        output.stdout.lines().filter(|line| line.starts_with(&fixture.target())).collect();
    // Both in each part of a table that is too wide for one.
    assert!(rows.len() >= 2 && rows.len() % 2 == 0, "{}", output.stdout);
    assert_eq!(rows[0].split(' ').next(), Some(&*slow), "{}", output.stdout);
    assert!(rows[1].starts_with(&fast), "{}", output.stdout);
    assert!(fixture.mock.stats().requests > 10);
    // No files without --out, which is said.
    assert!(output.stdout.contains("files: none (--out DIR keeps them)"), "{}", output.stdout);
    assert_eq!(fs::read_dir(fixture.folder.path()).unwrap().count(), 0);
    // The last line is the verdict on both, and on one that could not be loaded.
    let last = |text: &str| text.lines().last().unwrap_or_default().to_owned();
    let verdict = last(&output.stdout);
    assert!([&slow, &fast].iter().all(|url| verdict.contains(&format!(": {url}: "))), "{verdict}");
    let args = ["http", &slow, "http://127.0.0.1:1/", "-c", "1", "-d", "100ms", "--warmup", "0"];
    let output = fixture.plimsoll(&[&args[..], &["-q", "--allow-invalid"]].concat()).expect(1);
    let verdict = last(&output.stdout);
    assert!(verdict.starts_with("FAIL: GET http://127.0.0.1:1/ failed: "), "{verdict}");
}

#[test]
fn a_rate_is_an_open_load_and_out_writes_its_files() {
    let fixture = Fixture::with(FAST);
    let url = fixture.target();
    let args = ["http", &url, "--rate", "50", "-d", "1s", "--warmup", "0", "--out", "runs", "-q"];
    fixture.plimsoll(&[&args[..], &["--allow-invalid"]].concat()).expect(0);
    let summary = fixture.summary();
    assert_eq!(summary.results.accounting().scheduled, 50);
    assert_eq!(summary.metadata.stages.len(), 1);
    let rows = fs::read_to_string(fixture.only_run().join("results.jsonl")).unwrap();
    assert_eq!(rows.lines().count(), 50);
    assert_eq!(fixture.mock.stats().requests, 51);
}

#[test]
fn a_body_is_sent_unchanged_and_environment_variables_are_ignored() {
    let fixture = Fixture::with("log: memory");
    fs::write(
        fixture.folder.path().join("body.json"),
        r#"{"model":"$HOME","messages":[{"role":"user","content":"${X} $$"}]}"#,
    )
    .unwrap();
    let url = format!("{}/v1/chat/completions", fixture.target());
    let args = ["http", &url, "-b", "@body.json", "-c", "1", "-d", "200ms", "--warmup", "0", "-q"];
    let args = [&args[..], &["--allow-invalid"]].concat();
    let mut command = command(fixture.folder.path(), &args);
    command.env("PLIMSOLL_TARGET", "http://127.0.0.1:1").env("PLIMSOLL_STAGES", "nonsense");
    assert_eq!(command.output().unwrap().status.code(), Some(0));
    let log = fixture.mock.take_log();
    assert!(log.iter().all(|record| record.model.as_deref() == Some("$HOME")), "{:?}", log.first());
}

#[test]
fn a_missing_path_is_loaded_and_reported_but_a_dead_target_is_not() {
    let fixture = Fixture::with(FAST);
    let load = ["-c", "1", "-d", "200ms", "--warmup", "0", "-q"];
    let url = format!("{}/no/such/path", fixture.target());
    let output =
        fixture.plimsoll(&[&["http", &url, "--out", "runs"], &load[..]].concat()).expect(1);
    let verdict = output.stdout.lines().last().unwrap_or_default();
    assert!(
        verdict.starts_with("FAIL: ")
            && verdict.contains("(100%) failed or were rejected: status 404"),
        "{}",
        output.stdout
    );
    assert!(!output.stdout.contains("opened a connection"), "{}", output.stdout);
    let total = summary(&fixture.only_run()).results.total;
    assert!(total.counters.rejected > 0 && total.statuses.contains_key(&404));
    let output =
        fixture.plimsoll(&[&["http", "http://127.0.0.1:1/"], &load[..]].concat()).expect(1);
    assert!(output.stderr.contains("nothing listens on that address"), "{}", output.stderr);
}

#[test]
fn wrong_usage_names_the_flag() {
    let fixture = Fixture::with(FAST);
    for (args, part) in [
        (&["http"][..], "<URL>..."),
        (&["http", "ftp://127.0.0.1:1"], "command line: target"),
        (&["http", "http://a", "-d", "ten"], "is not a length of time"),
        (&["http", "http://a", "-c", "0"], "--concurrency"),
        (&["http", "http://a", "--rate", "-5"], "-5"),
        (&["http", "http://a", "-H", "nocolon"], "flag --header"),
        (&["http", "http://a", "-b", "@absent"], "cannot read absent"),
        (&["http", "http://a", "--method", "G E T"], "method"),
    ] {
        let output = fixture.plimsoll(args).expect(2);
        assert!(output.stderr.contains(part), "{args:?}: {}", output.stderr);
    }
}
