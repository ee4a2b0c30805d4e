//! `plimsoll suite`: whole suites, with measurements as short as possible.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_run_files::pairs::read_pairs;
use serde_json::Value;

use crate::gateway::Gateway;
use crate::support::{FAST, Fixture, ProcessOutput, command, wait_until};

/// Measurements as short as possible. Their validity is not tested: tests share the machine.
const SHORT: [&str; 6] = ["--short", "--duration", "600ms", "--passes", "1", "--allow-invalid"];

fn suite(fixture: &Fixture, name: &str, args: &[&str]) -> ProcessOutput {
    fixture.plimsoll(&[&["suite", name, "--full"], &SHORT[..], args].concat())
}

fn result(fixture: &Fixture) -> (PathBuf, Value) {
    let folder = fixture.only_run();
    let text = fs::read(folder.join("suite.json")).unwrap();
    (folder, serde_json::from_slice(&text).unwrap())
}

#[test]
fn a_target_is_loaded_and_the_report_has_all_columns() {
    let fixture = Fixture::with(FAST);
    let output = suite(&fixture, "quick", &["--target", &fixture.target(), "-c", "4"]).expect(0);
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
        assert!(output.stdout.contains(part), "{part} is not in:\n{}", output.stdout);
    }
    assert_eq!(output.stdout.contains("DEBUG BUILD"), cfg!(debug_assertions));
    let (folder, json) = result(&fixture);
    let measurements = json["measurements"].as_array().unwrap();
    assert_eq!(measurements.len(), 2);
    let parts = ["moderate, 4 connections", "Reference: RustyGW", "21,989"];
    the_suite_is_shown_again(&fixture, &folder, &parts);
    // The mock counted at least the requests of the two measurements, and their warm-ups.
    let measured: u64 = measurements
        .iter()
        .map(|measurement| measurement["passes"][0]["requests"].as_u64().unwrap())
        .sum();
    assert!(measured > 10 && fixture.mock.stats().requests >= measured);
    for measurement in measurements {
        let file = measurement["files"][0].as_str().unwrap();
        assert!(folder.join(file).exists(), "{file}");
        assert_eq!(measurement["passes"][0]["errors"], 0);
    }
}

fn the_suite_is_shown_again(fixture: &Fixture, folder: &Path, parts: &[&str]) {
    let file = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let page = file("report.html");
    for part in parts.iter().chain(&["<p class=\"verdict\">"]) {
        assert!(page.contains(part), "{part}");
    }
    let folder = folder.to_str().unwrap();
    let shown =
        |args: &[&str]| fixture.plimsoll(&[&["report", folder], args].concat()).expect(0).stdout;
    assert_eq!(shown(&["--full"]), file("report.txt"));
    assert!(shown(&[]).lines().count() <= 60, "the screen of the command");
    assert_eq!(shown(&["--html"]), page);
    assert_eq!(shown(&["--format", "json"]), file("suite.json"));
}

#[test]
fn the_reference_gateway_and_provider_are_started_and_stopped() {
    let fixture = Fixture::with(FAST);
    let output = suite(&fixture, "baseline", &["-c", "4"]);
    // On a host that others use, no agent loop may begin in so short a time: 4.
    assert!([Some(0), Some(4)].contains(&output.code), "{}{}", output.stdout, output.stderr);
    for part in [
        "GET /health/live, 4 clients",
        "keys and rate limits",
        "SSE stream",
        "POST /api/chat, agent loop",
        "/ws/chat, WebSocket",
    ] {
        assert!(output.stdout.contains(part), "{part} is not in:\n{}", output.stdout);
    }
    let (_, json) = result(&fixture);
    for measurement in json["measurements"].as_array().unwrap() {
        let pass = &measurement["passes"][0];
        assert_eq!(pass["errors"], 0, "{measurement}");
        let has_cpu = pass["gateway_cpu_us"].as_f64().is_some();
        assert!(has_cpu || pass["requests"] == 0, "{measurement}");
    }
    // The suite started its own mock: the test's mock received no request.
    assert_eq!(fixture.mock.stats().requests, 0);
    assert_eq!(children(&fixture), 0);
}

