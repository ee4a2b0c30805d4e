//! `plimsoll versus`: exit codes, HTTP/2, and invalid comparisons without conclusions.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;

use plimsoll_mock::{LogRecord, Mock, MockConfig};
use serde_json::Value;

use crate::gateway::Gateway;
use crate::support::{Fixture, ProcessOutput, attempt, command};
use crate::versus::gateway;

/// A provider that takes so many milliseconds to its first token.
fn provider(ttft_ms: u32) -> String {
    format!("{{draw: prompt, log: memory, other_models: {{ttft: {ttft_ms}ms}}}}")
}

fn mock(ttft_ms: u32) -> Mock {
    let config = MockConfig::from_yaml(&provider(ttft_ms)).unwrap();
    Mock::spawn(&config, "127.0.0.1:0".parse().unwrap()).unwrap()
}

const CHATS: &str = "\
name: p
model: m
stream: true
workers: 1
content: {mode: sized, approx_input_tokens: 64}
max_tokens: 4
";

/// Compares by a profile with these lines.
fn versus(fixture: &Fixture, profile: &str) -> ProcessOutput {
    fixture.plimsoll(&["versus", &profile_file(fixture, profile), "--quiet", "--full"])
}

fn profile_file(fixture: &Fixture, profile: &str) -> String {
    let path = fixture.folder.path().join("p.yaml");
    fs::write(&path, format!("{CHATS}{profile}")).unwrap();
    path.into_os_string().into_string().unwrap()
}

