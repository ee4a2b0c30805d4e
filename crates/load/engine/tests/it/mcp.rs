//! Sessions with tool servers: what the engine counts is what the mock's log says.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_measure::{ErrorClass, Operation, Outcome, Sample};
use plimsoll_mock::{LogRecord, Mock, RpcOutcome, RpcRecord};

use crate::support::{Ran, joined, log_of, mock_with, plan, run, url};

const SERVER: &str = "page: 2, tools: {
    echo: {echo: true},
    failing: {tool_error_share: 0.3, rpc_error_share: 0.3, rpc_error_code: -32050},
    steps: {latency: 5ms, progress: 3},
    slow: {latency: 30s},
    giant: {result_bytes: 1500000},
    cut: {progress: 2, faults: [{fault: truncate@1, share: 1}]},
    dropped: {faults: [{fault: reset, share: 1}]}}";

/// A mock whose tool server has these settings.
fn tool_server(settings: &str) -> Mock {
    mock_with(&format!("mcp: {{{settings}}}"))
}

/// Runs sessions of this many users with these steps against a mock, so many requests however long
/// they take.
fn sessions(mock: &Mock, users: u32, requests: u32, more: &str, mcp: &str) -> Ran {
    let load = format!("stages: '{users}:60s'\nmax_requests: {requests}\ndrain: 60s");
    let profile = format!("protocol: mcp\n{load}\n{more}\nmcp:\n  {}\n", indented(mcp));
    run(plan(&url(mock), &profile))
}

fn indented(lines: &str) -> String {
    lines.replace('\n', "\n  ")
}

fn rpc(record: &LogRecord) -> &RpcRecord {
    record.rpc.as_deref().unwrap()
}

/// Compares each request with its row, and gives the pairs.
fn compared<'l>(ran: &Ran, log: &'l [LogRecord]) -> Vec<(Sample, &'l RpcRecord)> {
    let pairs = joined(ran, log);
    assert_eq!((pairs.len(), ran.sent()), (log.len(), log.len()));
    for (sample, record) in &pairs {
        let (operation, rpc) = (sample.operation.unwrap(), rpc(record));
        let method = (operation != Operation::EndSession).then(|| operation.name());
        assert_eq!(rpc.method.as_deref(), method);
        let code = (rpc.outcome == RpcOutcome::Error).then_some(rpc.code).flatten();
        assert_eq!(sample.rpc.code.map(i64::from), code, "{sample:?} {rpc:?}");
        assert_eq!(sample.rpc.tool_error, rpc.outcome == RpcOutcome::ToolError);
    }
    pairs.into_iter().map(|(sample, record)| (sample, rpc(record))).collect()
}

fn count<T>(items: &[T], of: impl Fn(&T) -> bool) -> u64 {
    items.iter().filter(|item| of(item)).count() as u64
}

#[test]
fn every_step_of_every_session_is_in_the_log_as_it_was_counted() {
    let mock = tool_server(SERVER);
    let ran = sessions(
        &mock,
        4,
        500,
        "turns: 6",
        "steps:
- {method: tools/call, name: echo, argument_bytes: {min: 0, max: 5000}, weight: 4}
- {method: tools/call, name: failing, weight: 2}
- {method: tools/call, name: steps, progress: true}
- {method: tools/call, name: nobody, weight: 0.5}
- {method: tools/list, weight: 2}
- {method: resources/list}
- {method: resources/templates/list}
- {method: resources/read, name: 'mock://notes'}
- {method: prompts/list}
- {method: prompts/get, name: greeting, arguments: {name: Ada}}
- {method: ping}",
    );
    let log = log_of(&mock, ran.sent());
    let pairs = compared(&ran, &log);
    assert_groups(&ran, &pairs);
    assert_sessions(&ran, &log, &pairs);
    // Pages follow one another: no cursor was refused, and both pages were read.
    let listed = pairs.iter().filter(|(s, _)| s.operation == Some(Operation::ListTools));
    assert!(listed.clone().all(|(sample, _)| sample.outcome == Outcome::Completed));
    let sizes: BTreeSet<u64> = listed.map(|(_, rpc)| rpc.request_bytes).collect();
    assert!(sizes.len() > 1, "some requests have a cursor: {sizes:?}");
}

