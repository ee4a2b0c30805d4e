//! Keys of version 0.1.0 by their old names.

use plimsoll_plan::{Plan};
use plimsoll_profile::{Overrides, Problems};

use crate::support::{base_with, resolve};

const RENAMED: &str = "`verdict` is now called `policy_decision`";

fn with_sets(lines: &str, assignments: &[&str]) -> Result<Plan, Problems> {
    let sets = assignments.iter().map(|text| (*text).to_owned()).collect();
    resolve(&base_with(lines), &[], &Overrides { sets, ..Overrides::default() })
}

/// The statuses that a scenario reads as `block`.
fn blocks(plan: &Plan, scenario: usize) -> Vec<u16> {
    plan.scenarios[scenario].policy_decision.block.as_ref().unwrap().status.clone()
}

#[test]
fn a_file_may_use_old_names_at_the_top_and_in_scenarios() {
    let top = with_sets("verdict: {block: {status: [400]}}", &[]).unwrap();
    assert_eq!(blocks(&top, 0), [400]);
    assert_eq!(top.notes, [format!("p.yaml: {RENAMED}")]);
    let lines =
        "scenarios: [{verdict: {block: {status: [418]}}}, {verdict: {block: {status: [451]}}}]";
    let scenarios = with_sets(lines, &[]).unwrap();
    assert_eq!((blocks(&scenarios, 0), blocks(&scenarios, 1)), (vec![418], vec![451]));
    assert_eq!(scenarios.notes, [format!("p.yaml: {RENAMED}")], "one note for one file");
}

#[test]
fn variables_may_use_old_names() {
    let variables = [("PLIMSOLL_VERDICT__BLOCK", "{status: [400]}")];
    let plan = resolve(&base_with(""), &variables, &Overrides::default()).unwrap();
    assert_eq!(blocks(&plan, 0), [400]);
    let note = format!("environment variable PLIMSOLL_VERDICT__BLOCK: {RENAMED}");
    assert_eq!(plan.notes, [note]);
}

#[test]
fn flags_may_use_old_names_and_override_the_file() {
    let lines = "scenarios: [{name: a, policy_decision: {block: {status: [400]}}}]";
    for path in ["scenarios.a.verdict.block.status", "scenarios[0].verdict.block.status"] {
        let plan = with_sets(lines, &[&format!("{path}=[451]")]).unwrap();
        assert_eq!(blocks(&plan, 0), [451], "{path}");
        assert_eq!(plan.notes, [format!("flag --set {path}: {RENAMED}")]);
    }
}

#[test]
fn the_old_scope_of_a_metric_is_the_new_one() {
    let lines =
        "thresholds: {'ttft{lane:a}': ['p(95)<1s']}\nbands: {'ttft{lane: b}': ['p(95)<1s|2s']}";
    let plan = with_sets(lines, &["thresholds.ttfb{lane:c}=['p(95)<1s']"]).unwrap();
    let thresholds: Vec<_> = plan.thresholds.keys().collect();
    assert_eq!(thresholds, ["ttfb{target:c}", "ttft{target:a}"]);
    assert_eq!(plan.bands.keys().collect::<Vec<_>>(), ["ttft{target: b}"]);
    let renamed = "`{lane:NAME}` is now called `{target:NAME}`";
    let flag = format!("flag --set thresholds.ttfb{{lane:c}}: {renamed}");
    // The other notes are about targets of these names, of which there are none.
    assert_eq!(plan.notes[..2], [format!("p.yaml: {renamed}"), flag]);
}

#[test]
fn new_names_give_no_note_and_other_mappings_are_left_alone() {
    let lines = "policy_decision: {block: {status: [400]}}\nparameters: {verdict: 1}\nlabels: {verdict: x}\n\
        thresholds: {'ttfb{target:127.0.0.1:9000}': ['p(95)<1s']}";
    let plan = with_sets(lines, &[]).unwrap();
    assert_eq!((plan.notes.len(), &plan.scenarios[0].parameters["verdict"]), (0, &1.into()));
    assert!(!plan.show().contains("notes"), "an empty list is not shown");
    let renamed = with_sets("verdict: {}", &[]).unwrap();
    assert!(renamed.show().contains(RENAMED));
}

#[test]
fn both_names_in_one_layer_are_an_error_that_names_both() {
    let fault = "policy_decision: is given twice, as `policy_decision` and by its old name `verdict`; \
                 keep `policy_decision`";
    let message = |result: Result<Plan, Problems>| result.unwrap_err().to_string();
    let file = with_sets("verdict: {}\npolicy_decision: {}", &[]);
    assert_eq!(message(file), format!("p.yaml:6: {fault}"));
    let inside = with_sets("scenarios: [{verdict: {}, policy_decision: {}}]", &[]);
    assert_eq!(message(inside), format!("p.yaml:5: scenarios[0].{fault}"));
    let scopes = "thresholds: {'ttft{lane:a}': ['p(95)<1s'], 'ttft{target:a}': ['p(95)<2s']}";
    assert_eq!(
        message(with_sets(scopes, &[])),
        "p.yaml:5: thresholds.ttft{target:a}: is given twice, as `{target:NAME}` and by its old name \
         `{lane:NAME}`; keep `{target:NAME}`"
    );
    let variables =
        [("PLIMSOLL_POLICY_DECISION__BLOCK", "{}"), ("PLIMSOLL_VERDICT__ALLOW", "{status: [200]}")];
    let environment = message(resolve(&base_with(""), &variables, &Overrides::default()));
    assert!(
        environment.starts_with("environment variable PLIMSOLL_VERDICT__ALLOW: policy_decision")
    );
    assert!(environment.contains("by its old name `verdict`"), "{environment}");
    let sets = ["policy_decision.allow.status=[200]", "verdict.block.status=[400]"];
    let flags = message(with_sets("", &sets));
    assert!(flags.starts_with("flag --set verdict.block.status: policy_decision"), "{flags}");
    assert!(flags.contains("by its old name `verdict`"), "{flags}");
}

#[test]
fn a_later_layer_may_use_the_other_name() {
    let plan =
        with_sets("verdict: {block: {status: [400]}}", &["policy_decision.block.status=[451]"]);
    let plan = plan.unwrap();
    assert_eq!((blocks(&plan, 0), plan.notes.len()), (vec![451], 1));
}
