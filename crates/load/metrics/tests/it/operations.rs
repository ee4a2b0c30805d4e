//! Requests to tool servers and agents: grouped by operation, with codes and tool errors.

use std::collections::BTreeMap;

use plimsoll_measure::{ErrorClass, Operation, Outcome, RpcReport, Sample};
use plimsoll_metrics::{
    GroupKey, InstrumentHealth, Judgement, Limit, Recorder, Results, RunSummary, Scope, Snapshot,
};

use crate::support::{at, metadata, sample};

fn step(stage: u16, operation: Option<Operation>, outcome: Outcome, rpc: RpcReport) -> Sample {
    Sample { operation, rpc, ..sample(stage, 2_000, 50, outcome) }
}

fn summary(thresholds: &[Limit]) -> RunSummary {
    use Operation::{CallTool, Initialize, ListTools};
    let failed = Outcome::Failed(ErrorClass::RpcError);
    let none = RpcReport::default();
    let code = |code| RpcReport { code: Some(code), ..none };
    let samples = [
        step(0, Some(CallTool), Outcome::Completed, none),
        step(1, Some(Initialize), Outcome::Completed, none),
        step(1, Some(CallTool), Outcome::Completed, RpcReport { notifications: 3, ..none }),
        step(1, Some(CallTool), Outcome::Completed, RpcReport { tool_error: true, ..none }),
        step(1, Some(CallTool), failed, code(-32_050)),
        step(1, Some(CallTool), failed, code(-32_050)),
        step(1, Some(ListTools), Outcome::Rejected(400), code(-32_602)),
        step(1, None, Outcome::Completed, none),
    ];
    let mut recorder = Recorder::new(vec![at(1_000), at(11_000), at(21_000)]);
    for sample in &samples {
        recorder.scheduled_in(GroupKey::for_sample(sample));
        recorder.record(sample, &[], &[]);
    }
    let mut snapshot = Snapshot::new();
    snapshot.append(recorder.take());
    let mut metadata = metadata();
    metadata.scenarios = vec!["tools".to_owned()];
    RunSummary::build(metadata, InstrumentHealth::default(), &snapshot, thresholds).unwrap()
}

#[test]
fn each_operation_is_a_group_of_its_own() {
    let results: Results = summary(&[]).results;
    let found: Vec<_> = results
        .by_operation
        .iter()
        .map(|group| (group.operation.as_deref().unwrap(), group.counters.scheduled))
        .collect();
    // In the order in which a session has them, and without the warm-up.
    assert_eq!(found, [("initialize", 1), ("tools/list", 1), ("tools/call", 4)]);
    let calls = results.group(&Scope::Operation("tools/call".to_owned())).unwrap();
    let counters = calls.counters;
    assert_eq!((counters.completed, counters.failed, counters.rejected), (2, 2, 0));
    assert_eq!((counters.tool_errors, counters.notifications), (1, 3));
    assert_eq!(calls.rpc_errors, BTreeMap::from([(-32_050, 2)]));
    assert_eq!(calls.errors, BTreeMap::from([("rpc_error".to_owned(), 2)]));
    let all = BTreeMap::from([(-32_050, 2), (-32_602, 1)]);
    assert_eq!((results.total.rpc_errors, results.total.counters.scheduled), (all, 7));
    // A tool's own error is a success of the server.
    assert_eq!(results.total.counters.unexpected, 3);
    // Cells are by operation, and add up.
    let scheduled: u64 = results.cells.iter().map(|cell| cell.counters.scheduled).sum();
    assert_eq!((results.cells.len(), scheduled), (5, 8));
}

#[test]
fn codes_survive_the_file_and_thresholds_are_judged_by_operation() {
    let bound = |metric, expression| Limit::parse(metric, expression).unwrap();
    let summary = summary(&[
        bound("failed{operation:tools/call}", "==2"),
        bound("failed{operation:tools/list}", "==2"),
        bound("failed{operation:ping}", "==0"),
    ]);
    let judged: Vec<_> = summary.thresholds.iter().map(|result| &result.judgement).collect();
    assert_eq!(judged[..2], [&Judgement::Pass, &Judgement::Fail]);
    assert!(matches!(judged[2], Judgement::Inconclusive(_)), "nothing was asked");
    let text = serde_json::to_string(&summary).unwrap();
    let read: RunSummary = serde_json::from_str(&text).unwrap();
    assert_eq!(read.results.by_operation, summary.results.by_operation);
}
