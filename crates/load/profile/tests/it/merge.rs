//! The merge of file, environment and flags: precedence and messages.

use crate::support::{base_with, resolve};
use plimsoll_measure::{Nanos, RunId};
use plimsoll_plan::Plan;
use plimsoll_profile::{Overrides, Problems};
use plimsoll_protocol::Dialect;

const MIX: &str =
    "scenarios: [{name: a, weight: 3}, {name: b, turns: 2, protocol: openai-responses}]";

fn sets(assignments: &[&str]) -> Overrides {
    let sets = assignments.iter().map(|text| (*text).to_owned()).collect();
    Overrides { sets, ..Overrides::default() }
}

fn with_sets(lines: &str, assignments: &[&str]) -> Result<Plan, Problems> {
    resolve(&base_with(lines), &[], &sets(assignments))
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let text = base_with("model: of-file");
    let variables = [("PLIMSOLL_MODEL", "of-environment")];
    let flag = Overrides::default().with("model", "model", "of-flag");
    let both = Overrides { sets: vec!["model=of-set".to_owned()], ..flag.clone() };
    let none = Overrides::default();
    for (variables, flags, expected) in [
        (&[][..], &none, "of-file"),
        (&variables[..], &none, "of-environment"),
        (&variables[..], &flag, "of-flag"),
        (&variables[..], &both, "of-set"),
    ] {
        assert_eq!(resolve(&text, variables, flags).unwrap().targets[0].model, expected);
    }
}

#[test]
fn every_key_can_be_set_by_its_path_and_scenarios_by_name_or_number() {
    let plan = with_sets(
        MIX,
        &[
            "scenarios.a.weight=7",
            "scenarios.1.weight=0.5",
            "scenarios[1].think_time={exponential: {mean: 2s}}",
            "tls.insecure=true",
            "parameters.temperature=0.2",
            "max_body=1KiB",
            "timeout=90s",
            "thresholds.ttft=['p(95)<1s']",
            "headers.x-tenant=42",
            "name=true",
        ],
    )
    .unwrap();
    assert_eq!((plan.scenarios[0].weight, plan.scenarios[1].weight), (7.0, 0.5));
    assert!(plan.scenarios[1].think_time.is_some());
    assert!(plan.tls.insecure);
    assert_eq!(plan.scenarios[0].parameters["temperature"], 0.2);
    assert_eq!(plan.limits.max_body, 1024);
    assert_eq!(plan.limits.timeout, Nanos::from_secs(90));
    assert_eq!(plan.thresholds["ttft"], ["p(95)<1s"]);
    assert_eq!(plan.targets[0].headers["x-tenant"].reveal(), "42", "a text stays a text");
    assert_eq!(plan.name, "true");
}

#[test]
fn variables_reach_inside_with_two_underscores() {
    let variables = [
        ("PLIMSOLL_TLS__INSECURE", "true"),
        ("PLIMSOLL_MAX_IN_FLIGHT", "7"),
        ("PLIMSOLL_STAGES", "@5:2s"),
        ("PLIMSOLL_SHARD_INDEX", "not a key of the profile"),
        ("TIMEOUT", "1s"),
    ];
    let plan = resolve(&base_with(""), &variables, &Overrides::default()).unwrap();
    assert!(plan.tls.insecure);
    assert_eq!(plan.limits.max_in_flight, 7);
    assert_eq!(plan.limits.timeout, Nanos::from_secs(60));
    assert_eq!(serde_json::to_value(&plan).unwrap()["stages"], "@5:2s");
}

#[test]
fn headers_are_added_and_replaced_in_any_case() {
    let headers = ["X-Tenant: t2", "x-new:  spaced "].map(str::to_owned).to_vec();
    let flags = Overrides { headers, ..Overrides::default() };
    let text = base_with("headers: {x-tenant: t1, x-other: o}");
    let plan = resolve(&text, &[], &flags).unwrap();
    let shown: Vec<_> = plan.targets[0]
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.reveal()))
        .collect();
    assert_eq!(shown, [("x-new", "spaced"), ("x-other", "o"), ("x-tenant", "t2")]);
}

#[test]
fn the_protocol_flag_is_for_every_scenario() {
    let flags = Overrides::default().with("protocol", "protocol", "anthropic-messages");
    let plain = resolve(&base_with(MIX), &[], &Overrides::default()).unwrap();
    assert_eq!(protocols(&plain), [Dialect::OpenaiChat, Dialect::OpenaiResponses]);
    let changed = resolve(&base_with(MIX), &[], &flags).unwrap();
    assert_eq!(protocols(&changed), [Dialect::AnthropicMessages; 2]);
}

