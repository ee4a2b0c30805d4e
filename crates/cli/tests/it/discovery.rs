//! Discovery of tools, spending limits, and printed requests, checked against the mock's log.

use std::collections::BTreeMap;

use plimsoll_mock::RpcRecord;

use crate::support::{FAST, Fixture, summary};

/// The calls of the mock's log by method and tool, and how many of them named a session.
fn calls(fixture: &Fixture) -> BTreeMap<String, (u64, u64)> {
    let mut counts: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for record in fixture.mock.take_log() {
        let http = record.method.clone();
        let Some(rpc) = record.rpc else { continue };
        let RpcRecord { method, name, session, .. } = *rpc;
        let method = method.unwrap_or(http);
        let key = [Some(method), name].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let count = counts.entry(key).or_default();
        count.0 += 1;
        count.1 += u64::from(session.is_some());
    }
    counts
}

#[test]
fn the_tools_of_a_server_are_found_and_called_with_arguments_that_fit() {
    let fixture = Fixture::with("log: memory");
    let stages = ["--stages", "4:2s", "--set", "think_time=10ms", "--set", "thresholds={}"];
    fixture.run(&[&["mcp-tools"], &stages[..]].concat()).expect(0);
    let seen = calls(&fixture);
    let count = |key: &str| seen.get(key).map_or(0, |count| count.0);
    assert!(count("tools/call echo") > 5 && count("tools/call slow") > 0, "{seen:?}");
    assert_eq!(count("tools/call failing"), 0, "it says that it destroys something: {seen:?}");
    let total = fixture.summary().results.total;
    assert!(total.errors.is_empty(), "wrong arguments are errors: {:?}", total.errors);
    assert_eq!(total.counters.tool_errors, 0);
    // Requests outside the run: the probe, and the session that listed the tools.
    let own: u64 = seen.values().map(|count| count.0).sum();
    assert!(own >= total.counters.scheduled, "{own} {:?}", total.counters.scheduled);
    let named = ["--set", "mcp.tools=[gone]"];
    let output = fixture.run(&[&["mcp-tools"], &stages[..], &named[..]].concat()).expect(2);
    assert!(output.stderr.contains("it has no tool `gone`, but echo"), "{}", output.stderr);
}

#[test]
fn a_tool_server_that_cannot_be_asked_makes_the_run_invalid_and_not_the_profile() {
    let fixture = Fixture::with("log: memory");
    let path = ["--set", "mcp.path=/nothing-here"];
    let refused = fixture.run(&[&["mcp-tools", "--stages", "4:1s"], &path[..]].concat()).expect(3);
    assert!(refused.stderr.contains("cannot be asked for its tools: it answers with 404"));
    let gone = ["run", "mcp-tools", "--target", "http://127.0.0.1:1", "--stages", "4:1s"];
    let output = fixture.plimsoll(&gone).expect(3);
    for part in ["http://127.0.0.1:1", "Connection refused", "look whether it runs"] {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
    assert!(fixture.runs().is_empty(), "nothing is written");
}

#[test]
fn agents_open_a_session_with_the_tool_server_and_end_it() {
    let model = "{tool_loop: {steps: 2, tools: [echo]}, ttft: 1ms, gap: 0s}";
    let fixture = Fixture::with(&format!("{{log: memory, other_models: {model}}}"));
    let revision = "scenarios.assistant.agent.revision=2025-11-25";
    let args = ["agent-loop", "--model", "mock-agent", "--stages", "@8:2s", "--set", revision];
    fixture.run(&[&args[..], &["--set", "thresholds={}", "--no-probe"]].concat()).expect(0);
    let seen = calls(&fixture);
    let count = |key: &str| seen.get(key).copied().unwrap_or_default();
    let tasks = &fixture.summary().agent_tasks[0].totals;
    assert_eq!((tasks.started, tasks.done), (16, 16), "{tasks:?}");
    assert!(tasks.tool_calls > 0);
    // Every task that called a tool had a session, and every call named it.
    let (opened, called) = (count("initialize"), count("tools/call echo"));
    assert_eq!(called, (tasks.tool_calls, tasks.tool_calls), "{seen:?}");
    assert!(opened.0 > 0 && opened.0 <= 17, "{seen:?}");
    assert_eq!(count("notifications/initialized").0, opened.0, "{seen:?}");
    assert_eq!(fixture.summary().results.total.counters.failed, 0);
}

#[test]
fn a_run_ends_when_its_tokens_or_its_money_are_spent() {
    let fixture = Fixture::with("{log: memory, models: {m: {ttft: 5ms, gap: 0s}}}");
    let args = ["minimal", "--model", "m", "--no-probe", "--set", "max_tokens=10"];
    let spent = |stages: &str, flags: &[&str]| {
        let load = ["--stages", stages, "--set", "workers=2"];
        fixture.run(&[&args[..], &load, flags].concat()).expect(0);
        let run = fixture.runs().pop().unwrap();
        let summary = summary(&run);
        std::fs::remove_dir_all(run).unwrap();
        let log = fixture.mock.take_log();
        let tokens = |record: &plimsoll_mock::LogRecord| {
            record.prompt_tokens + u64::from(record.planned_tokens)
        };
        let all: u64 = log.iter().map(tokens).sum();
        let largest = log.iter().map(tokens).max().unwrap();
        (all, largest, summary.metadata.run.stopped.unwrap_or_default())
    };
    for (stages, users) in [("4:20s", 4), ("64:20s", 64)] {
        // Requests in flight may exceed the limit: one for each user.
        let bounds = |largest| 20_000..=20_000 + users * largest;
        let (all, largest, stopped) = spent(stages, &["--budget-tokens", "20000"]);
        assert!(bounds(largest).contains(&all), "{stages}: {all}, {largest} each");
        assert!(stopped.contains("of 20000 (--budget-tokens)"), "{stopped}");
        // A million of either costs 1: 0.02 are 20,000 tokens.
        let (all, largest, stopped) = spent(stages, &["--budget-cost", "0.02", "--price", "1,1"]);
        assert!(bounds(largest).contains(&all), "{stages}: {all}, {largest} each");
        assert!(stopped.contains("(--budget-cost)"), "{stopped}");
    }
    let output = fixture.run(&[&args[..], &["--budget-cost", "5"]].concat()).expect(2);
    assert!(output.stderr.contains("--price"), "{}", output.stderr);
}

#[test]
fn one_request_of_each_scenario_is_shown_with_its_answer() {
    let fixture = Fixture::with(FAST);
    let key = ["--key", "sk-very-secret", "--once", "--verbose"];
    let target = fixture.target();
    let output = fixture
        .plimsoll(&[&["run", "realistic", "--target", &target], &key[..]].concat())
        .expect(0);
    for part in [
        "# simple, to ",
        "> POST /v1/chat/completions HTTP/1.1",
        "> authorization: <redacted>",
        "\"messages\":[",
        "< HTTP 200",
        "< content-type: text/event-stream",
        "data: [DONE]",
        "* connected ",
    ] {
        assert!(output.stdout.contains(part), "{part}: {}", output.stdout);
    }
    assert!(!output.stdout.contains("sk-very-secret"));
    assert!(fixture.runs().is_empty(), "nothing is written");
    let gone = ["run", "minimal", "--target", "http://127.0.0.1:1", "--key", "k", "--once"];
    let output = fixture.plimsoll(&gone).expect(1);
    assert!(output.stdout.contains("* failed: connection refused"), "{}", output.stdout);
}