/// The published benchmark has 71.88 MiB/s at 21,989/s, which are answers of 3.4 kB. A gateway that
/// has only served `/metrics` writes answers of this length.
#[test]
fn answers_of_the_quick_suite_are_as_long_as_those_of_its_document() {
    let fixture = Fixture::with(FAST);
    let output = suite(&fixture, "quick", &["-c", "4", "--port", "0"]);
    assert!([Some(0), Some(4)].contains(&output.code), "{}{}", output.stdout, output.stderr);
    let (_, json) = result(&fixture);
    assert!(json["setup"].to_string().contains("version"), "{}", json["setup"]);
    for measurement in json["measurements"].as_array().unwrap() {
        let bytes = measurement["passes"][0]["answer_bytes"].as_f64().unwrap();
        assert!((3_100.0..3_700.0).contains(&bytes), "{bytes} in {measurement}");
    }
}

/// The labels of the measurements or comparisons.
fn labels(of: &Value) -> Vec<&str> {
    of.as_array().unwrap().iter().map(|one| one["label"].as_str().unwrap()).collect()
}

const KINDS: [&str; 4] = ["chats", "tools", "agents", "approvals"];

/// Whatever the host does to times, client and mock must have counted the same.
#[test]
fn a_mixed_day_has_every_kind_and_its_counts_are_those_of_the_mock() {
    let fixture = Fixture::with(FAST);
    let output = suite(&fixture, "agents", &[]);
    // A gateway whose Redis has no time to answer refuses approvals: 3.
    assert!([Some(0), Some(4)].contains(&output.code), "{}{}", output.stdout, output.stderr);
    let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "A mixed day, memory: 400/s in all",
        "Overhead by kind: each target against the upstream",
        "Approvals have no direct route",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{}", output.stdout);
    }
    let (folder, json) = result(&fixture);
    the_suite_is_shown_again(&fixture, &folder, &["A mixed day, memory", "chats, memory"]);
    let measured = labels(&json["measurements"]);
    assert_eq!(measured[..4], KINDS.map(|kind| format!("mixed day, memory: {kind}")));
    let compared = labels(&json["comparisons"]);
    assert_eq!(compared[..3], ["chats, memory", "tools, memory", "agents, memory"]);
    let left_out = json["skipped"].to_string();
    let with_redis = measured.contains(&"mixed day, Redis: chats");
    assert_ne!(with_redis, left_out.contains("the same day with Redis"), "{left_out}");
    let sections = json["sections"].as_array().unwrap();
    let days = sections.iter().filter(|one| one["title"].as_str().unwrap().starts_with("A mixed"));
    for day in days {
        for (row, kind) in day["table"]["rows"].as_array().unwrap().iter().zip(KINDS) {
            let counted = row[9].as_str().unwrap().split_once(" / ");
            assert_eq!(counted.is_some(), kind != "approvals", "{row}");
            assert!(counted.is_none_or(|(own, mock)| own != "0" && mock != "0"), "{row}");
        }
    }
    let bounds = json["bounds"].as_array().unwrap().iter();
    let counts = bounds.filter(|one| one["what"].as_str().unwrap().contains("mock alone"));
    let differ: Vec<_> = counts.map(|one| one["measured"].as_str().unwrap()).collect();
    assert_eq!(differ, vec!["0"; if with_redis { 6 } else { 3 }]);
    // The suite started its own mock, and its log is not kept.
    assert_eq!(fixture.mock.stats().requests, 0);
    assert!(!folder.join("mock-memory.jsonl").exists());
    assert_eq!(children(&fixture), 0);
}

