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

#[test]
fn a_load_is_divided_by_what_a_host_was_measured_to_carry() {
    let state = tempfile::tempdir().unwrap();
    record(
        state.path(),
        &json!({
            "cpu_us_per_request": 20.0, "cpu_us_per_chat": 60.0, "cpu_us_per_event": 4.0,
            "bytes_per_stream": 20_000.0, "merge_ms_per_shard": 1.5,
        }),
    );
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
    let zero = fleet(state.path(), &["--rate", "5", "--duration", "0"]).expect(2).stderr;
    assert!(zero.contains("--duration is zero"), "{zero}");
}