/// Each group of the results, against the rows of its method.
fn assert_groups(ran: &Ran, pairs: &[(Sample, &RpcRecord)]) {
    let operations: BTreeSet<Operation> = pairs.iter().filter_map(|(s, _)| s.operation).collect();
    assert_eq!(operations.len(), 11, "{operations:?}");
    for operation in operations {
        let group = ran.result.snapshot.total(|key| key.operation == Some(operation));
        let rows: Vec<_> = pairs.iter().filter(|(s, _)| s.operation == Some(operation)).collect();
        let counters = group.counters();
        assert_eq!(counters.scheduled, rows.len() as u64, "{operation:?}");
        let errors = count(&rows, |(_, rpc)| rpc.outcome == RpcOutcome::Error);
        assert_eq!((counters.failed, counters.rejected), (errors, 0), "{operation:?}");
        assert_eq!(counters.completed, rows.len() as u64 - errors);
        let tool_errors = count(&rows, |(_, rpc)| rpc.outcome == RpcOutcome::ToolError);
        assert_eq!(counters.tool_errors, tool_errors);
        let progress: u64 = rows.iter().map(|(_, rpc)| u64::from(rpc.progress)).sum();
        assert_eq!(counters.notifications, progress);
        let mut codes = BTreeMap::new();
        for code in rows.iter().filter_map(|(_, rpc)| rpc.code) {
            *codes.entry(i32::try_from(code).unwrap()).or_insert(0_u64) += 1;
        }
        assert_eq!(group.rpc_errors(), &codes, "{operation:?}");
    }
    let total = ran.result.snapshot.total(|_| true);
    assert!(total.counters().tool_errors > 0 && total.counters().notifications > 0);
    assert!(total.rpc_errors().contains_key(&-32_050) && total.rpc_errors().contains_key(&-32_602));
    let errors: u64 = total.rpc_errors().values().sum();
    assert_eq!(total.errors().get(&ErrorClass::RpcError), Some(&errors));
}

/// Sessions: one for each conversation, opened and ended as often as the engine says.
fn assert_sessions(ran: &Ran, log: &[LogRecord], pairs: &[(Sample, &RpcRecord)]) {
    let conversations = ran.result.health.conversations.as_ref().unwrap();
    let rows_of = |method: &str| count(log, |r| rpc(r).method.as_deref() == Some(method));
    assert_eq!(rows_of("initialize"), conversations.started);
    let ended = count(log, |r| rpc(r).outcome == RpcOutcome::SessionEnded);
    assert_eq!(ended, conversations.finished);
    assert!(conversations.finished > 4, "{conversations:?}");
    let mut sessions: BTreeMap<u64, BTreeSet<&str>> = BTreeMap::new();
    for (sample, rpc) in pairs {
        let session = rpc.session.as_deref().unwrap();
        sessions.entry(sample.conversation.0).or_default().insert(session);
    }
    assert!(sessions.values().all(|names| names.len() == 1));
    let all: BTreeSet<_> = sessions.values().flatten().collect();
    assert_eq!(all.len() as u64, conversations.started);
}

#[test]
fn without_sessions_every_request_stands_for_itself() {
    let mock = tool_server(SERVER);
    let ran = sessions(
        &mock,
        4,
        100,
        "turns: 4",
        "revision: '2026-07-28'
steps:
- {method: tools/call, name: echo, argument_bytes: {min: 10, max: 10}, weight: 3}
- {method: tools/call, name: steps, progress: true}
- {method: tools/call, name: nobody}
- {method: tools/list}
- {method: server/discover}",
    );
    let log = log_of(&mock, ran.sent());
    let pairs = compared(&ran, &log);
    assert!(log.iter().all(|record| rpc(record).session.is_none()));
    assert!(log.iter().all(|record| rpc(record).version.as_deref() == Some("2026-07-28")));
    // Errors have a status of their own here, and the conversation goes on all the same.
    let refused = pairs.iter().filter(|(_, rpc)| rpc.name.as_deref() == Some("nobody"));
    let outcomes: Vec<_> = refused.map(|(sample, _)| (sample.outcome, sample.rpc.code)).collect();
    assert!(!outcomes.is_empty());
    assert!(outcomes.iter().all(|end| *end == (Outcome::Rejected(400), Some(-32_602))));
    let conversations = ran.result.health.conversations.as_ref().unwrap();
    assert!(conversations.finished >= conversations.started - 4, "{conversations:?}");
}

#[test]
fn a_call_that_takes_too_long_is_given_up_and_the_server_is_told() {
    let mock = tool_server(SERVER);
    let ran = sessions(
        &mock,
        2,
        40,
        "turns: 2",
        "steps: [{method: tools/call, name: slow, cancel_after: 30ms, progress: true}]",
    );
    let log = log_of(&mock, ran.sent());
    let pairs = joined(&ran, &log);
    let of = |operation| pairs.iter().filter(move |(s, _)| s.operation == Some(operation));
    let calls: Vec<_> = of(Operation::CallTool).collect();
    assert!(calls.len() > 4, "{}", calls.len());
    for (sample, record) in &calls {
        assert_eq!(sample.outcome, Outcome::Cancelled, "{record:?}");
        let took = sample.timeline.service_time().unwrap().as_millis_f64();
        assert!((30.0..5_000.0).contains(&took), "{took}");
    }
    // Each is told of, unless the run ended first; each session goes on with its next step.
    let told: Vec<_> = of(Operation::Cancelled).collect();
    assert!(told.iter().all(|(sample, _)| sample.outcome == Outcome::Completed));
    assert!(told.len() <= calls.len() && told.len() + 2 >= calls.len(), "{}", told.len());
    assert_eq!(ran.accounting().cancelled, calls.len() as u64);
    assert_eq!(ran.accounting().timed_out, 0);
}