/// The user's gateway and its upstream; the truth is the log of the mock.
#[test]
fn a_gateway_with_tools_and_agents_has_its_mixed_day_as_a_target() {
    let fixture = Fixture::with("{log: memory}");
    let (upstream, direct) = (fixture.mock.addr().to_string(), fixture.target());
    let tools = format!(
        "tools={{local: [], servers: {{m: {{url: '{direct}/mcp'}}}}, allow: {{'*': [echo]}}}}"
    );
    let chats = "routes=[{name: chat, path: /v1/chat/completions, upstream: provider, llm: true}]";
    let own = ["--preset", "baseline", "--listen", "127.0.0.1:0", "--upstream", &upstream];
    let sets = ["--set", "rate_limits=[]", "--set", chats, "--set", &tools];
    let gateway = Gateway::start(&fixture, &[own, sets].concat());
    let target = format!("http://{}", gateway.address);
    let output = suite(&fixture, "agents", &["--target", &target, "--direct", &direct]).expect(0);
    assert!(output.stdout.contains("A mixed day: 100/s in all"), "{}", output.stdout);
    let (_, json) = result(&fixture);
    assert_eq!(labels(&json["comparisons"]), ["chats", "tools", "agents"]);
    let log = fixture.mock.take_log();
    let calls = log.iter().filter_map(|record| record.rpc.as_ref()?.method.as_deref());
    let calls: Vec<_> = calls.collect();
    for (label, method) in [("tools", "tools/call"), ("agents", "SendMessage")] {
        let row = json["measurements"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one: &&Value| one["label"] == format!("mixed day: {label}"))
            .unwrap();
        let blocks = json["comparisons"].as_array().unwrap().iter();
        let blocks = blocks.filter(|one| one["label"] == label);
        let blocks: u64 =
            blocks.map(|one| one["versus"]["blocks"]["complete"].as_u64().unwrap()).sum();
        // Each block is on the direct way and on the gateway.
        let least = row["passes"][0]["expected"].as_u64().unwrap() + 2 * blocks;
        let found = calls.iter().filter(|called| **called == method).count() as u64;
        assert!(least > 0 && found >= least, "{label}: {found} in the log, at least {least}");
    }
}

/// The mock itself has no approvals.
#[test]
fn a_kind_that_a_target_lacks_is_left_out_and_nothing_at_a_port_is_an_error() {
    let fixture = Fixture::with(FAST);
    let output = suite(&fixture, "agents", &["--target", &fixture.target()]).expect(4);
    let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = "POST /v1/hitl, a request for approval: not measured, because no such route: 404";
    assert!(text.contains(why), "{text}");
    let (_, json) = result(&fixture);
    assert_eq!(labels(&json["measurements"]).len(), 3);
    let nobody = ["--target", "http://127.0.0.1:1", "--out", "nobody"];
    let output = suite(&fixture, "agents", &nobody).expect(1);
    let output = format!("{}{}", output.stdout, output.stderr);
    assert!(output.contains("nothing listens on that address"), "{output}");
}

#[test]
fn a_result_is_compared_with_an_earlier_one() {
    let fixture = Fixture::with(FAST);
    let target = fixture.target();
    suite(&fixture, "quick", &["--target", &target, "-c", "4", "--out", "old"]).expect(0);
    let old = fs::read_dir(fixture.folder.path().join("old")).unwrap().next().unwrap().unwrap();
    let path = old.path().join("suite.json");
    // Pretend that the earlier result was many times as fast.
    let mut json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    json["measurements"][0]["passes"][0]["requests_per_s"] = 1e8.into();
    fs::write(&path, json.to_string()).unwrap();
    let path = path.to_string_lossy();
    let against = ["--target", &target, "-c", "4", "--against", &path, "--out", "new"];
    let output = suite(&fixture, "quick", &against);
    let new = fs::read_dir(fixture.folder.path().join("new")).unwrap().next().unwrap().unwrap();
    let json: Value =
        serde_json::from_slice(&fs::read(new.path().join("suite.json")).unwrap()).unwrap();
    let bounds = json["bounds"].as_array().unwrap();
    let is_drop = |bound: &&Value| {
        let what = bound["what"].as_str().unwrap();
        what.starts_with("drop since ") && what.ends_with("moderate, 4 connections")
    };
    let judgement = &bounds.iter().find(is_drop).unwrap()["judgement"];
    // On a host that other processes use, the drop may be theirs or the gateway's, or is unknown.
    let why = judgement["why"].as_str();
    match why {
        None => {
            assert_eq!(judgement["state"], "fail", "{json}");
            assert!(output.expect(1).stdout.contains("FAIL"));
        }
        Some(why) => {
            let held_back = "more than 5 % of a rate may have been held back by the generator";
            let doubts = ["busy host: ", "now, the ", "then, the ", held_back];
            assert!(doubts.iter().any(|doubt| why.starts_with(doubt)), "{why}");
            assert!(output.expect(0).stdout.contains("INCONCLUSIVE: "));
        }
    }
    let output = suite(&fixture, "baseline", &["--target", &target, "--against", &path]).expect(2);
    assert!(output.stderr.contains("the result of `quick`"), "{}", output.stderr);
}

