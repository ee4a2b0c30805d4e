//! `plimsoll suite`: whole measurements, here of seconds.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{FAST, Finished, Fixture, command};

/// As short as a measurement can be. Whether the instrument was good enough is not what tests are
/// about.
const SHORT: [&str; 6] = ["--quick", "--duration", "300ms", "--passes", "1", "--allow-invalid"];

fn suite(fixture: &Fixture, name: &str, args: &[&str]) -> Finished {
    fixture.plimsoll(&[&["suite", name], &SHORT[..], args].concat())
}

fn result(fixture: &Fixture) -> (PathBuf, Value) {
    let folder = fixture.only_run();
    let text = fs::read(folder.join("suite.json")).unwrap();
    (folder, serde_json::from_slice(&text).unwrap())
}

#[test]
fn a_target_is_loaded_and_the_report_has_the_columns_of_its_seed() {
    let fixture = Fixture::with(FAST);
    let ran = suite(&fixture, "quick", &["--target", &fixture.target(), "-c", "4"]).expect(0);
    for part in [
        "Load",
        "RPS",
        "Avg",
        "Max",
        "MB/s",
        "Total",
        "moderate, 4 connections",
        "extreme, 8 connections",
        "Reference: RustyGW",
        "21,989",
        "To repeat it",
    ] {
        assert!(ran.stdout.contains(part), "{part} is not in:\n{}", ran.stdout);
    }
    assert_eq!(ran.stdout.contains("DEBUG BUILD"), cfg!(debug_assertions));
    let (folder, json) = result(&fixture);
    let cells = json["measurements"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    // What the mock counted is what the cells did: two loads, and their warm-ups.
    let measured: u64 =
        cells.iter().map(|cell| cell["passes"][0]["requests"].as_u64().unwrap()).sum();
    assert!(measured > 10 && fixture.mock.stats().requests >= measured);
    for cell in cells {
        let file = cell["files"][0].as_str().unwrap();
        assert!(folder.join(file).exists(), "{file}");
        assert_eq!(cell["passes"][0]["errors"], 0);
    }
}

#[test]
fn our_own_gateway_and_provider_are_started_and_gone_afterwards() {
    let fixture = Fixture::with(FAST);
    let ran = suite(&fixture, "baseline", &["-c", "4"]).expect(0);
    for part in
        ["GET /health/live, 4 clients", "keys and rate limits", "SSE stream", "WebSocket load:"]
    {
        assert!(ran.stdout.contains(part), "{part} is not in:\n{}", ran.stdout);
    }
    let (_, json) = result(&fixture);
    for cell in json["measurements"].as_array().unwrap() {
        assert_eq!(cell["passes"][0]["errors"], 0, "{cell}");
        assert!(cell["passes"][0]["gateway_cpu_us"].as_f64().is_some(), "{cell}");
    }
    // The mock of the test is another one: nobody asked it anything.
    assert_eq!(fixture.mock.stats().requests, 0);
    assert_eq!(children(&fixture), 0);
}

#[test]
fn a_result_is_held_against_an_earlier_one() {
    let fixture = Fixture::with(FAST);
    let target = fixture.target();
    suite(&fixture, "quick", &["--target", &target, "-c", "4", "--out", "old"]).expect(0);
    let old = fs::read_dir(fixture.folder.path().join("old")).unwrap().next().unwrap().unwrap();
    let path = old.path().join("suite.json");
    // As if it had been a hundred times as fast then.
    let mut json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let rate = &mut json["measurements"][0]["passes"][0]["requests_per_s"];
    *rate = (rate.as_f64().unwrap() * 100.0).into();
    fs::write(&path, json.to_string()).unwrap();
    let path = path.to_string_lossy();
    let ran = suite(&fixture, "quick", &["--target", &target, "-c", "4", "--baseline", &path]);
    assert!(ran.expect(1).stdout.contains("FAIL"));
    let ran = suite(&fixture, "baseline", &["--target", &target, "--baseline", &path]).expect(2);
    assert!(ran.stderr.contains("the result of `quick`"), "{}", ran.stderr);
}

#[test]
fn ctrl_c_ends_it_with_what_was_measured() {
    let fixture = Fixture::with(FAST);
    let target = fixture.target();
    let args = ["suite", "quick", "--target", &target, "-d", "20s", "-c", "4"];
    let child = command(fixture.folder.path(), &args)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    fixture.wait_for_requests(100);
    std::thread::park_timeout(Duration::from_millis(2_500));
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let ran = Finished::from(child.wait_with_output().unwrap()).expect(130);
    assert!(ran.stdout.contains("INTERRUPTED"), "{}", ran.stdout);
    let (_, json) = result(&fixture);
    assert_eq!(json["measurements"][0]["passes"].as_array().unwrap().len(), 1);
    assert_eq!(json["measurements"][1]["passes"].as_array().unwrap().len(), 0);
}

#[test]
fn children_do_not_outlive_a_suite_that_is_killed() {
    let fixture = Fixture::with(FAST);
    let mut child = command(fixture.folder.path(), &["suite", "quick", "-d", "20s", "-q"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait(|| children(&fixture) > 0);
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGKILL).unwrap();
    child.wait().unwrap();
    wait(|| children(&fixture) == 0);
}

fn wait(mut done: impl FnMut() -> bool) {
    for _ in 0..500 {
        if done() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    panic!("it does not come to that");
}

/// Gateways and providers that were started from the folder of this test, which is their working
/// directory.
fn children(fixture: &Fixture) -> usize {
    let here = fs::canonicalize(fixture.folder.path()).unwrap();
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let ours = processes.filter(|process| {
        let is_here = fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == here);
        let command = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        let serves =
            command.split('\0').nth(1).is_some_and(|what| what == "gateway" || what == "mock");
        is_here && serves
    });
    ours.count()
}

#[test]
fn what_cannot_be_measured_is_told_before_any_load() {
    let fixture = Fixture::with(FAST);
    for (args, code, part) in [
        (&["--target", "nonsense"][..], 2, "has no scheme"),
        (&["--target", "http://127.0.0.1:1"], 3, "nothing listens there"),
        (&["--size-for", "0"], 2, "--size-for"),
        (&["--key", "x"], 2, "--target"),
        (&["--concurrency", "0"], 2, "concurrency"),
    ] {
        let ran = fixture.plimsoll(&[&["suite", "quick", "--quick"], args].concat()).expect(code);
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(told.contains(part), "{args:?}: {told}");
    }
    let mut command = command(fixture.folder.path(), &["suite", "baseline", "--quick"]);
    command.env("AZ_LOAD_CONCURRENCY", "many");
    let ran = Finished::from(command.output().unwrap()).expect(2);
    assert!(ran.stderr.contains("AZ_LOAD_CONCURRENCY"), "{}", ran.stderr);
}
