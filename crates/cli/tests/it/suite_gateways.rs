//! `plimsoll suite gateways`, with Plimsoll's own gateway under several names.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{FAST, Fixture, command, wait_until};

/// Two equal gateways, and three that do not start: each must have its own reason.
const ENTRIES: &str = "
gateways:
  - name: one
    start: '{plimsoll} gateway --config {run}/gateway.yaml'
    version: 'echo 1.2.3'
    size: 'echo 5000000'
    files: [gateway.yaml]
  - name: other
    start: '{plimsoll} gateway --config {run}/gateway.yaml'
    size: 'echo 5000000'
    files: [gateway.yaml]
  - name: absent
    start: no-such-program --port {port}
    install: apt install no-such-program
  - name: dies
    start: 'echo bad setting; exit 3'
  - name: elsewhere
    start: '{plimsoll} gateway --preset proxy --upstream {upstream} --listen 127.0.0.1:0'
    ready_seconds: 2
rates: [40]
seconds: 10
rounds: 2
cold_starts: 3
capacity_seconds: 0
fidelity: false
seed: 7
";

const CONFIGURATION: &str = "
listen: 127.0.0.1:{port}
upstreams: {provider: {addresses: ['{upstream}']}}
routes: [{name: all, path: /*, upstream: provider}]
";

fn written(fixture: &Fixture, text: &str) -> String {
    let folder = fixture.folder.path();
    fs::write(folder.join("gateway.yaml"), CONFIGURATION).unwrap();
    let path = folder.join("gateways.yaml");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn result(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("suite.json")).unwrap()).unwrap()
}

fn row<'j>(json: &'j Value, name: &str) -> &'j Value {
    let rows = json["gateways"]["rows"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap()
}

/// Processes whose command line has this text: the suite must leave none behind.
fn processes_with(text: &str) -> Vec<PathBuf> {
    let all = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let own = std::process::id().to_string();
    all.filter(|path| !path.ends_with(&own))
        .filter(|path| {
            let line = fs::read(path.join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(text)
        })
        .collect()
}

#[test]
fn gateways_are_measured_and_the_others_have_their_reasons() {
    let fixture = Fixture::with(FAST);
    let path = written(&fixture, ENTRIES);
    let args = ["suite", "gateways", &path, "--full", "--allow-invalid"];
    let output = fixture.plimsoll(&args).expect(4);
    let folder = fixture.only_run();
    let json = result(&folder);
    let errors: Vec<_> = json["gateways"]["gateways"].as_array().unwrap().clone();
    let error = |name: &str| {
        let found = errors.iter().find(|gateway| gateway["name"] == name).unwrap();
        found["error"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!((error("one"), error("other")), (String::new(), String::new()));
    let absent = error("absent");
    assert!(absent.contains("no-such-program: not found"), "{absent}");
    assert!(absent.contains("(to install it: apt install no-such-program)"), "{absent}");
    assert!(error("dies").contains("bad setting / exit status: 3"), "{}", error("dies"));
    let elsewhere = error("elsewhere");
    assert!(elsewhere.contains("it listens on port "), "{elsewhere}");
    // By sha256sum.
    let digest = "64bd75c43246b1b420276525a3a037887afd55451bb5d4d29266de575abc0185";
    for text in ["absent: does not start: ", "1.2.3", digest] {
        assert!(output.stdout.contains(text), "{text} is not in:\n{}", output.stdout);
    }
    for (name, cells) in [("size", 2), ("latency p50", 2), ("cold start", 2), ("memory idle", 2)] {
        let known = row(&json, name)["cells"].as_array().unwrap();
        let known = known.iter().filter(|cell| cell["value"].is_f64()).count();
        assert_eq!(known, cells, "{name}: {}", row(&json, name));
    }
    assert_eq!(row(&json, "size")["cells"][0]["value"], 5_000_000.0);
    assert_eq!(processes_with(&folder.display().to_string()), Vec::<PathBuf>::new());
    // The stored result is shown again, and nothing is worse than itself.
    let again = fixture.plimsoll(&["report", folder.to_str().unwrap(), "--full"]).expect(0);
    assert!(again.stdout.contains("absent: does not start: "), "{}", again.stdout);
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("Ranks by interval") && page.contains("What this does not show"));
}

#[test]
fn an_interrupt_leaves_a_table_and_no_process() {
    let fixture = Fixture::with(FAST);
    let path = written(&fixture, &ENTRIES.replace("seconds: 10", "seconds: 60"));
    let args = ["suite", "gateways", &path, "one"];
    let child = command(fixture.folder.path(), &args).stdout(Stdio::piped()).spawn().unwrap();
    let name = format!("{}/runs", fixture.folder.path().display());
    assert!(wait_until(|| !processes_with(&format!("{name}/")).is_empty()));
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&output.stdout).contains("INTERRUPTED"));
    assert!(processes_with(&format!("{name}/")).is_empty());
}

#[test]
fn a_wrong_file_is_reported_with_its_name_and_the_reason() {
    let fixture = Fixture::with(FAST);
    for (from, to, why) in [
        ("rounds: 2", "rounds: 1", "rounds: at least 2"),
        ("rounds: 2", "round: 2", "round"),
        ("name: other", "name: one", "two gateways are named `one`"),
        ("start: no-such", "run: no-such", "gateway absent: unknown field `run`"),
        ("install: apt", "dialects: [opnai]\n    install: apt", "the dialect of absent is `opnai`"),
        ("seed: 7", "objective: fast", "objective"),
        ("seed: 7", "upstream: http://127.0.0.1", "upstream: a URL with a port"),
        ("seed: 7", "upstream: http://127.0.0.1:9/v1", "upstream: a URL with a port"),
    ] {
        let path = written(&fixture, &ENTRIES.replace(from, to));
        let output = fixture.plimsoll(&["suite", "gateways", &path]).expect(2);
        assert!(output.stderr.contains(why), "{to}: {}", output.stderr);
        assert!(output.stderr.contains("gateways.yaml"), "{}", output.stderr);
    }
    let path = written(&fixture, ENTRIES);
    let short = ["suite", "gateways", &path, "--short", "--against", "published.json"];
    let output = fixture.plimsoll(&short).expect(2);
    assert!(output.stderr.contains("cannot be used with"), "{}", output.stderr);
    let output = fixture.plimsoll(&["suite", "gateways", &path, "nginx"]).expect(2);
    assert!(output.stderr.contains("no gateway `nginx`: one, other"), "{}", output.stderr);
}
