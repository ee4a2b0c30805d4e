//! Scenarios that cannot be played, and their messages.

use std::collections::BTreeMap;

use plimsoll_measure::{IdSeed, Nanos, Seed};
use plimsoll_protocol::Dialect;
use plimsoll_workload::{
    AgentRole, AgentSpec, ApproveSpec, Content, DurationSpec, HttpSpec, PrefixPool, ScenarioSpec,
    SystemPrompt, Workload, WorkloadError, with_parts,
};

use crate::support::{scenario, sized};

fn refusal(scenarios: &[ScenarioSpec]) -> String {
    let error = Workload::new(scenarios, None, None, Seed(1), IdSeed::default()).unwrap_err();
    assert!(matches!(error, WorkloadError::Scenarios(_)));
    error.to_string()
}

#[test]
fn every_fault_is_reported_with_its_key_and_fix() {
    let ok = scenario;
    let script = Content::Scripted { script: vec!["one".to_owned()] };
    let http = |path: &str| {
        let (method, path) = ("GET".to_owned(), path.to_owned());
        let (headers, body) = (BTreeMap::new(), String::new());
        Some(HttpSpec { method, path, headers, body, body_file: None, expect: None })
    };
    let pool = |count, approx_tokens| Some(PrefixPool { share: 1.0, count, approx_tokens });
    let swapped = DurationSpec::Uniform { min: Nanos::from_secs(2), max: Nanos::from_secs(1) };
    let no_spread = DurationSpec::Lognormal { median: Nanos::ZERO, p95: Nanos::from_secs(1) };
    for (spec, part) in vec![
        (ScenarioSpec { weight: -1.0, ..ok() }, "`weight`: the weight -1 is not valid"),
        (ScenarioSpec { weight: f64::NAN, ..ok() }, "`weight`: the weight NaN is not valid"),
        (ScenarioSpec { weight: 0.0, ..ok() }, "no scenario has a weight above 0"),
        (ScenarioSpec { turns: 0, ..ok() }, "`turns`: there are no turns"),
        (
            ScenarioSpec { content: Content::Pool { prompts: vec![] }, ..ok() },
            "`content.prompts`: the list is empty",
        ),
        (
            ScenarioSpec { turns: 2, content: script, ..ok() },
            "`content.script`: the script has 1 lines for 2 turns",
        ),
        (ScenarioSpec { content: sized(0), ..ok() }, "`content.approx_input_tokens`: 0 tokens"),
        (ScenarioSpec { content: sized(10_000_001), ..ok() }, "10000001 tokens are out of range"),
        (
            ScenarioSpec { system: Some(SystemPrompt::Synthetic { approx_tokens: 0 }), ..ok() },
            "`system.approx_tokens`: 0 tokens",
        ),
        (
            ScenarioSpec {
                prefix_pool: Some(PrefixPool { share: 60.0, count: 1, approx_tokens: 5 }),
                ..ok()
            },
            "`prefix_pool.share`: invalid share 60: write a number from 0 to 1",
        ),
        (
            ScenarioSpec { prefix_pool: pool(0, 5), ..ok() },
            "`prefix_pool.count`: the pool is empty",
        ),
        (ScenarioSpec { prefix_pool: pool(5, 0), ..ok() }, "`prefix_pool.approx_tokens`: 0 tokens"),
        (ScenarioSpec { think_time: Some(swapped), ..ok() }, "`think_time`: the durations are"),
        (ScenarioSpec { think_time: Some(no_spread), ..ok() }, "`think_time`: the durations are"),
        (
            ScenarioSpec { protocol: Dialect::Http, ..ok() },
            "`http`: the protocol `http` has no request",
        ),
        (
            ScenarioSpec { protocol: Dialect::Http, http: http("/{{user}}"), ..ok() },
            "`http.path`: `{{user}}` at character 2 is not a placeholder",
        ),
    ] {
        let message = refusal(&[spec]);
        assert!(message.contains(part), "{part}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    assert!(refusal(&[]).contains("there are 0 scenarios"));
}

#[test]
fn an_agent_that_cannot_be_played_is_refused_with_its_key_and_fix() {
    let agent = |spec| Some(AgentRole::Agent(spec));
    let of = |spec| ScenarioSpec { agent: agent(spec), ..scenario() };
    let ok = AgentSpec::default;
    let path = |path: &str| Some(path.to_owned());
    let approve = || ApproveSpec {
        tools: vec!["x".to_owned()],
        share: 0.5,
        think_time: None,
        path: "/v1/hitl".to_owned(),
    };
    let asks = |approve| of(AgentSpec { approve: Some(approve), ..AgentSpec::default() });
    let swapped = DurationSpec::Uniform { min: Nanos::from_secs(2), max: Nanos::from_secs(1) };
    for (spec, part) in [
        (
            ScenarioSpec { turns: 2, ..of(ok()) },
            "`turns`: the responses determine the number of turns",
        ),
        (
            ScenarioSpec { think_time: Some(DurationSpec::Fixed(Nanos::ZERO)), ..of(ok()) },
            "`think_time`: the steps of an agent have no think time",
        ),
        (
            ScenarioSpec { protocol: Dialect::OpenaiEmbeddings, ..of(ok()) },
            "`agent`: an agent needs a chat protocol",
        ),
        (of(AgentSpec { max_steps: 0, ..ok() }), "`agent.max_steps`: the number of steps"),
        (of(AgentSpec { max_steps: 101, ..ok() }), "`agent.max_steps`: the number of steps"),
        (of(AgentSpec { tool_path: path("x"), ..ok() }), "`agent.tool_path`: this is not a path"),
        (of(AgentSpec { tool_path: path("/x?k=1"), ..ok() }), "`agent.tool_path`: this is not"),
        (asks(ApproveSpec { tools: vec![], ..approve() }), "`agent.approve.tools`: the list"),
        (asks(ApproveSpec { share: 1.5, ..approve() }), "`agent.approve.share`: the share"),
        (asks(ApproveSpec { share: f64::NAN, ..approve() }), "`agent.approve.share`: the share"),
        (
            asks(ApproveSpec { think_time: Some(swapped), ..approve() }),
            "`agent.approve.think_time`: the durations",
        ),
        (
            asks(ApproveSpec { path: "/a b".to_owned(), ..approve() }),
            "`agent.approve.path`: this is not a path",
        ),
    ] {
        let message = refusal(&with_parts(vec![spec], None));
        assert!(message.contains(part), "{part}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    let without_parts = refusal(&[of(ok())]);
    assert!(without_parts.contains("`with_parts`"), "{without_parts}");
}

#[test]
fn all_faults_of_all_scenarios_are_reported_at_once() {
    let headers = BTreeMap::from([("X-A".to_owned(), "{{a".to_owned())]);
    let http = HttpSpec {
        method: "GET".to_owned(),
        path: "{{b}}".to_owned(),
        headers,
        body: "{{c}}".to_owned(),
        body_file: None,
        expect: None,
    };
    let one = ScenarioSpec { name: "one".to_owned(), turns: 0, weight: -1.0, ..scenario() };
    let protocol = Dialect::Http;
    let two = ScenarioSpec { name: "two".to_owned(), protocol, http: Some(http), ..scenario() };
    let message = refusal(&[one, two]);
    assert_eq!(message.lines().count(), 5, "{message}");
    for part in ["`one`, `weight`", "`one`, `turns`", "`two`, `http.path`", "`two`, `http.body`"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(message.contains("`http.headers.X-A`: the `{{` at character 1 is never closed"));
}
