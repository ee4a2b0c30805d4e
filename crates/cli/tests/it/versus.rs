//! `plimsoll versus`: from flags to its table, its files and its exit code.

use std::fs;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_run_files::pairs::read_pairs;
use plimsoll_run_files::parse_row;
use serde_json::Value;

use crate::gateway::Gateway;
use crate::support::{Fixture, ProcessOutput, command, wait_until};

/// A provider of some milliseconds, whose times follow from the prompt.
const PROVIDER: &str =
    "{draw: prompt, log: memory, other_models: {ttft: {uniform: {min: 2ms, max: 6ms}}}}";

pub(crate) fn gateway(fixture: &Fixture, more: &[&str]) -> Gateway {
    let upstream = fixture.mock.addr().to_string();
    let args = ["--preset", "proxy", "--listen", "127.0.0.1:0", "--upstream", &upstream];
    Gateway::start(fixture, &[&args, more].concat())
}

#[test]
fn gateways_on_unlike_substrates_are_told_apart_before_and_after_the_load() {
    let fixture = Fixture::with(PROVIDER);
    let (wide, narrow) = (gateway(&fixture, &[]), gateway(&fixture, &[]));
    narrow.confine();
    let targets =
        [format!("wide=http://{}", wide.address), format!("narrow=http://{}", narrow.address)];
    let args = ["--target", &targets[0], "--target", &targets[1], "--rate", "20", "--for", "4s"];
    let output = versus(&fixture, &args);
    let cpus = std::thread::available_parallelism().unwrap();
    let warned = "runs as a process of this host, on 1 CPU, wide: as a process of this host, on";
    let warned = format!("narrow: {warned} {cpus} CPU");
    assert_eq!(output.stderr.contains(&warned), cpus.get() > 1, "{}", output.stderr);
    let setup = json(&fixture)["targets"][2]["setup"].to_string();
    assert_eq!(setup.contains("on 1 CPU"), cpus.get() > 1, "{setup}");
}

/// Compares with the mock itself; tests share the machine, so their runs may be invalid.
fn versus(fixture: &Fixture, args: &[&str]) -> ProcessOutput {
    let direct = fixture.target();
    let fixed = ["versus", "--direct", &direct, "--quiet", "--allow-invalid"];
    fixture.plimsoll(&[&fixed[..], args].concat())
}