#[test]
fn ctrl_c_ends_a_suite_and_reports_what_was_measured() {
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
    let output = ProcessOutput::from(child.wait_with_output().unwrap()).expect(130);
    assert_eq!(output.expect_screen(), "INTERRUPTED (measurement: valid)");
    let (_, json) = result(&fixture);
    assert_eq!(json["measurements"][0]["passes"].as_array().unwrap().len(), 1);
    assert_eq!(json["measurements"][1]["passes"].as_array().unwrap().len(), 0);
}

/// Runs only the first tier, then interrupts the suite. A second of load gives no interval, so
/// single pairs are the truth: one gateway takes 30 ms longer for every pair.
#[test]
fn several_targets_get_the_same_requests_as_what_is_behind_them() {
    let fixture = Fixture::with("{log: memory}");
    let upstream = fixture.mock.addr().to_string();
    let gateway = |more: &[&str]| {
        let args = ["--preset", "proxy", "--listen", "127.0.0.1:0", "--upstream", &upstream];
        Gateway::start(&fixture, &[&args, more].concat())
    };
    let (fast, slow) = (gateway(&[]), gateway(&["--set", "faults.delay=30ms"]));
    let targets = [format!("a=http://{}", fast.address), format!("b=http://{}", slow.address)];
    let direct = fixture.target();
    let args = ["suite", "tiers", "--direct", &direct, "--target", &targets[0], "--target"];
    let load = [&*targets[1], "--short", "-d", "200ms", "-c", "8", "--full"];
    let mut child = command(fixture.folder.path(), &[&args[..], &load].concat())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut told = Vec::new();
    let compared = lines.by_ref().inspect(|line| told.push(line.clone()));
    assert!({ compared }.any(|line| line.contains(", compared: ")), "{told:?}");
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    lines.for_each(drop);
    let output = ProcessOutput::from(child.wait_with_output().unwrap()).expect(130);
    let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["Overhead by tier: each target against the upstream", "128/128: no cost is given"]
    {
        assert!(text.contains(part), "{part} is not in {}", output.stdout);
    }
    let (folder, json) = result(&fixture);
    let versus = &json["comparisons"][0]["versus"];
    let names: Vec<_> =
        versus["targets"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["direct", "a", "b"]);
    let file = fs::read(folder.join("comparisons/128-128/pairs.bin")).unwrap();
    let blocks = read_pairs(&mut file.as_slice()).unwrap().blocks;
    assert!(!blocks.is_empty());
    for block in &blocks {
        let took = |target: usize| block.turns[target].and_then(|turn| turn.response);
        let late = took(2).is_none_or(|time| time.as_secs_f64() >= 0.03);
        assert!(late, "{block:?}");
    }
    // Every request of a block came through to the mock.
    let log = fixture.mock.take_log();
    let turns = blocks.len() * names.len();
    assert!(log.len() >= turns, "{} of {turns}", log.len());
}

