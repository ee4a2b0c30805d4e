//! `plimsoll http`: one line for any endpoint.

use std::fs;

use crate::bench::{Bench, FAST, command, summary};

#[test]
fn endpoints_are_loaded_one_after_another_and_compared() {
    let bench = Bench::with(FAST);
    let (slow, fast) = (format!("{}/", bench.target()), format!("{}/health?x=1", bench.target()));
    let args = ["http", &slow, &fast, "-c", "4", "-d", "400ms", "--warmup", "100ms", "-q"];
    let ran = bench.plimsoll(&args).expect(0);
    let table = ran.stdout.split("Side by side").nth(1).unwrap();
    let rows: Vec<_> = table.lines().skip(2).collect();
    assert_eq!(rows.len(), 2, "{table}");
    assert!(rows[0].ends_with(&slow) && rows[1].ends_with(&fast), "{table}");
    assert!(bench.mock.stats().requests > 10);
    // Nothing is kept unless it is asked for.
    assert_eq!(fs::read_dir(bench.folder.path()).unwrap().count(), 0);
}

#[test]
fn a_rate_is_an_open_load_of_which_files_can_be_kept() {
    let bench = Bench::with(FAST);
    let url = bench.target();
    let args = ["http", &url, "--rate", "50", "-d", "1s", "--warmup", "0", "--out", "runs", "-q"];
    bench.plimsoll(&[&args[..], &["--allow-invalid"]].concat()).expect(0);
    let summary = bench.summary();
    assert_eq!(summary.results.accounting().scheduled, 50);
    assert_eq!(summary.metadata.stages.len(), 1);
    let rows = fs::read_to_string(bench.only_run().join("results.jsonl")).unwrap();
    assert_eq!(rows.lines().count(), 50);
    assert_eq!(bench.mock.stats().requests, 51);
}

#[test]
fn a_body_may_be_any_text_and_variables_do_not_matter() {
    let bench = Bench::with("log: memory");
    fs::write(
        bench.folder.path().join("body.json"),
        r#"{"model":"$HOME","messages":[{"role":"user","content":"${X} $$"}]}"#,
    )
    .unwrap();
    let url = format!("{}/v1/chat/completions", bench.target());
    let args = ["http", &url, "-b", "@body.json", "-c", "1", "-d", "200ms", "--warmup", "0", "-q"];
    let mut command = command(bench.folder.path(), &args);
    command.env("PLIMSOLL_TARGET", "http://127.0.0.1:1").env("PLIMSOLL_STAGES", "nonsense");
    assert_eq!(command.output().unwrap().status.code(), Some(0));
    let log = bench.mock.take_log();
    assert!(log.iter().all(|record| record.model.as_deref() == Some("$HOME")), "{:?}", log.first());
}

#[test]
fn a_refused_endpoint_is_data_and_an_absent_one_is_not() {
    let bench = Bench::with(FAST);
    let load = ["-c", "1", "-d", "200ms", "--warmup", "0", "-q"];
    let url = format!("{}/no/such/path", bench.target());
    let ran = bench.plimsoll(&[&["http", &url, "--out", "runs"], &load[..]].concat()).expect(3);
    assert!(ran.stderr.contains("no request was completed"), "{}", ran.stderr);
    let total = summary(&bench.only_run()).results.total;
    assert!(total.counters.rejected > 0 && total.statuses.contains_key(&404));
    let ran = bench.plimsoll(&[&["http", "http://127.0.0.1:1/"], &load[..]].concat()).expect(3);
    assert!(ran.stderr.contains("nothing listens there"), "{}", ran.stderr);
}

#[test]
fn mistakes_are_told_as_those_of_the_command_line() {
    let bench = Bench::with(FAST);
    for (args, part) in [
        (&["http"][..], "<URL>..."),
        (&["http", "127.0.0.1:1"], "command line: target"),
        (&["http", "http://a", "-d", "10"], "is not a length of time"),
        (&["http", "http://a", "-c", "0"], "stages"),
        (&["http", "http://a", "-r", "-5"], "-5"),
        (&["http", "http://a", "-H", "nocolon"], "flag --header"),
        (&["http", "http://a", "-b", "@absent"], "cannot read absent"),
        (&["http", "http://a", "--method", "G E T"], "method"),
    ] {
        let ran = bench.plimsoll(args).expect(2);
        assert!(ran.stderr.contains(part), "{args:?}: {}", ran.stderr);
    }
}
