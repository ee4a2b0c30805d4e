//! The built-in profiles.

use std::collections::BTreeSet;

use plimsoll_measure::{ConversationKey, IdSeed, Nanos};
use plimsoll_plan::Plan;
use plimsoll_profile::{
    EnvVars, Overrides, Problems, Profile, Purpose, builtin, builtin_names, load,
};
use plimsoll_protocol::{Dialect, Encoder, EncoderOptions};
use plimsoll_workload::{
    AgentRole, Content, ExpectedDecision, ScenarioSpec, ToolProtocol, Workload,
};

fn resolve(name: &str, key: Option<&str>, purpose: Purpose) -> Result<Plan, Problems> {
    let flags =
        key.map_or_else(Overrides::default, |key| Overrides::default().with("key", "key", key));
    load(&Profile::open(name).unwrap(), &EnvVars::default(), &flags, purpose)
}

/// Profiles for policy gateways need no key: the token is part of the request.
fn is_policy(name: &str) -> bool {
    name.starts_with("policy")
}

fn checked(name: &str) -> Plan {
    resolve(name, None, Purpose::Check).unwrap()
}

#[test]
fn each_profile_can_be_checked_and_runs_with_a_key() {
    for name in builtin_names() {
        let plan = checked(name);
        assert_eq!(plan.name, name);
        let target =
            if is_policy(name) { "http://localhost:8080" } else { "http://127.0.0.1:9000" };
        assert_eq!(plan.targets[0].url.to_string(), target, "{name}");
        assert!(resolve(name, Some("a-key"), Purpose::Run).is_ok(), "{name}");
    }
}

#[test]
fn no_profile_needs_a_key() {
    for name in builtin_names() {
        assert_eq!(resolve(name, None, Purpose::Run).unwrap().targets[0].key, None, "{name}");
    }
}

#[test]
fn each_file_of_the_folder_is_built_in() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../profiles");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "yaml") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert_eq!(
                builtin(name),
                Some(std::fs::read_to_string(&path).unwrap().as_str()),
                "{name}"
            );
            files += 1;
        }
    }
    assert_eq!(files, builtin_names().count());
}

/// The mix documented in `realistic.yaml`.
#[test]
fn realistic_has_its_documented_mix() {
    let plan = checked("realistic");
    let seen: Vec<_> = plan
        .scenarios
        .iter()
        .map(|s| (s.name.as_str(), s.weight, s.turns, s.stream, s.think_time.is_some()))
        .collect();
    assert_eq!(
        seen,
        [
            ("simple", 55.0, 1, false, false),
            ("medium", 30.0, 4, true, true),
            ("complex", 15.0, 3, true, true)
        ]
    );
    assert!(matches!(&plan.scenarios[0].content, Content::Pool { prompts } if prompts.len() > 20));
    assert!(plan.stages.0[0].warmup);
}

/// 17 kinds of requests, and three more that reach the model; a fifth must be blocked.
#[test]
fn policy_has_its_documented_scenarios_and_mix() {
    for (name, counts) in [("policy", [6, 4, 5, 2, 0]), ("policy-llm", [6, 4, 5, 2, 3])] {
        let plan = checked(name);
        let of = |category: &str| {
            plan.scenarios.iter().filter(|s| s.category.as_deref() == Some(category)).count()
        };
        let seen = ["normal", "sql_injection", "destructive", "pii", "llm"].map(of);
        assert_eq!(seen, counts, "{name}");
        for scenario in &plan.scenarios {
            let category = scenario.category.as_deref();
            let bad = matches!(category, Some("sql_injection" | "destructive"));
            assert_eq!(must_be_blocked(scenario), bad, "{}", scenario.name);
            assert_eq!(must_be_blocked(scenario), scenario.expect != Some(ExpectedDecision::Allow));
        }
        let weight = |of: &dyn Fn(&ScenarioSpec) -> bool| -> f64 {
            plan.scenarios.iter().filter(|s| of(s)).map(|s| s.weight).sum()
        };
        let share = weight(&must_be_blocked) / weight(&|_| true);
        assert!((0.19..=0.2).contains(&share), "{name}: {share}");
        assert!(plan.stages.0[0].warmup && !plan.thresholds.is_empty());
    }
}