fn json(fixture: &Fixture) -> Value {
    let text = fs::read(fixture.only_run().join("versus.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// By the mock's log, also of a profile that names a model of its own.
#[test]
fn each_target_is_asked_for_its_own_model() {
    for profile in [&[][..], &["realistic"]] {
        let fixture = Fixture::with(PROVIDER);
        let gateway = gateway(&fixture, &[]);
        let url = format!("http://{}", gateway.address);
        let target = format!("a={url},model=of-a");
        let shape = ["--target", &target, "--stages", "@20:2s", "--model", "of-the-others"];
        versus(&fixture, &[profile, &shape].concat());
        let log = fixture.mock.take_log();
        let asked = |model: &str| {
            log.iter().filter(|record| record.model.as_deref() == Some(model)).count()
        };
        assert!(asked("of-a") >= 40 && asked("of-the-others") >= 40, "{profile:?}");
        assert_eq!(asked("of-a") + asked("of-the-others"), log.len(), "{profile:?}");
    }
}

#[test]
fn a_gateway_is_compared_with_its_upstream_without_a_profile() {
    let fixture = Fixture::with(PROVIDER);
    let gateway = gateway(&fixture, &[]);
    let target = format!(
        "a=http://{},watch=:{}",
        gateway.address,
        gateway.address.rsplit(':').next().unwrap()
    );
    let output = versus(&fixture, &["--target", &target, "--rate", "20", "--for", "12s"]);
    assert!(matches!(output.code, Some(0 | 3 | 4)), "{}{}", output.stdout, output.stderr);
    for part in ["versus: ", "at up to 20.0/s each", "direct ", "a "] {
        assert!(output.stdout.contains(part), "{part}: {}", output.stdout);
    }
    let verdict = output.expect_screen();
    assert!(
        verdict.ends_with("(measurement: valid)") || verdict.starts_with("INVALID"),
        "{verdict}"
    );
    let versus = json(&fixture);
    assert_eq!(versus["schema"], "plimsoll.versus/2");
    assert!(versus["targets"][0]["throughput"].is_null(), "a rate was planned");
    let names: Vec<_> =
        versus["targets"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["direct", "a"]);
    // Ten rounds of windows take a third of the time; a block that would reach into one is not
    // planned.
    let run = fixture.only_run();
    let file = fs::read(run.join("pairs.bin")).unwrap();
    let pairs = read_pairs(&mut file.as_slice()).unwrap();
    let beside = pairs.blocks.iter().filter(|block| block.window.is_none()).count();
    assert!((140..=165).contains(&beside), "{beside} blocks beside each other");
    assert!(pairs.blocks.len() > beside, "some of each target alone");
    assert_eq!(pairs.header.targets, names);
    // Rows have the pairs, too, and the mock saw every request of them once.
    let rows = fs::read_to_string(run.join("results.jsonl")).unwrap();
    let rows: Vec<_> = rows.lines().map(|line| parse_row(line.as_bytes()).unwrap()).collect();
    assert!(rows.iter().all(|row| row.pair.is_some() && row.position < 2));
    let of_first = rows.iter().filter(|row| row.pair == Some(0)).count();
    assert_eq!(of_first, 2);
    let log = fixture.mock.take_log();
    assert_eq!(log.len(), rows.len() + 2, "and two of the probe");
    for row in rows.iter().filter(|row| row.target != "a") {
        let id = Some(row.request_id.as_str());
        assert_eq!(log.iter().filter(|record| record.request_id.as_deref() == id).count(), 1);
    }
    for file in [
        "report.html",
        "report.txt",
        "versus.csv",
        "metrics.prom",
        "summary.json",
        "plan.json",
        "timeline.json",
        "histograms.hlog",
    ] {
        assert!(run.join(file).exists(), "{file}");
    }
    let report = fs::read_to_string(run.join("report.txt")).unwrap();
    assert!(report.starts_with("versus: ") && report.contains("Accounting"), "{report}");
    // An invalid comparison, as on a busy host, exports no results.
    let figures = fs::read_to_string(run.join("metrics.prom")).unwrap();
    let valid = figures.contains("plimsoll_versus_valid{name=\"versus\"} 1");
    assert_eq!(figures.contains("plimsoll_added"), valid, "{figures}");
}

/// The difference far exceeds any noise: the sentence must hold, and the margin and one of the
/// bounds are broken.
#[test]
fn a_slow_target_breaks_a_margin_and_a_bound_on_what_is_added() {
    let fixture = Fixture::with(PROVIDER);
    let (fast, slow) = (gateway(&fixture, &[]), gateway(&fixture, &["--set", "faults.delay=80ms"]));
    let targets = [format!("a=http://{}", fast.address), format!("b=http://{}", slow.address)];
    let load = ["--rate", "20", "--for", "12s", "--set", "versus.alone=0s"];
    let bounds = "thresholds={added.ttft: ['p(50)<50ms']}";
    let args = ["--target", &targets[0], "--target", &targets[1], "--margin", "50%", "--full"];
    let output = versus(&fixture, &[&args[..], &load, &["--set", bounds]].concat()).expect(1);
    // On a busy host the run may be invalid, and then reports no difference.
    let said = output.stdout.contains("b: +");
    let versus = json(&fixture);
    assert!(said != versus["invalid"].is_array(), "{}", output.stdout);
    let judged = versus["thresholds"].to_string();
    // The generator's overhead does not reach the bounds, or the run is invalid.
    assert!(judged.contains("pass") || !said, "{judged}");
    assert!(judged.contains("fail"), "{judged}");
    let worse = versus["worse_than_margin"].to_string();
    assert!(worse.contains('b'), "{worse}: {}", output.stdout);
}

#[test]
fn rounds_are_repeated_and_shown_after_each() {
    let fixture = Fixture::with(PROVIDER);
    let gateway = gateway(&fixture, &[]);
    let target = format!("a=http://{}", gateway.address);
    let args = ["--target", &target, "--rate", "20", "--for", "2s", "--rounds", "2", "--no-jsonl"];
    let output = versus(&fixture, &args);
    assert_eq!(output.stdout.matches("files: ").count(), 2, "{}", output.stdout);
    let runs = fixture.runs();
    assert_eq!(runs.len(), 2);
    let rounds = |run: &std::path::Path| {
        let text = fs::read(run.join("versus.json")).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()["rounds"].as_u64()
    };
    assert_eq!((rounds(&runs[0]), rounds(&runs[1])), (Some(1), Some(2)));
    assert!(!runs[0].join("results.jsonl").exists());
}

#[test]
fn virtual_users_of_all_targets_are_compared_at_the_same_time() {
    let fixture = Fixture::with(PROVIDER);
    let port = fixture.mock.addr().port();
    let target = format!("a=http://localhost:{port}/health");
    let direct = format!("http://127.0.0.1:{port}/health");
    let args = ["versus", "--direct", &direct, "--target", &target, "--protocol", "http"];
    let load = ["--stages", "2:10s", "--quiet", "--allow-invalid"];
    let output = fixture.plimsoll(&[&args[..], &load].concat());
    assert!(matches!(output.code, Some(0 | 3 | 4)), "{}{}", output.stdout, output.stderr);
    let versus = json(&fixture);
    assert_eq!(versus["schedule"], "together");
    let added = versus["differences"].as_array().unwrap();
    let median = added.iter().find(|found| found["quantile"] == "p50").unwrap();
    assert!(median["value_ns"].is_number(), "{median}");
    for target in versus["targets"].as_array().unwrap() {
        let (rate, turns) = (&target["throughput"], &target["turns"]);
        let per_s = turns.as_f64().unwrap() / 10.0;
        assert!((rate.as_f64().unwrap() / per_s - 1.0).abs() < 0.05, "{rate} for {per_s}");
    }
}

#[test]
fn ctrl_c_still_compares_what_there_is() {
    let fixture = Fixture::with(PROVIDER);
    let gateway = gateway(&fixture, &[]);
    let (direct, target) = (fixture.target(), format!("a=http://{}", gateway.address));
    let args = ["versus", "--direct", &direct, "--target", &target, "--rate", "50", "-q"];
    let child = command(fixture.folder.path(), &args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    fixture.wait_for_requests(900);
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let output: ProcessOutput = child.wait_with_output().unwrap().into();
    let output = output.expect(130);
    assert!(output.stdout.contains("versus: "), "{}", output.stdout);
    assert!(json(&fixture)["blocks"]["recorded"].as_u64().unwrap() > 20);
    assert!(wait_until(|| fixture.only_run().join("report.txt").exists()));
}

#[test]
fn a_gateway_that_dies_under_the_load_is_named_with_the_time_and_its_words() {
    let fixture = Fixture::with(PROVIDER);
    let mut gateway = gateway(&fixture, &[]);
    let (direct, target) = (fixture.target(), format!("a=http://{}", gateway.address));
    let load = ["--rate", "20", "--for", "8s", "--set", "versus.alone=0s", "--allow-invalid", "-q"];
    let args = ["versus", "--direct", &direct, "--target", &target];
    let child = command(fixture.folder.path(), &[&args[..], &load].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Those of both targets come to the mock: three seconds of warm-up, and two more.
    fixture.wait_for_requests(200);
    gateway.crash();
    let output: ProcessOutput = child.wait_with_output().unwrap().into();
    let output = output.expect(1);
    let verdict = output.expect_screen();
    assert!(verdict.starts_with("FAIL: a: ") && verdict.contains(" of 160 "), "{verdict}");
    let versus = json(&fixture);
    let a = &versus["targets"][1];
    let (down, failed) = (&a["outage"], a["failed"].as_u64().unwrap());
    let since = down["since_s"].as_f64().unwrap();
    assert!((3.5..10.9).contains(&since), "{down}");
    assert!(failed >= down["failed_since"].as_u64().unwrap(), "{a}");
    assert!(a["failure"].as_str().unwrap().contains("refused"), "{a}");
    assert!(versus["targets"][0]["outage"].is_null(), "{versus}");
    assert!(!output.stdout.contains("too short"), "{}", output.stdout);
}

#[test]
fn wrong_usage_and_unlike_targets_are_named_before_the_load() {
    let fixture = Fixture::with(PROVIDER);
    let direct = fixture.target();
    let other = direct.replace("127.0.0.1", "localhost");
    let same = format!("a={direct}");
    let (good, model) = (format!("a={other}"), format!("a={other},model=big"));
    for (args, part) in [
        (&["versus"][..], "too few targets"),
        (&["versus", "--direct", &direct], "too few targets"),
        (&["versus", "--direct", &direct, "--target", &same], "the same target as `direct`"),
        (&["versus", "--direct", &direct, "--target", &other], "NAME=URL"),
        (
            &["versus", "--direct", &direct, "--target", "a=http://h,key=NO_SUCH_VARIABLE"],
            "NO_SUCH_VARIABLE is not set",
        ),
        (
            &[
                "versus",
                "--direct",
                &direct,
                "--target",
                &good,
                "--stages",
                "5:9s",
                "--schedule",
                "turns",
            ],
            "make it 10s or longer",
        ),
        (
            &[
                "versus",
                "--direct",
                &direct,
                "--target",
                &good,
                "--set",
                "thresholds={added.ttft: ['p50<1']}",
            ],
            "added.ttft",
        ),
        (&["versus", "--direct", &direct, "--target", "a=https://a.example"], "--model NAME"),
        (
            &["versus", "--direct", &direct, "--target", "a=http://localhost:1,watch=:1"],
            "watch of target a",
        ),
    ] {
        let output = fixture.plimsoll(args).expect(2);
        assert!(output.stderr.contains(part), "{args:?}: {}", output.stderr);
    }
    assert_eq!((fixture.runs().len(), fixture.mock.stats().requests), (0, 0));
    let output = versus(
        &fixture,
        &["--target", &model, "--rate", "20", "--for", "1s", "--set", "versus.alone=0s"],
    );
    assert!(output.stderr.contains("a: model big, direct: mock."), "{}", output.stderr);
    assert!(output.stdout.contains("model big"), "{}", output.stdout);
}