fn protocols(plan: &Plan) -> Vec<Dialect> {
    plan.scenarios.iter().map(|s| s.protocol).collect::<Vec<_>>()
}

#[test]
fn scenarios_inherit_what_they_leave_out() {
    let text = base_with(
        "turns: 3\nstream: true\nsystem: be brief\nscenarios: [{name: a}, {name: b, stream: false, system: null}]",
    );
    let plan = resolve(&text, &[], &Overrides::default()).unwrap();
    let seen: Vec<_> =
        plan.scenarios.iter().map(|s| (s.turns, s.stream, s.system.is_some())).collect();
    assert_eq!(seen, [(3, true, true), (3, false, false)]);
}

#[test]
fn without_scenarios_the_top_is_the_only_scenario() {
    let plan = resolve(&base_with("turns: 3"), &[], &Overrides::default()).unwrap();
    assert_eq!(plan.scenarios.len(), 1);
    assert_eq!((plan.scenarios[0].name.as_str(), plan.scenarios[0].turns), ("scenario-1", 3));
}

#[test]
fn variables_are_replaced_in_the_file_and_typed() {
    let text = base_with("key: ${KEY}\nworkers: ${N:-4}\nseed: ${S}\nname: run-${S}");
    let plan = resolve(&text, &[("KEY", "0123"), ("S", "9")], &Overrides::default()).unwrap();
    assert_eq!(plan.targets[0].key.as_ref().unwrap().reveal(), "0123");
    assert_eq!((plan.limits.workers, plan.seed.0, plan.name.as_str()), (Some(4), 9, "run-9"));
}

#[test]
fn a_variable_is_not_needed_for_what_a_flag_replaces() {
    let flags = Overrides::default().with("key", "key", "${literally}");
    let plan = resolve(&base_with("key: ${NOT_SET}"), &[], &flags).unwrap();
    assert_eq!(plan.targets[0].key.as_ref().unwrap().reveal(), "${literally}");
}

#[test]
fn problems_name_the_flag_or_the_variable_they_come_from() {
    let flags = Overrides {
        headers: vec!["no colon".to_owned()],
        shard: Some("4/4".to_owned()),
        ..sets(&["turns", "scenarios.c.weight=1", "tls.insecrue=true", "turns.x=1", "model..x=1"])
    };
    let flags = flags.with("stages", "stages", "10").with("seed", "seed", "x");
    let variables = [("PLIMSOLL_TIMEOUT", "5")];
    let problems = resolve(&base_with(MIX), &variables, &flags).unwrap_err();
    assert_eq!(
        problems.to_string().lines().collect::<Vec<_>>(),
        [
            "flag --set: has no equals sign; write --set PATH=VALUE, like `--set turns=3`",
            "flag --shard: `4/4` is not a shard; write K/N with K from 0 to N-1, like `0/4`",
            "flag --header: headers: has no colon; write --header 'NAME: VALUE'",
            "flag --set model..x: model: has an empty step in its path; write a path like `scenarios.0.weight`",
            "flag --set scenarios.c.weight: scenarios: has no item `c`; write a number from 0 to 1, or `a` or `b`",
            "flag --seed: seed: is a text; write a whole number",
            "flag --stages: stages: stage 1 `10`: the duration is missing; write `LOAD:DURATION`, like `100:60s` or `@500:60s`",
            "environment variable PLIMSOLL_TIMEOUT: timeout: `5` is not a length of time; write a number and a unit (ns, us, ms, s, m, h), like `500ms`, `30s` or `1m30s`",
            "flag --set tls.insecrue: tls.insecrue: is not a known key; did you mean `insecure`?",
            "flag --set turns.x: turns: is a mapping; write a whole number",
        ]
    );
}

#[test]
fn a_value_inside_a_text_cannot_be_set() {
    let problems = with_sets("system: be brief", &["system.approx_tokens=5"]).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "flag --set system.approx_tokens: system.approx_tokens: lies inside of a text; set the whole value"
    );
}

#[test]
fn a_flag_that_no_scenario_takes_is_refused_and_one_that_some_take_is_noted() {
    let lines = "scenarios: [{name: a, turns: 2, stream: true}, {name: b, turns: 3}]";
    assert_eq!(
        with_sets(lines, &["turns=9"]).unwrap_err().to_string(),
        "flag --set turns: turns: has no effect, because every scenario has its own; set that one, like `--set scenarios.a.turns=VALUE`"
    );
    let plan = with_sets(lines, &["stream=false", "scenarios.a.turns=9", "max_tokens=5"]).unwrap();
    let seen: Vec<_> = plan.scenarios.iter().map(|s| (s.turns, s.stream, s.max_tokens)).collect();
    assert_eq!(seen, [(9, true, Some(5)), (3, false, Some(5))]);
    assert_eq!(plan.notes, ["flag --set stream: has no effect on a, which set `stream`"]);
    // A `null` in a scenario is its own value, which hides the top-level default.
    with_sets("scenarios: [{name: a, turns: null}]", &["turns=9"]).unwrap_err();
}

