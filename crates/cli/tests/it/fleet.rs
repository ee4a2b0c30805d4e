//! `plimsoll fleet`: hosts from the costs that were measured on this one.

use std::fs;
use std::path::Path;

use plimsoll_calibrate::Host;
use serde_json::{Value, json};

use crate::support::{ProcessOutput, command};

/// A record of this host, as `calibrate` stores it, with these costs.
fn record(state: &Path, costs: &Value) {
    let record = json!({
        "schema": "plimsoll.calibration/2", "tool_version": "0.2.0", "taken_unix_s": 0,
        "host": Host::read(), "separate_cores": true, "debug_build": false, "floor": null,
        "costs": costs, "findings": [],
    });
    fs::create_dir_all(state.join("plimsoll")).unwrap();
    fs::write(state.join("plimsoll/calibration.json"), record.to_string()).unwrap();
}

fn fleet(state: &Path, args: &[&str]) -> ProcessOutput {
    let mut command = command(state, &[&["fleet"], args].concat());
    command.env("XDG_STATE_HOME", state).output().unwrap().into()
}

fn costs(event_us: f64) -> Value {
    json!({
        "cpu_us_per_request": 20.0, "cpu_us_per_chat": 60.0, "cpu_us_per_event": event_us,
        "bytes_per_stream": 20_000.0, "merge_ms_per_shard": 1.5,
    })
}

/// The first number after some text in a file of `deploy/kubernetes`.
fn shipped(file: &str, before: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes").join(file);
    let text = fs::read_to_string(path).unwrap();
    let (_, after) = text.split_once(before).unwrap();
    after.trim_start_matches(['"', ' ']).chars().take_while(char::is_ascii_digit).collect()
}

#[test]
fn the_shipped_load_fits_the_shipped_number_of_pods() {
    let state = tempfile::tempdir().unwrap();
    // A release build measured this cost per event at 100,000 events per second.
    record(state.path(), &costs(8.5));
    let (rate, osl) = (shipped("profile.yaml", ",@"), shipped("profile.yaml", "max_tokens:"));
    let streams = rate.parse::<f64>().unwrap() * osl.parse::<f64>().unwrap() / 50.0;
    let [isl, cores, memory] =
        [("profile.yaml", "approx_input_tokens:"), ("job.yaml", "cpu:"), ("job.yaml", "memory:")]
            .map(|(file, before)| shipped(file, before));
    let args = ["--rate", &rate, "--streams", &streams.to_string(), "--osl", &osl, "--isl", &isl];
    let host = ["--cores", &cores, "--memory", &memory, "--link", "10000", "--ports", "28232"];
    let found = fleet(state.path(), &[&args[..], &host, &["--json"]].concat()).expect(0).stdout;
    let found: Value = serde_json::from_str(&found).unwrap();
    let pods: f64 = shipped("job.yaml", "completions:").parse().unwrap();
    assert_eq!(found["hosts"], json!(pods), "{found}");
}

#[test]
fn a_load_is_divided_by_what_a_host_was_measured_to_carry() {
    let state = tempfile::tempdir().unwrap();
    record(state.path(), &costs(4.0));
    let host = ["--cores", "16", "--memory", "64", "--link", "25000", "--open-files", "20000"];
    let ask = |args: &[&str]| {
        let all = [args, &host[..], &["--targets", "64", "--json"]].concat();
        let found = fleet(state.path(), &all).expect(0).stdout;
        serde_json::from_str::<Value>(&found).unwrap()
    };
    // 1e6 x 20 us are 20 cores; a host gives 70 % of 16.
    let plain = ask(&["--rate", "1e6"]);
    assert_eq!((&plain["first_limit"], &plain["hosts"]), (&json!("CPU"), &json!(2.0)));
    // 1e6 streams of 50 tokens/s: 50e6 x 4 us + 333,333 x 60 us are 220 cores.
    let chats = ask(&["--streams", "1000000", "--price", "3"]);
    assert_eq!((&chats["first_limit"], &chats["hosts"]), (&json!("CPU"), &json!(20.0)));
    assert_eq!(chats["price"], json!(10.0), "20 hosts for ten minutes at 3 an hour");
    let text = fleet(state.path(), &["--streams", "1e6"]).expect(0);
    assert!(text.expect_screen().contains("the first limit is"), "{}", text.stdout);
}

#[test]
fn without_measured_costs_or_with_nonsense_nothing_is_computed() {
    let state = tempfile::tempdir().unwrap();
    let none = fleet(state.path(), &["--rate", "5"]).expect(3).stderr;
    assert!(none.contains("run `plimsoll calibrate`"), "{none}");
    record(state.path(), &Value::Null);
    let old = fleet(state.path(), &["--rate", "5"]).expect(3).stderr;
    assert!(old.contains("has no costs (T29)"), "{old}");
    for args in [&[][..], &["--rate", "0"], &["--rate", "many"], &["--streams", "-1"]] {
        fleet(state.path(), args).expect(2);
    }
    record(state.path(), &costs(4.0));
    // 1,000 streams of 50 tokens/s end 333 times a second, at 150 tokens each.
    let both = fleet(state.path(), &["--rate", "5", "--streams", "1000"]).expect(2).stderr;
    assert!(both.contains("contradict") && both.contains("333.3 requests/s"), "{both}");
    fleet(state.path(), &["--rate", "333", "--streams", "1000"]).expect(0);
    let zero = fleet(state.path(), &["--rate", "5", "--duration", "0"]).expect(2).stderr;
    assert!(zero.contains("--duration is zero"), "{zero}");
}

/// Streams need memory of their own, whatever this host costs.
#[test]
fn calibrate_measures_the_costs_that_fleet_needs() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["calibrate", "--only", "T29", "--json"];
    let output: ProcessOutput = command(folder.path(), &args).output().unwrap().into();
    let record: Value = serde_json::from_str(&output.expect(0).stdout).unwrap();
    let finding = &record["findings"][0];
    assert_eq!((&finding["test"], &finding["result"]["state"]), (&"T29".into(), &"pass".into()));
    let stream = record["costs"]["bytes_per_stream"].as_f64().unwrap();
    assert!((1_000.0..1_000_000.0).contains(&stream), "{stream}");
}
