//! `plimsoll join` of real runs: with the audit rows of our gateway, and with the log of our mock.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::gateway::Gateway;
use crate::support::{Fixture, wait_until};

/// Rows of a log that are requests of the load, and not of a probe or of the test.
fn rows_of(path: &Path, ids: &[String]) -> usize {
    let text = fs::read_to_string(path).unwrap_or_default();
    let rows = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ours = |row: &Value| ids.iter().any(|id| Some(id.as_str()) == row["request_id"].as_str());
    rows.filter(ours).count()
}

#[test]
fn a_run_is_matched_with_the_gateways_rows_and_with_the_mocks_log() {
    let folder = tempfile::tempdir().unwrap();
    let (truth, audit) = (folder.path().join("mock.jsonl"), folder.path().join("audit.jsonl"));
    let fixture = Fixture::with(&format!(
        "{{other_models: {{ttft: 5ms}}, log: {{file: '{}'}}, log_text: true}}",
        truth.display()
    ));
    let config = format!(
        "listen: 127.0.0.1:0\nrequest_id: {{}}\naudit: {{path: '{}'}}\n\
         upstreams: {{p: {{addresses: ['{}']}}}}\n\
         routes:\n  - {{name: chat, path: /v1/chat/completions, upstream: p, llm: true}}\n",
        audit.display(),
        fixture.mock.addr()
    );
    fs::write(fixture.folder.path().join("g.yaml"), config).unwrap();
    let gateway = Gateway::start(&fixture, &["--config", "g.yaml"]);
    let target = format!("http://{}", gateway.address);
    let args = ["run", "minimal", "--target", &target, "--key", "any", "-q", "--stages", "4:400ms"];
    fixture.plimsoll(&[&args[..], &["--allow-invalid"]].concat());
    let run = fixture.only_run();
    let rows = fs::read_to_string(run.join("results.jsonl")).unwrap();
    let ids: Vec<String> = rows
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|row| row["status"] == 200)
        .map(|row| row["request_id"].as_str().unwrap().to_owned())
        .collect();
    assert!(!ids.is_empty());
    let written = || rows_of(&audit, &ids) == ids.len() && rows_of(&truth, &ids) == ids.len();
    assert!(wait_until(written), "{} of {}", rows_of(&audit, &ids), ids.len());
    for (log, place) in [(&audit, "gateway"), (&truth, "upstream")] {
        let args = ["join", run.to_str().unwrap(), "--log", log.to_str().unwrap(), "--json"];
        let output = fixture.plimsoll(&args).expect(0);
        assert!(output.stderr.contains("map: id=request_id"), "{}", output.stderr);
        let join: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(join["log_of"], place);
        assert_eq!(join["books"]["matched"], ids.len(), "{join}");
        for none in ["lost", "twice", "disagreeing"] {
            assert_eq!(join["books"][none], 0, "{none}: {join}");
        }
        let stored = fs::read_to_string(run.join("join.json")).unwrap();
        assert_eq!(stored, output.stdout);
    }
    // A row is taken away: one request is lost.
    let text = fs::read_to_string(&audit).unwrap();
    let kept = text.lines().filter(|line| !line.contains(&ids[0])).map(|line| format!("{line}\n"));
    let less = folder.path().join("less.jsonl");
    fs::write(&less, kept.collect::<String>()).unwrap();
    let join = ["join", run.to_str().unwrap(), "--log", less.to_str().unwrap()];
    let output = fixture.plimsoll(&join).expect(1);
    assert!(output.stdout.contains("1 lost by the log, 0 twice"), "{}", output.stdout);
    assert!(output.stdout.contains(&ids[0]), "{}", output.stdout);
    a_wrong_call_writes_nothing(&fixture, &run, &join);
}

fn a_wrong_call_writes_nothing(fixture: &Fixture, run: &Path, join: &[&str]) {
    fs::remove_file(run.join("join.json")).unwrap();
    for (args, part) in [
        (["--map", "total=latency_us:s"], "seems to be in us"),
        (["--map", "id=nothing"], "no column `nothing`"),
        (["--id-header", "x-own"], "x-own"),
        (["--allow-lost", "2"], ""),
    ] {
        let code = if part.is_empty() { 1 } else { 2 };
        let output = fixture.plimsoll(&[join, &args].concat());
        let output = if code == 2 { output.expect(2) } else { output };
        assert!(output.stderr.contains(part), "{args:?}: {}", output.stderr);
        assert_eq!(run.join("join.json").exists(), part.is_empty(), "{args:?}");
    }
}