/// A profile that describes its only scenario at the top level, or lists it without a name.
#[test]
fn the_only_scenario_is_set_by_its_name() {
    for (lines, path) in [
        ("turns: 2", "scenarios.scenario-1"),
        ("turns: 2", "scenarios.0"),
        ("turns: 2", "scenarios[0]"),
        ("turns: 2\nscenarios: [{weight: 9}]", "scenarios.scenario-1"),
        ("scenarios: [{name: simple, turns: 2}]", "scenarios.simple"),
    ] {
        let set = format!("{path}.weight=3");
        let plan = with_sets(lines, &[&set, &format!("{path}.max_tokens=5")]).unwrap();
        let seen: Vec<_> =
            plan.scenarios.iter().map(|s| (s.weight, s.turns, s.max_tokens)).collect();
        assert_eq!(seen, [(3.0, 2, Some(5))], "{lines}: {path}");
    }
    assert_eq!(
        with_sets("turns: 2", &["scenarios.simple.weight=3"]).unwrap_err().to_string(),
        "flag --set scenarios.simple.weight: scenarios: has no scenario `simple`: its only one is described at the top level; write its keys without `scenarios.simple.`, or call it `scenario-1`"
    );
}

#[test]
fn a_shard_is_a_part_of_the_run() {
    let flags = Overrides { shard: Some("2/5".to_owned()), ..Overrides::default() };
    let plan = resolve(&base_with(""), &[], &flags).unwrap();
    assert_eq!((plan.shard.index(), plan.shard.count()), (2, 5));
}

#[test]
fn a_run_id_comes_from_the_flag_or_else_from_the_environment() {
    let variables = [("PLIMSOLL_RUN_ID", "of-environment")];
    let flag = Overrides { run_id: Some("of-flag".to_owned()), ..Overrides::default() };
    for (variables, flags, expected) in [
        (&[][..], &Overrides::default(), None),
        (&variables[..], &Overrides::default(), Some("of-environment")),
        (&variables[..], &flag, Some("of-flag")),
    ] {
        let plan = resolve(&base_with(""), variables, flags).unwrap();
        assert_eq!(plan.run_id.as_ref().map(RunId::as_str), expected);
    }
    let wrong = Overrides { run_id: Some("a b".to_owned()), ..Overrides::default() };
    let problems = resolve(&base_with(""), &[], &wrong).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "flag --run-id: `a b` is not a run id; write 1 to 64 letters, digits, `-`, `_` or `.`"
    );
}

/// Shards with different run ids would not share the text that a cache should find.
#[test]
fn shards_that_share_text_need_a_common_run_id_and_others_get_a_note() {
    let shared = "prefix_pool: {count: 2, approx_tokens: 9}";
    let shard = Overrides { shard: Some("0/2".to_owned()), ..Overrides::default() };
    let with_id = Overrides { run_id: Some("r".to_owned()), ..shard.clone() };
    assert_eq!(notes(shared, &with_id).unwrap(), "");
    assert_eq!(notes("", &with_id).unwrap(), "");
    let note = notes("", &shard).unwrap();
    assert!(note.contains("give every shard the same one, like `--run-id nightly-42`"), "{note}");
    assert!(notes(&format!("{shared}\ncache_mode: allow"), &shard).is_ok());
    let problem = notes(shared, &shard).unwrap_err().to_string();
    assert!(problem.starts_with("flag --shard: is not enough"), "{problem}");
    assert!(problem.contains("--run-id nightly-42"), "{problem}");
}

fn notes(lines: &str, flags: &Overrides) -> Result<String, Problems> {
    resolve(&base_with(lines), &[], flags).map(|plan| plan.notes.join("; "))
}

#[test]
fn yaml_anchors_and_json_mean_the_same_as_the_long_form() {
    let anchors =
        base_with("prefix_pool: &p {count: 2, approx_tokens: 9}\nscenarios: [{prefix_pool: *p}]");
    let plan = resolve(&anchors, &[], &Overrides::default()).unwrap();
    assert_eq!(plan.scenarios[0].prefix_pool.unwrap().approx_tokens, 9);
    let json = r#" {"target": "http://127.0.0.1:9000", "model": "m", "stages": "1:1s",
        "content": {"mode": "sized", "approx_input_tokens": 8}}"#;
    assert_eq!(plan_from(json), plan_from(&base_with("")));
}

fn plan_from(text: &str) -> Plan {
    resolve(text, &[], &Overrides::default()).unwrap()
}
