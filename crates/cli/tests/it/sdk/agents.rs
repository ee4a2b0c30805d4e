//! Agents.

use plimsoll_metrics::RunSummary;

use super::{
    Counts, SdkServer, count, expect_each_request, expect_errors, fixture, gateway, group, load,
    load_with, sent, total,
};

const AGENTS: [(&str, &str); 2] = [("a2a", "a2a_agent.py"), ("node", "a2a_agent.mjs")];

/// Six conversations a second for three seconds: answered in pieces, failing, and cancelled.
fn profile(version: &str) -> String {
    let scenario = |name: &str, weight: u8, prompt: &str, steps: &str| {
        format!(
            "- {{name: {name}, weight: {weight}, protocol: a2a, turns: 5, \
             content: {{mode: pool, prompts: ['{prompt}']}}, \
             a2a: {{version: {version}, steps: [{steps}]}}}}\n"
        )
    };
    let talks = "{action: send, weight: 3}, {action: stream, weight: 3}, {action: get, weight: 2}, \
                 {action: submit}, {action: card}";
    format!(
        "stages: '@6:3s'\ndrain: 60s\nscenarios:\n{}{}{}",
        scenario("talks", 4, "hello to whom it may concern", talks),
        scenario("failures", 1, "please fail", "{action: send}, {action: stream}"),
        scenario("waits", 1, "please wait", "{action: cancel}"),
    )
}

/// The operations, with the agents' log lines of a request in both versions.
const REQUESTS: [(&str, &[&str]); 5] = [
    ("SendMessage", &["SendMessage", "message/send"]),
    ("SendStreamingMessage", &["SendStreamingMessage", "message/stream"]),
    ("GetTask", &["GetTask", "tasks/get"]),
    ("CancelTask", &["CancelTask", "tasks/cancel"]),
    ("agent-card", &["GET /.well-known/agent-card.json"]),
];

/// Checks that all requests succeeded, with the same counts as the agent's.
#[expect(clippy::print_stdout, reason = "it says what it did")]
fn expect_all_good(case: &str, summary: &RunSummary, counts: &Counts) {
    let counters = &summary.results.total.counters;
    println!(
        "{case}: {} requests, {} good, {} failed tasks",
        counters.scheduled, counters.completed, counters.tool_errors
    );
    expect_each_request(case, summary, counts, &REQUESTS);
    expect_errors(case, summary, &[]);
    let messages = sent(summary, "SendMessage") + sent(summary, "SendStreamingMessage");
    assert_eq!(total(counts, "message "), messages, "{case}: {counts:?}");
    assert_eq!(count(counts, "cancel"), sent(summary, "CancelTask"), "{case}: {counts:?}");
    assert_eq!(counters.tool_errors, count(counts, "message fail"), "{case}: {counts:?}");
    assert!(counters.tool_errors > 0 && sent(summary, "CancelTask") > 0, "{case}: {counts:?}");
}

#[test]
#[ignore = "installs the official SDKs from the package registries"]
fn every_message_of_a_load_is_answered_and_counted_as_the_official_agent_counts_it() {
    for agent in AGENTS {
        for version in ["v1.0", "v0.3"] {
            let fixture = fixture();
            let running = SdkServer::start(&fixture, agent, &[]);
            let url = format!("http://127.0.0.1:{}/rpc", running.port);
            let summary = load_with(&fixture, &profile(version), &url);
            let case = format!("{} {version}", agent.1);
            expect_all_good(&case, &summary, &running.counts());
        }
    }
}

#[test]
#[ignore = "installs the official SDKs from the package registries"]
fn messages_through_the_gateway_reach_the_official_agent_once() {
    for agent in AGENTS {
        for version in ["v1.0", "v0.3"] {
            let fixture = fixture();
            let running = SdkServer::start(&fixture, agent, &[]);
            let config = format!(
                "agents: {{agents: {{known: {{loud: {{url: 'http://127.0.0.1:{}/rpc'}}}}, \
                 allow: {{'*': ['*']}}}}}}\n",
                running.port
            );
            let gateway = gateway(&fixture, &config, ("/health", "ok"));
            let url = format!("http://{}", gateway.address);
            let summary = load_with(&fixture, &profile(version), &url);
            let case = format!("behind the gateway, {} {version}", agent.1);
            expect_all_good(&case, &summary, &running.counts());
        }
    }
}

#[test]
#[ignore = "installs the official SDKs from the package registries"]
fn the_built_in_profile_fits_the_official_agents() {
    for agent in AGENTS {
        let case = format!("a2a, {}", agent.1);
        let fixture = fixture();
        let running = SdkServer::start(&fixture, agent, &[]);
        let url = format!("http://127.0.0.1:{}/rpc", running.port);
        let bound = "thresholds={completed: ['count>10']}";
        let summary = load(&fixture, &["a2a", "--stages", "@6:4s", "--set", bound], &url);
        let counts = running.counts();
        expect_each_request(&case, &summary, &counts, &REQUESTS);
        // Only a task that has ended already is not cancelled.
        let cancelled = group(&summary, "CancelTask").map_or(0, |group| group.counters.completed);
        let late = sent(&summary, "CancelTask") - cancelled;
        expect_errors(&case, &summary, &[(-32_002, late)]);
        let messages = sent(&summary, "SendMessage") + sent(&summary, "SendStreamingMessage");
        assert_eq!(count(&counts, "message other"), messages, "{case}: {counts:?}");
        println!("{case}: {messages} messages, {late} came too late to be cancelled");
    }
}
