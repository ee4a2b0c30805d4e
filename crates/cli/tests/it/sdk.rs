//! Servers made with the official SDKs, under load of the program: directly, and behind the
//! gateway. Each server's own log is the truth. Needs Python, Node.js and package registries.

mod agents;
mod real_programs;
mod rules;
mod tools;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use plimsoll_metrics::{Group, RunSummary};

use crate::gateway::Gateway;
use crate::support::{FAST, Fixture, wait_until};

/// Log lines of a server, with the number of times.
type Counts = BTreeMap<String, u64>;

/// A server of `scripts/sdk`, which ends with the test.
struct SdkServer {
    process: Child,
    port: u16,
    log: PathBuf,
}

impl SdkServer {
    /// Starts a script with its SDK; the last argument that it gets is the path of its log.
    fn start(fixture: &Fixture, server: (&str, &str), args: &[&str]) -> Self {
        let (sdk, script) = server;
        let log = fixture.folder.path().join("server.log");
        fs::write(&log, "").unwrap();
        let run = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/sdk/run");
        let mut process = Command::new(run)
            .env("PLIMSOLL_SDKS", concat!(env!("CARGO_TARGET_TMPDIR"), "/sdks"))
            .args([sdk, script])
            .args(args)
            .arg(&log)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, port: line.trim().parse().unwrap(), log }
    }

    /// Ends the server.
    fn counts(mut self) -> Counts {
        self.end();
        let mut counts = Counts::new();
        for line in fs::read_to_string(&self.log).unwrap().lines() {
            *counts.entry(line.to_owned()).or_default() += 1;
        }
        counts
    }

    /// A server ends with its standard input.
    fn end(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

impl Drop for SdkServer {
    fn drop(&mut self) {
        self.end();
    }
}

/// A folder for a run.
fn fixture() -> Fixture {
    Fixture::with(FAST)
}

/// Runs this text of a profile against a URL.
fn load_with(fixture: &Fixture, profile: &str, url: &str) -> RunSummary {
    fs::write(fixture.folder.path().join("p.yaml"), profile).unwrap();
    load(fixture, &["p.yaml"], url)
}

/// Runs a profile against a URL, without a probe: every request is in the results.
fn load(fixture: &Fixture, profile: &[&str], url: &str) -> RunSummary {
    let fixed = ["--target", url, "--quiet", "--allow-invalid", "--no-probe"];
    fixture.plimsoll(&[&["run"], profile, &fixed].concat()).expect(0);
    let summary = fixture.summary();
    let accounting = summary.results.accounting();
    assert!(accounting.balanced() && accounting.completed > 0, "{accounting}");
    summary
}

/// A gateway with this configuration, once its answer to a path shows that it is ready.
fn gateway(fixture: &Fixture, config: &str, ready: (&str, &str)) -> Gateway {
    fs::write(fixture.folder.path().join("g.yaml"), config).unwrap();
    let gateway = Gateway::start(fixture, &["--config", "g.yaml", "--listen", "127.0.0.1:0"]);
    let mut shown = String::new();
    let is_ready = wait_until(|| {
        shown = gateway.get(ready.0);
        shown.contains(ready.1)
    });
    assert!(is_ready, "{shown}");
    gateway
}

/// The results of an operation; `None` if it did not occur.
fn group<'s>(summary: &'s RunSummary, operation: &str) -> Option<&'s Group> {
    let groups = &summary.results.by_operation;
    groups.iter().find(|group| group.operation.as_deref() == Some(operation))
}

/// Requests of an operation that reached the target.
fn sent(summary: &RunSummary, operation: &str) -> u64 {
    group(summary, operation)
        .map_or(0, |group| group.counters.scheduled - group.counters.never_sent)
}

/// How often a server wrote lines that begin like this.
fn total(counts: &Counts, prefix: &str) -> u64 {
    counts.iter().filter(|(line, _)| line.starts_with(prefix)).map(|(_, count)| count).sum()
}

fn count(counts: &Counts, line: &str) -> u64 {
    counts.get(line).copied().unwrap_or_default()
}

/// Checks that the server got each request once: `requests` has the words of its log by operation.
fn expect_each_request(
    case: &str,
    summary: &RunSummary,
    counts: &Counts,
    requests: &[(&str, &[&str])],
) {
    for (operation, lines) in requests {
        let got: u64 = lines.iter().map(|line| total(counts, &format!("request {line}"))).sum();
        assert_eq!(sent(summary, operation), got, "{case}: {operation}: {counts:?}");
    }
    let known: u64 = requests.iter().map(|(operation, _)| sent(summary, operation)).sum();
    let counters = &summary.results.total.counters;
    assert_eq!(known, counters.scheduled - counters.never_sent, "{case}: other operations");
    assert_eq!(total(counts, "request "), known, "{case}: other requests: {counts:?}");
}

/// Errors of JSON-RPC by code, whatever the status of their response.
fn expect_errors(case: &str, summary: &RunSummary, expected: &[(i32, u64)]) {
    let expected: BTreeMap<i32, u64> =
        expected.iter().copied().filter(|(_, count)| *count > 0).collect();
    let total = &summary.results.total;
    assert_eq!(total.rpc_errors, expected, "{case}");
    let counters = &total.counters;
    let errors: u64 = expected.values().sum();
    assert_eq!(counters.failed + counters.rejected, errors, "{case}: {:?}", total.errors);
    let good = counters.scheduled - counters.never_sent - errors;
    assert_eq!(counters.completed, good, "{case}: {counters:?}");
}