fn must_be_blocked(scenario: &ScenarioSpec) -> bool {
    scenario.expect == Some(ExpectedDecision::Block)
}

#[test]
fn cross_ingress_uses_both_protocols_equally() {
    let plan = checked("cross-ingress");
    let seen: Vec<_> = plan.scenarios.iter().map(|s| (s.protocol, s.weight)).collect();
    assert_eq!(seen, [(Dialect::OpenaiChat, 1.0), (Dialect::AnthropicMessages, 1.0)]);
    assert_eq!(plan.scenarios[0].content, plan.scenarios[1].content);
}

#[test]
fn agent_loop_calls_tools_over_mcp_and_has_their_requests_apart() {
    let plan = checked("agent-loop");
    let names: Vec<_> = plan.scenarios.iter().map(|s| (s.name.as_str(), s.weight)).collect();
    assert_eq!(names, [("assistant", 1.0), ("assistant/tools", 0.0)]);
    assert!(plan.scenarios[0].agent.as_ref().is_some_and(|role| {
        matches!(role, AgentRole::Agent(agent) if agent.tools == ToolProtocol::Mcp
            && (agent.tool_path(), agent.max_steps) == ("/mcp", 20) && agent.approve.is_none())
    }));
    assert_eq!(plan.scenarios[0].parameters["tools"][0]["function"]["name"], "echo");
    let of_tools = plan.scenarios[1].mcp.as_ref().map(|mcp| (mcp.revision.name(), &*mcp.path));
    assert_eq!(of_tools, Some(("2026-07-28", "/mcp")), "the revision without sessions");
}

#[test]
fn the_tiers_have_their_documented_sizes() {
    for (tier, input, output) in [("128", 128, 128), ("550", 550, 150), ("hotpath", 12_500, 64)] {
        for (ending, stream) in [("nonstream", false), ("stream", true)] {
            let name = format!("perf-{tier}-{ending}");
            let scenario = &checked(&name).scenarios[0];
            assert_eq!(
                scenario.content,
                Content::Sized { approx_input_tokens: plimsoll_workload::LengthSpec::Fixed(input) },
                "{name}"
            );
            assert_eq!((scenario.max_tokens, scenario.stream), (Some(output), stream), "{name}");
        }
    }
}

#[test]
fn the_traces_are_built_in() {
    for (name, rows) in [("azure-trace", 106), ("mooncake-trace", 104)] {
        let trace = checked(name).read_trace().unwrap().unwrap();
        assert_eq!(trace.offsets().len(), rows, "{name}");
        assert!(
            trace.offsets().last() <= Some(&Nanos::from_secs(15)),
            "{name} is played at four times its speed"
        );
    }
}

#[test]
fn a_name_that_is_neither_built_in_nor_a_file_gets_a_suggestion() {
    let problems = Profile::open("realstic").unwrap_err();
    assert_eq!(
        problems.to_string().split(" Known").next().unwrap(),
        "realstic: cannot be read (no such file or directory); no built-in profile has this name either: did you mean `realistic`?"
    );
    assert!(
        Profile::open("none/p.yaml")
            .unwrap_err()
            .to_string()
            .starts_with("none/p.yaml: cannot be read")
    );
}