fn json(fixture: &Fixture) -> Value {
    let text = fs::read(fixture.only_run().join("versus.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn file(fixture: &Fixture, name: &str) -> String {
    fs::read_to_string(fixture.only_run().join(name)).unwrap()
}

/// The control is another server, 50 ms slower than the reference: whoever measures them as one has
/// a wrong measurement, and `a`, which is slower as plainly, must not be called that. The users of
/// the reference are six times as fast: intervals need pairs of all of the time nevertheless.
#[test]
fn of_an_invalid_comparison_nothing_is_said() {
    attempt(5, invalid_comparison);
}

/// Returns an error if the host disturbed the comparison so much that it is invalid for that
/// reason, or that the result of the control is unclear.
fn invalid_comparison() -> Result<(), String> {
    let fixture = Fixture::with(&provider(10));
    let (slow, other) = (mock(60), mock(40));
    let profile = format!(
        "stages: 6:10s\ntargets:\n  \
         - {{name: d, url: 'http://{}', role: direct}}\n  \
         - {{name: c, url: 'http://{}', role: control}}\n  \
         - {{name: a, url: 'http://{}'}}\n",
        fixture.mock.addr(),
        slow.addr(),
        other.addr()
    );
    let output = versus(&fixture, &profile);
    let shown = output.stdout.clone();
    if output.code != Some(3)
        || !shown.contains("INVALID: c and d are the same target, but differ by ")
    {
        return Err(shown);
    }
    assert!(!shown.contains("Statistically significant"), "{shown}");
    let figures = file(&fixture, "metrics.prom");
    assert!(figures.contains("plimsoll_versus_valid{name=\"p\"} 0"), "{figures}");
    for family in ["plimsoll_added_seconds", "plimsoll_shift_seconds"] {
        assert!(!figures.contains(family), "{family}: {figures}");
    }
    let result = json(&fixture);
    assert_eq!(result["claims"].as_array().unwrap().len(), 0);
    assert_eq!(result["control"]["differs"], true);
    // The plant was there: the two servers' own logs are 50 ms apart.
    let median = |log: Vec<LogRecord>| {
        let mut times: Vec<u64> =
            log.iter().filter_map(|r| Some(r.chunks.last()?.written - r.arrived)).collect();
        times.sort_unstable();
        times[times.len() / 2]
    };
    let apart = median(slow.take_log()).checked_sub(median(fixture.mock.take_log()));
    match apart {
        Some(20_000_000..100_000_000) => Ok(()),
        _ => Err(format!("the servers are {apart:?} ns apart: {shown}")),
    }
}

/// Two gateways that speak HTTP/2 without TLS: every target has a connection of its own, on which
/// its requests are under way together.
#[test]
fn over_http2_pairs_are_whole_and_streams_share_a_connection() {
    let fixture = Fixture::with(&provider(200));
    let gateways = ["direct", "a"].map(|_| gateway(&fixture, &[]));
    let profile = format!(
        "stages: '@40:3s'\nhttp_version: http2\nversus: {{alone: 0s}}\ntargets:\n  \
         - {{name: d, url: 'http://{}', role: direct}}\n  - {{name: a, url: 'http://{}'}}\n",
        gateways[0].address, gateways[1].address
    );
    let path = profile_file(&fixture, &profile);
    let args = ["versus", &path, "--quiet", "--allow-invalid"];
    let child = command(fixture.folder.path(), &args).stdout(Stdio::piped()).spawn().unwrap();
    // Half of the load.
    fixture.wait_for_requests(120);
    let open = gateways.each_ref().map(active_connections);
    let output: ProcessOutput = child.wait_with_output().unwrap().into();
    assert!(matches!(output.code, Some(0 | 3)), "{}", output.stdout);
    // Connections of the load and, if still open, of the probe; and the connection that asks.
    assert!(open[0] <= 5 && open[1] <= 3, "{open:?}");
    let result = json(&fixture);
    let blocks = &result["blocks"];
    assert_eq!(blocks["complete"], blocks["recorded"], "{}", output.stdout);
    let complete = usize::try_from(blocks["complete"].as_u64().unwrap()).unwrap();
    assert!((110..=120).contains(&complete), "{complete}");
    let log = fixture.mock.take_log();
    assert_eq!(log.len(), 2 * (complete + 1), "one request of the probe for each target");
    let ids: BTreeSet<_> = log.iter().map(|record| record.request_id.clone()).collect();
    assert_eq!(ids.len(), log.len(), "every request once");
    assert!(most_at_once(&log) >= 6, "{} at once", most_at_once(&log));
}

/// Open connections of clients, by the gateway's own count.
fn active_connections(gateway: &Gateway) -> u32 {
    let text = gateway.get("/metrics");
    let line =
        text.lines().find(|line| !line.starts_with('#') && line.contains("active_connections"));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

/// The most requests that had arrived and were not answered to the end.
fn most_at_once(log: &[LogRecord]) -> usize {
    let open_at = |at: u64| {
        log.iter()
            .filter(|record: &&LogRecord| {
                let last = record.chunks.last().map_or(record.arrived, |chunk| chunk.written);
                record.arrived <= at && at < last
            })
            .count()
    };
    log.iter().map(|record| open_at(record.arrived)).max().unwrap_or_default()
}

/// Three seconds are too few to decide anything.
#[test]
fn a_run_that_may_end_when_it_is_decided_says_that_it_was_not() {
    let fixture = Fixture::with(&provider(2));
    let (direct, other) = (fixture.target(), mock(2));
    let target = format!("a=http://{}", other.addr());
    let args = ["versus", "--direct", &direct, "--target", &target, "-q", "--allow-invalid"];
    let more = ["--rate", "20", "--for", "3s", "--decide", "--set", "versus.alone=0s", "--full"];
    let output = fixture.plimsoll(&[&args[..], &more].concat());
    assert!(matches!(output.code, Some(0 | 3)), "{}{}", output.stdout, output.stderr);
    assert!(
        output.stdout.contains("Not decided within 3s. Intervals are always-valid"),
        "{}",
        output.stdout
    );
    assert!(output.stdout.contains("an always-valid interval needs 20"), "{}", output.stdout);
    assert!(json(&fixture)["stopping"]["decided_at_ns"].is_null());
    assert!(file(&fixture, "metrics.prom").contains("plimsoll_versus_always_valid"));
    let refused = fixture.plimsoll(&[&args[..], &more, &["--rounds", "2"]].concat()).expect(2);
    assert!(refused.stderr.contains("versus.decide") && refused.stderr.contains("`rounds`"));
    let refused = fixture.plimsoll(&[&args[..], &more, &["--shard", "0/2"]].concat()).expect(2);
    assert!(refused.stderr.contains("--shard") && refused.stderr.contains("leave `decide` out"));
    assert_eq!(fixture.runs().len(), 1);
}

/// 20 ms are plain after the least time of 20 s; the run was to take two minutes.
#[test]
#[ignore = "takes 25 seconds"]
fn a_run_ends_when_it_is_decided() {
    let fixture = Fixture::with(&provider(2));
    let (direct, other) = (fixture.target(), mock(22));
    let target = format!("a=http://{}", other.addr());
    let args = ["versus", "--direct", &direct, "--target", &target, "-q", "--allow-invalid"];
    let more = ["--rate", "20", "--for", "2m", "--decide", "--set", "versus.alone=0s", "--full"];
    let output = fixture.plimsoll(&[&args[..], &more].concat()).expect(0);
    assert!(output.stdout.contains("Ended early: decided after 20s of 120s"), "{}", output.stdout);
    let result = json(&fixture);
    assert_eq!(result["blocks"]["recorded"], 400);
    let summary: Value = serde_json::from_str(&file(&fixture, "summary.json")).unwrap();
    assert_eq!(summary["metadata"]["run"]["ended"], "decided");
    assert!(output.stdout.contains("TTFT of a: +"), "{}", output.stdout);
    assert!(file(&fixture, "versus.csv").contains(",always_valid"));
}