#[test]
fn child_processes_end_when_the_suite_is_killed() {
    let fixture = Fixture::with(FAST);
    let mut child = command(fixture.folder.path(), &["suite", "quick", "-d", "20s", "-q"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert!(wait_until(|| children(&fixture) > 0));
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGKILL).unwrap();
    child.wait().unwrap();
    assert!(wait_until(|| children(&fixture) == 0));
}

/// The number of gateways and providers whose working directory is the folder of this test.
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
fn wrong_usage_and_a_dead_target_are_errors_before_any_load() {
    let fixture = Fixture::with(FAST);
    for (args, code, part) in [
        (&["--target", "nonsense"][..], 2, "has no scheme"),
        (&["--target", "http://127.0.0.1:1"], 1, "nothing listens on that address"),
        (&["--size-for", "0"], 2, "--size-for"),
        (&["--key", "x"], 2, "--target"),
        (&["--direct", "http://127.0.0.1:1"], 2, "--target"),
        (&["--http2"], 2, "--http2 requires --target URL"),
        (&["--just-started"], 2, "`suite quick` does not support --just-started"),
        (&["--warmup", "soon"], 2, "--warmup"),
        (&["--target", "http://127.0.0.1:1,protocol=http"], 2, "leave `protocol=` out"),
        (&["--target", "a=http://127.0.0.1:1,key=NO_SUCH_KEY"], 2, "NO_SUCH_KEY is not set"),
        (
            &["--target", "a=http://127.0.0.1:1", "--target", "b=http://127.0.0.1:2"],
            2,
            "`suite quick` measures one target, not 2",
        ),
        (&["--concurrency", "0"], 2, "concurrency"),
    ] {
        let output =
            fixture.plimsoll(&[&["suite", "quick", "--short"], args].concat()).expect(code);
        let output = format!("{}{}", output.stdout, output.stderr);
        assert!(output.contains(part), "{args:?}: {output}");
    }
    let mut baseline = command(fixture.folder.path(), &["suite", "baseline", "--short"]);
    baseline.env("AZ_LOAD_CONCURRENCY", "many");
    let output = ProcessOutput::from(baseline.output().unwrap()).expect(2);
    assert!(output.stderr.contains("AZ_LOAD_CONCURRENCY"), "{}", output.stderr);
    // A target that a variable names is one as any other: it may have a key.
    let args = ["suite", "policy", "--short", "--key", "x"];
    let mut policy = command(fixture.folder.path(), &args);
    policy.env("AXONFLOW_ENDPOINT", "http://127.0.0.1:1");
    let output = ProcessOutput::from(policy.output().unwrap()).expect(1);
    assert!(output.stderr.contains("nothing listens on that address"), "{}", output.stderr);
}

/// Each row that the writer says it has written is counted by the server itself.
#[test]
#[ignore = "needs clickhouse-server"]
fn the_log_writer_is_measured_to_a_real_clickhouse() {
    let fixture = Fixture::with(FAST);
    let args = ["suite", "layers", "--only", "log", "--short", "--full", "--passes", "1"];
    let output =
        fixture.plimsoll(&[&args[..], &["--duration", "300ms", "--allow-invalid"]].concat());
    assert!(!output.stdout.contains("to ClickHouse: `clickhouse-server`"), "{}", output.stdout);
    let row = output.stdout.lines().find(|line| line.trim_start().starts_with("ClickHouse "));
    let row: Vec<_> =
        row.unwrap_or_else(|| panic!("{}", output.stdout)).split_whitespace().collect();
    // Rows per second, written, there, dropped.
    let number = |text: &str| text.replace(',', "").parse::<f64>().unwrap();
    let [rate, written, there, dropped] = [1, 2, 3, 4].map(|column| number(row[column]));
    assert!(rate > 1_000.0 && written > 1_000.0, "{row:?}");
    assert_eq!((there, dropped), (written, 0.0), "{row:?}");
}
