//! Runs against a gateway that caches: no run may be answered from the entries of an earlier one.

use std::collections::HashSet;
use std::fs;

use plimsoll_metrics::RunSummary;
use plimsoll_profile::builtin_names;

use crate::gateway::Gateway;
use crate::support::{Fixture, summary};

/// A mock behind our gateway with its cache on.
struct CachedMock {
    fixture: Fixture,
    gateway: Gateway,
}

impl CachedMock {
    fn start() -> Self {
        let fixture = Fixture::with("log: memory\nother_models: {output: 2}");
        let config = format!(
            "listen: 127.0.0.1:0\ncache: {{}}\nupstreams: {{m: {{addresses: ['{}']}}}}\n\
             routes: [{{name: chat, path: /v1/chat/completions, upstream: m, llm: true}}, \
             {{name: messages, path: /v1/messages, upstream: m, llm: true}}]\n",
            fixture.mock.addr()
        );
        fs::write(fixture.folder.path().join("g.yaml"), config).unwrap();
        let gateway = Gateway::start(&fixture, &["--config", "g.yaml"]);
        Self { fixture, gateway }
    }

    /// Runs a profile through the gateway; returns its summary and the ids that the mock received.
    fn run(&self, profile: &str, name: &str, args: &[&str]) -> (RunSummary, Vec<String>) {
        let target = format!("http://{}", self.gateway.address);
        let trace = profile.ends_with("-trace");
        let stages = if trace { "w@20:200ms,trace:1s" } else { "w2:100ms,2:200ms" };
        let fixed = ["run", profile, "--target", &target, "--key", "any", "--model", "m"];
        let rest = ["--quiet", "--allow-invalid", "--name", name];
        let stages = if args.contains(&"--stages") { vec![] } else { vec!["--stages", stages] };
        // A threshold of the profile may be inconclusive: the runs are short.
        let output = self.fixture.plimsoll(&[&fixed[..], &rest, &stages, args].concat());
        assert!(matches!(output.code, Some(0 | 3)), "{}{}", output.stdout, output.stderr);
        let runs = self.fixture.runs();
        let run = runs.iter().find(|run| run.to_str().unwrap().ends_with(&format!("-{name}")));
        let log = self.fixture.mock.take_log();
        let ids = log.into_iter().map(|record| record.request_id.unwrap()).collect();
        (summary(run.unwrap()), ids)
    }
}

fn hits_and_misses(summary: &RunSummary) -> (u64, u64) {
    let by_stage = summary.results.by_stage.iter();
    by_stage.fold((0, 0), |(hits, misses), stage| {
        (hits + stage.counters.cache_hits, misses + stage.counters.cache_misses)
    })
}

#[test]
fn two_runs_of_every_profile_hit_no_cache_and_share_no_request_id() {
    let cached = CachedMock::start();
    // Scenarios with tool servers and agents send no cacheable requests.
    let others = ["mcp-tools", "a2a", "agent-loop"];
    for profile in
        builtin_names().filter(|name: &&str| !name.starts_with("policy") && !others.contains(name))
    {
        let mut seen = HashSet::new();
        for n in 0..2 {
            let (summary, ids) = cached.run(profile, &format!("{profile}.{n}"), &[]);
            let (hits, misses) = hits_and_misses(&summary);
            assert!(misses > 0, "{profile}: the gateway names its cache state");
            assert_eq!(hits, 0, "{profile}, run {n}");
            assert!(ids.len() as u64 > misses, "{profile}: the probe and every miss arrived");
            let sent = ids.len();
            let new = ids.into_iter().filter(|id| seen.insert(id.clone())).count();
            assert_eq!(new, sent, "{profile}, run {n}: a request id came again");
        }
    }
}

/// The control: the cache does answer a run that repeats another one exactly.
#[test]
fn a_run_id_repeats_a_run_exactly_and_its_cache_hits_are_named() {
    let cached = CachedMock::start();
    // The number of requests equals the number of arrivals, however slow the machine.
    let args = ["--stages", "@50:400ms", "--run-id", "again"];
    let (first, ids) = cached.run("minimal", "first", &args);
    assert_eq!((hits_and_misses(&first).0, ids.len()), (0, 21));
    assert!(first.findings.iter().all(|finding| finding.code != 309), "{:?}", first.findings);
    let (second, ids) = cached.run("minimal", "second", &args);
    assert_eq!(ids, Vec::<String>::new(), "nothing reached the mock, not even the probe");
    assert_eq!(hits_and_misses(&second), (20, 0));
    assert_eq!(second.metadata.run.run_id, "again");
    let found = second.findings.iter().find(|finding| finding.code == 309);
    assert!(found.unwrap().text().starts_with("A cache answered 20 of 20"), "{found:?}");
    let runs = cached.fixture.runs();
    let report = fs::read_to_string(runs[1].join("report.txt")).unwrap();
    assert!(report.contains("Caches, by response headers: 20 hits"), "{report}");
    let plan = fs::read_to_string(runs[1].join("plan.json")).unwrap();
    assert!(plan.contains("\"run_id\": \"again\""), "{plan}");
    let rows = |run: usize| {
        let text = fs::read_to_string(runs[run].join("results.jsonl")).unwrap();
        text.lines()
            .map(|line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .collect::<Vec<_>>()
    };
    assert!(rows(0).iter().all(|row| row["cache"] == "miss"));
    assert!(rows(1).iter().all(|row| row["cache"] == "hit"));
    let ids = |run| -> HashSet<String> {
        rows(run).iter().map(|row| row["request_id"].to_string()).collect()
    };
    assert_eq!(ids(0), ids(1));
}

#[test]
fn hits_that_are_wanted_are_counted_without_a_warning_and_headers_are_recorded() {
    let cached = CachedMock::start();
    let record = "response_headers.record=[X-Cache, x-none]";
    // One after another: two equal requests at once would both be misses.
    let load = ["--stages", "1:60s", "--max-requests", "20"];
    let args = [&["--set", "cache_mode=allow", "--set", record], &load[..]].concat();
    let (summary, ids) = cached.run("minimal", "wanted", &args);
    let (hits, misses) = hits_and_misses(&summary);
    // The pool has three prompts; the probe asks for fewer tokens, which is another request.
    assert!(ids.len() <= 4 && misses <= 3 && hits + misses == 20, "{hits} {misses}");
    assert!(summary.findings.iter().all(|finding| finding.code != 309));
    let runs = cached.fixture.runs();
    let rows = fs::read_to_string(runs[0].join("results.jsonl")).unwrap();
    let recorded = rows.matches(r#""response_headers":{"x-cache":"hit"}"#).count();
    assert_eq!(recorded as u64, hits, "{rows}");
}