/// Id and body of the first requests of a built-in profile.
fn requests(plan: &Plan, run_id: &str) -> Vec<(String, String)> {
    let ids = IdSeed::new(plan.seed, run_id);
    let trace = plan.read_trace().unwrap();
    let traced = trace.is_some();
    let workload = Workload::new(&plan.scenarios, trace, None, plan.seed, ids).unwrap();
    let mut requests = Vec::new();
    // The trace and, for a warm-up before it, requests without a trace row.
    let rows = |seq| if traced { vec![None, Some(seq)] } else { vec![None] };
    for (seq, row) in (0..60).flat_map(|seq| rows(seq).into_iter().map(move |row| (seq, row))) {
        let mut talk = workload.conversation(ConversationKey::arrival(seq), row);
        while let Some(turn) = talk.turn() {
            let protocol = plan.scenarios[talk.scenario().index()].protocol;
            let encoder = Encoder::new(protocol, &EncoderOptions::default()).unwrap();
            let mut body = Vec::new();
            encoder.encode_body(&turn, &mut body).unwrap();
            requests.push((talk.request_id().to_string(), String::from_utf8(body).unwrap()));
            talk.advance(Some("fine"));
        }
    }
    requests
}

/// The cache of an earlier run must not answer a later one: `cache_mode: bust`.
#[test]
fn two_runs_of_a_profile_share_no_request_id_and_under_bust_no_prompt() {
    for name in builtin_names() {
        let plan = checked(name);
        let busts = plan.scenarios.iter().all(|s| s.cache_mode.busts(false));
        assert_eq!(busts, !is_policy(name), "{name}: only exact texts of queries may repeat");
        let (first, second) = (requests(&plan, "first"), requests(&plan, "second"));
        assert_eq!(first, requests(&plan, "first"), "{name}: a run id repeats a run exactly");
        assert!(ids(&first).is_disjoint(&ids(&second)), "{name}");
        // Handshakes, lists and pings are the same in every session.
        if plan.scenarios.iter().all(|scenario| scenario.protocol == Dialect::Mcp) {
            continue;
        }
        for ((_, one), (_, other)) in first.iter().zip(&second) {
            // The same work: only the markers differ, near the start.
            assert_eq!(one.len(), other.len(), "{name}");
            let common = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
            assert!(!busts || common < 100, "{name}: {common} equal bytes: {}", &one[..common]);
            assert!(busts || one == other, "{name}");
            let marker = if busts { 40 } else { 0 };
            let differing = one.bytes().zip(other.bytes()).filter(|(a, b)| a != b).count();
            assert!(differing <= 2 * marker, "{name}: {differing} bytes differ");
        }
    }
}

fn ids(run: &[(String, String)]) -> BTreeSet<String> {
    run.iter().map(|(id, _)| id.clone()).collect()
}

const TRACE: &str =
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-14 09:30:01.2009751,816,593\n";

#[test]
fn files_are_relative_to_the_profile_and_those_of_flags_to_the_current_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("with trace.yaml");
    let profile =
        builtin("azure-trace").unwrap().replace("builtin:traces/azure-example.csv", "t.csv");
    std::fs::write(&path, profile.replace("name: azure-trace\n", "")).unwrap();
    assert_eq!(
        check(&path, &Overrides::default()).unwrap_err().len(),
        1,
        "the file is not there yet"
    );
    std::fs::write(folder.path().join("t.csv"), TRACE).unwrap();
    let from_profile = check(&path, &Overrides::default()).unwrap();
    assert_eq!(from_profile.trace.unwrap().file, folder.path().join("t.csv"));
    assert_eq!(from_profile.name, "with-trace");
    let sets = vec!["trace.file=../../../profiles/traces/azure-example.csv".to_owned()];
    let current = check(&path, &Overrides { sets, ..Overrides::default() }).unwrap();
    assert_eq!(
        current.trace.unwrap().file.to_str(),
        Some("../../../profiles/traces/azure-example.csv")
    );
}

fn check(path: &std::path::Path, flags: &Overrides) -> Result<Plan, Problems> {
    let profile = Profile::open(path.to_str().unwrap()).unwrap();
    load(&profile, &EnvVars::default(), flags, Purpose::Check)
}