#[test]
fn a_session_that_the_server_has_no_longer_ends_with_a_refusal() {
    let mock = tool_server("session_timeout: 50ms");
    let ran = sessions(&mock, 3, 30, "turns: 5\nthink_time: 250ms", "steps: [{method: ping}]");
    let log = log_of(&mock, ran.sent());
    let pairs = compared(&ran, &log);
    let gone: Vec<_> = pairs.iter().filter(|(s, _)| s.outcome == Outcome::Rejected(404)).collect();
    assert!(!gone.is_empty());
    // An expired session is not deleted.
    assert_eq!(count(&pairs, |(s, _)| s.operation == Some(Operation::EndSession)), 0);
    let conversations = ran.result.health.conversations.as_ref().unwrap();
    assert_eq!(conversations.finished, 0, "{conversations:?}");
}

/// The server is told of the end of a session that breaks off, too: a deletion is no sign that all
/// steps were done.
#[test]
fn a_session_that_breaks_off_is_counted_as_ended_early() {
    let mock = tool_server(SERVER);
    let ran = sessions(
        &mock,
        2,
        200,
        "turns: 3",
        "steps:
- {method: ping, weight: 4}
- {method: tools/call, name: cut, progress: true}",
    );
    let log = log_of(&mock, ran.sent());
    let mut of_session: BTreeMap<&str, Vec<&RpcRecord>> = BTreeMap::new();
    for record in &log {
        let rpc = rpc(record);
        of_session.entry(rpc.session.as_deref().unwrap()).or_default().push(rpc);
    }
    let of_session: Vec<_> = of_session.into_values().collect();
    let deleted =
        |rows: &[&RpcRecord]| rows.iter().any(|rpc| rpc.outcome == RpcOutcome::SessionEnded);
    let cut = |rows: &[&RpcRecord]| rows.iter().any(|rpc| rpc.name.as_deref() == Some("cut"));
    let whole = count(&of_session, |rows| deleted(rows) && !cut(rows));
    let broken_off = count(&of_session, |rows| deleted(rows) && cut(rows));
    assert!(whole > 5 && broken_off > 5, "{whole} whole, {broken_off} broken off");
    let conversations = ran.result.health.conversations.as_ref().unwrap();
    assert_eq!(conversations.finished, whole, "{conversations:?}");
    assert_eq!(conversations.ended_early, conversations.started - whole);
}

#[test]
fn streams_that_stop_and_connections_that_break_are_failures_of_their_step() {
    for (tool, more, class) in [
        ("cut", "progress: true", ErrorClass::StreamTruncated),
        ("dropped", "progress: false", ErrorClass::Reset),
    ] {
        let mock = tool_server(SERVER);
        let steps = format!("steps: [{{method: tools/call, name: {tool}, {more}}}]");
        let ran = sessions(&mock, 2, 16, "turns: 3", &steps);
        let calls: Vec<_> = ran
            .samples
            .iter()
            .filter(|sample| sample.operation == Some(Operation::CallTool))
            .collect();
        assert!(!calls.is_empty());
        for sample in &calls {
            assert_eq!(sample.outcome, Outcome::Failed(class), "{tool}: {sample:?}");
        }
        // A server that answered is told that the session is over; one that did not is not.
        let told = ran.samples.iter().any(|s| s.operation == Some(Operation::EndSession));
        assert_eq!(told, tool == "cut");
    }
}

#[test]
fn a_giant_result_is_read_to_its_end() {
    let mock = tool_server(SERVER);
    let ran = sessions(
        &mock,
        1,
        2,
        "turns: 1",
        "revision: '2026-07-28'\nsteps: [{method: tools/call, name: giant}]",
    );
    let log = log_of(&mock, ran.sent());
    for (sample, record) in joined(&ran, &log) {
        assert_eq!(sample.outcome, Outcome::Completed);
        let body: u64 = record.chunks.iter().map(|chunk| chunk.bytes).sum();
        assert!(body > 1_500_000 && sample.bytes_in > body, "{} of {body}", sample.bytes_in);
    }
}

#[test]
fn a_server_that_is_none_is_found_by_the_probe() {
    let mock = tool_server("max_sessions: 1");
    let text = "protocol: mcp\nstages: '1:1s'\nmcp: {path: /nowhere, steps: [{method: ping}]}";
    let probe = |text: &str| {
        plimsoll_engine::Run::prepare(plan(&url(&mock), text)).unwrap().probe().unwrap()
    };
    let finding = &probe(text).findings[0];
    assert!(finding.fatal && finding.message.contains("404"), "{}", finding.message);
    assert!(probe(&text.replace("/nowhere", "/mcp")).findings.is_empty());
}
