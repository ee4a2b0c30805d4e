//! The folder of a run of version 0.1.0, which had other names for some keys.

use std::fs;

use plimsoll_measure::PolicyDecision;
use plimsoll_metrics::summary::SCHEMA;
use plimsoll_metrics::{Group, Judgement, RunEnd, RunMetadata, RunSummary, Threshold};
use plimsoll_report::{Style, json, parse_row, read_json, rebuild, text};

use crate::support::path;

const TARGET: &str = "127.0.0.1:18732";

fn stored(name: &str) -> Vec<u8> {
    fs::read(path("tests/fixtures/run-0.1.0").join(name)).unwrap()
}

fn summary() -> RunSummary {
    read_json(&stored("summary.json")).unwrap()
}

/// The parts of `plan.json` that a summary needs.
fn plan() -> (RunMetadata, Vec<Threshold>) {
    let plan: serde_json::Value = serde_json::from_slice(&stored("plan.json")).unwrap();
    let metadata = serde_json::from_value(plan["facts"].clone()).unwrap();
    let thresholds = plan["plan"]["thresholds"].as_object().unwrap();
    let thresholds = thresholds.iter().flat_map(|(metric, bounds)| {
        let bounds = bounds.as_array().unwrap().iter();
        bounds.map(move |bound| Threshold::parse(metric, bound.as_str().unwrap()).unwrap())
    });
    (metadata, thresholds.collect())
}

fn rebuilt() -> RunSummary {
    let (metadata, thresholds) = plan();
    rebuild(stored("results.jsonl").split(|byte| *byte == b'\n'), metadata, &thresholds)
        .unwrap()
        .summary
}

/// Targets, expectations and policy decisions: the names that changed.
fn check_renamed_keys(summary: &RunSummary) {
    let targets = summary.metadata.targets.iter().map(|target| (&*target.name, &*target.url));
    assert_eq!(targets.collect::<Vec<_>>(), [(TARGET, "http://127.0.0.1:18732")]);
    let expected: Vec<_> = summary
        .metadata
        .expectations
        .iter()
        .map(|expectation| expectation.policy_decision)
        .collect();
    assert_eq!(expected, [Some(PolicyDecision::Allow), Some(PolicyDecision::Block)]);
    let by_target = &summary.results.by_target;
    assert_eq!((by_target.len(), by_target[0].target.as_deref()), (1, Some(TARGET)));
    assert_eq!(by_target[0].policy_decisions, summary.results.total.policy_decisions);
    assert_eq!(summary.results.total.policy_decisions["allow"]["allow"], 22);
    assert_eq!(summary.results.total.policy_decisions["block"]["block"], 8);
    assert!(summary.results.cells.iter().all(|cell| cell.target.as_deref() == Some(TARGET)));
}

#[test]
fn the_summary_is_read_and_shown() {
    let summary = summary();
    check_renamed_keys(&summary);
    assert_eq!(summary.metadata.run.ended, RunEnd::Complete);
    assert_eq!(summary.results.total.statuses, [(200, 22), (403, 8)].into());
    assert_eq!(summary.health.conversations.unwrap().ended_early, 9);
    let report = text(&summary, Style::default());
    for line in [
        "VALID: Plimsoll kept up; these figures describe the target",
        "30 requests in 1s: 22 ok, 8 refused (4xx), 0 failed.",
        "PASS          response_time{lane:127.0.0.1:18732} med<1s",
        "Policy correctness 100%: 30 of 30 answered requests",
    ] {
        assert!(report.contains(line), "{line} in {report}");
    }
}

#[test]
fn the_summary_is_written_again_in_the_present_layout() {
    let summary = summary();
    assert_eq!(summary.schema, SCHEMA);
    let text = json(&summary).unwrap();
    for old in
        ["\"lane\"", "\"lanes\"", "\"by_lane\"", "\"verdict\"", "\"verdicts\"", "\"abandoned\""]
    {
        assert!(!text.contains(old), "{old}");
    }
    assert_eq!(read_json(text.as_bytes()).unwrap(), summary);
}

#[test]
fn a_reason_with_its_old_key_is_read() {
    let text = String::from_utf8(stored("summary.json")).unwrap();
    let reason = r#"{"what":"steal","measured":"7 %","bound":"5 %","mend":"another machine"}"#;
    let text = text.replacen("\"warnings\": []", &format!("\"warnings\": [{reason}]"), 1);
    let summary = read_json(text.as_bytes()).unwrap();
    assert_eq!(summary.warnings[0].fix, "another machine");
}

#[test]
fn a_summary_is_rebuilt_from_the_plan_and_the_rows() {
    let (rebuilt, whole) = (rebuilt(), summary());
    check_renamed_keys(&rebuilt);
    assert_eq!(rebuilt.results.total.accounting(), whole.results.total.accounting());
    assert_eq!(rebuilt.results.total.statuses, whole.results.total.statuses);
    let categories = |summary: &RunSummary| {
        let group = |group: &Group| (group.category.clone(), group.policy_decisions.clone());
        summary.results.by_category.iter().map(group).collect::<Vec<_>>()
    };
    assert_eq!(categories(&rebuilt), categories(&whole));
    assert_eq!(rebuilt.thresholds.len(), 3);
    for threshold in &rebuilt.thresholds {
        assert_eq!(threshold.judgement, Judgement::Pass, "{threshold:?}");
    }
    assert!(text(&rebuilt, Style::default()).contains("rebuilt from results.jsonl"));
}

#[test]
fn its_rows_are_read() {
    let rows = stored("results.jsonl");
    let rows: Vec<_> = rows.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    assert_eq!(rows.len(), 33);
    for line in rows {
        let row = parse_row(line).unwrap();
        assert_eq!(row.target, TARGET);
        assert_eq!(row.policy_decision, row.expected);
        assert!(row.policy_decision.is_some());
    }
}
