//! Agents against a server that was written for these tests: its log is the truth.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use plimsoll_engine::Control;
use plimsoll_measure::{Operation, Outcome, RpcReport, TaskEnd, TaskPart, TaskSample};
use plimsoll_metrics::{Counters, TaskTotals};
use plimsoll_mock::RpcOutcome;

use crate::agent_server::{AgentServer, Logged, Options};
use crate::support::{Ran, joined, log_of, mock, mock_with, plan, run, run_under, url};

const AGENT: &str = "
content: {mode: sized, approx_input_tokens: 16}
max_tokens: 8
drain: 10s
";

/// The counters of the requests of an agent's part: chat, tools or approvals.
fn counters(ran: &Ran, scenario: u16) -> Counters {
    *ran.result.snapshot.total(|key| key.scenario.0 == scenario).counters()
}

/// Requests that reached the target.
fn sent(ran: &Ran, scenario: u16) -> u64 {
    let counters = counters(ran, scenario);
    counters.scheduled - counters.never_sent
}

fn totals(ran: &Ran) -> TaskTotals {
    let groups = ran.result.tasks.groups(&ran.result.metadata).unwrap();
    assert_eq!(groups.len(), 1, "one agent, one target");
    groups[0].totals
}

/// Compares everything that was counted with the server's log.
fn agree(ran: &Ran, log: &[Logged]) {
    let count = |is: &dyn Fn(&Logged) -> bool| log.iter().filter(|row| is(row)).count() as u64;
    let decides = |word: &str| count(&|row| row.path.ends_with(word));
    let [chats, tools] = [count(&Logged::is_chat), count(&Logged::is_tool)];
    let asks = count(&|row| row.path == "/v1/hitl");
    let decisions = decides("/approve") + decides("/reject");
    assert_eq!([sent(ran, 0), sent(ran, 1)], [chats, tools], "chat and tools");
    let has_approvals = ran.result.metadata.scenarios.len() > 2;
    assert_eq!(if has_approvals { sent(ran, 2) } else { 0 }, asks + decisions, "approvals");
    let totals = totals(ran);
    let ends = totals.done + totals.bound + totals.failed + totals.unfinished;
    assert_eq!(totals.started, ends);
    assert_eq!(totals.started, ran.tasks.len() as u64, "a row for every task");
    assert_eq!(totals.steps, counters(ran, 0).completed, "steps are whole answers of the model");
    assert_eq!(totals.tool_calls, counters(ran, 1).completed);
    // Each id of the log is that of one turn, and of no other.
    let ids: BTreeMap<&str, &Logged> = log.iter().map(|row| (row.id.as_str(), row)).collect();
    assert_eq!(ids.len(), log.len());
    agree_on_tool_errors(ran, &ids);
    for task in &ran.tasks {
        agree_on_task(ran, task, &ids);
    }
}

/// A tool's own error is only in the row of its call.
fn agree_on_tool_errors(ran: &Ran, ids: &BTreeMap<&str, &Logged>) {
    let seed = ran.result.metadata.run.id_seed();
    let mut tool_errors = 0;
    for sample in ran.samples.iter().filter(|sample| sample.outcome != Outcome::NeverSent) {
        let conversation = plimsoll_workload::conversation_id(seed, sample.conversation);
        let row = ids[format!("{conversation}-{}", sample.turn).as_str()];
        let failed = row.is_tool() && row.is_error && sample.outcome == Outcome::Completed;
        assert_eq!(sample.rpc.tool_error, failed, "{sample:?} {row:?}");
        tool_errors += u64::from(failed);
    }
    assert_eq!(counters(ran, 1).tool_errors, tool_errors);
    assert_eq!(totals(ran).tool_errors, tool_errors);
}

/// Compares one task with the log, request by request.
fn agree_on_task(ran: &Ran, task: &TaskSample, ids: &BTreeMap<&str, &Logged>) {
    let seed = ran.result.metadata.run.id_seed();
    let conversation = plimsoll_workload::conversation_id(seed, task.conversation);
    let rows: Vec<_> =
        (0..).map_while(|turn| ids.get(format!("{conversation}-{turn}").as_str())).collect();
    let turns = ran.samples.iter().filter(|sample| sample.conversation == task.conversation);
    let turns: Vec<_> = turns.collect();
    let sent = turns.iter().filter(|sample| sample.outcome != Outcome::NeverSent).count();
    assert_eq!(rows.len(), sent, "{conversation}");
    let loop_time: u64 = task.times.iter().map(|time| time.as_u64()).sum();
    assert_eq!(loop_time, task.loop_time().as_u64(), "the parts add up");
    if task.end != TaskEnd::Done {
        return;
    }
    let count = |is: &dyn Fn(&Logged) -> bool| rows.iter().filter(|row| is(row)).count();
    let counts = task.counts;
    assert_eq!(usize::from(counts.steps), count(&Logged::is_chat));
    assert_eq!(usize::from(counts.tool_calls), count(&Logged::is_tool));
    assert_eq!(usize::from(counts.approved), count(&|row| row.path.ends_with("/approve")));
    assert_eq!(usize::from(counts.rejected), count(&|row| row.path.ends_with("/reject")));
    assert_eq!(counts.approvals, counts.approved + counts.rejected);
    let errors = rows.iter().filter(|row| row.is_tool() && row.is_error).count();
    assert_eq!(usize::from(counts.tool_errors), errors);
    // The server decides by the conversation how many rounds of calls it asks for.
    let rounds = AgentServer::rounds(conversation.as_str());
    assert_eq!(usize::from(counts.steps), rounds + 1);
    assert_eq!(usize::from(counts.tool_calls + counts.rejected), 2 * rounds);
    // Every result that the server gave is in the last dialogue, in order.
    let dialogue = &rows.iter().rfind(|row| row.is_chat()).unwrap().body;
    let mut rest = dialogue.as_str();
    for row in rows.iter().filter(|row| row.is_tool()) {
        assert!(rest.contains(&row.answer), "{} in {rest}", row.answer);
        let at = rest.find(&row.answer).unwrap();
        rest = &rest[at + row.answer.len()..];
    }
}

#[test]
fn counts_of_tasks_agree_with_the_servers_log_over_rest_with_approvals() {
    let server = AgentServer::start(Options::default());
    let ran = run(plan(
        &server.url(),
        &format!(
            "{AGENT}stages: '6:700ms'\nstream: true\n\
             agent: {{approve: {{tools: [second], share: 0.5, think_time: 2ms}}}}"
        ),
    ));
    let log = server.log();
    agree(&ran, &log);
    let totals = totals(&ran);
    assert_eq!((totals.done, totals.failed), (totals.started, 0), "{totals:?}");
    assert!(totals.started > 20 && totals.tool_errors > 0 && totals.rejected > 0, "{totals:?}");
    assert!(totals.approved > 0 && totals.approvals == totals.approved + totals.rejected);
    assert!(ran.tasks.iter().all(|task| task.first_token.is_some()));
    // The human's think time is part of the approvals.
    let asked = ran.tasks.iter().filter(|task| task.counts.approvals > 0);
    for task in asked {
        let least = u64::from(task.counts.approvals) * 2_000_000;
        assert!(task.times[TaskPart::Approvals as usize].as_u64() >= least);
    }
}

#[test]
fn counts_agree_over_mcp_answered_as_json_and_as_events_in_every_dialect() {
    for (protocol, events) in
        [("openai-chat", true), ("openai-responses", false), ("anthropic-messages", true)]
    {
        let server = AgentServer::start(Options { events, ..Options::default() });
        let profile = format!(
            "{AGENT}stages: '3:300ms'\nprotocol: {protocol}\n\
             agent: {{tools: mcp, tool_path: /tools/mcp}}"
        );
        let ran = run(plan(&server.url(), &profile));
        let log = server.log();
        agree(&ran, &log);
        let totals = totals(&ran);
        assert!(totals.done > 5 && totals.done == totals.started, "{protocol}: {totals:?}");
        assert!(totals.tool_errors > 0, "{protocol}: {totals:?}");
    }
}

#[test]
fn bounds_and_errors_end_tasks_where_they_happen() {
    let always = Options { rounds: Some(1_000), ..Options::default() };
    let server = AgentServer::start(always.clone());
    let ran =
        run(plan(&server.url(), &format!("{AGENT}stages: '@20:500ms'\nagent: {{max_steps: 3}}")));
    let log = server.log();
    agree(&ran, &log);
    let totals = totals(&ran);
    assert_eq!((totals.started, totals.bound), (10, 10));
    // Three answers, and the calls of the first two.
    assert_eq!((totals.steps, totals.tool_calls), (30, 40));

    let rest = "agent: {}";
    let mcp = "agent: {tools: mcp}";
    let approve = "agent: {approve: {tools: ['*']}}";
    let fails = |at: &'static str, how| Options { fails: Some((at, how)), ..always.clone() };
    for (options, agent, part) in [
        (fails("/v1/mcp/tools/call", "HTTP/1.1 403 Forbidden"), rest, TaskPart::Tools),
        (fails("/v1/mcp/tools/call", "HTTP/1.1 500 Oh"), rest, TaskPart::Tools),
        (fails("/v1/mcp/tools/call", r#"{"name":"x"}"#), rest, TaskPart::Tools),
        (
            fails("/mcp", r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#),
            mcp,
            TaskPart::Tools,
        ),
        (fails("/mcp", r#"{"jsonrpc":"2.0","id":999,"result":{}}"#), mcp, TaskPart::Tools),
        (fails("/v1/hitl", r#"{"state":"pending"}"#), approve, TaskPart::Approvals),
        (fails("/v1/hitl/h/approve", r#"{"state":"rejected"}"#), approve, TaskPart::Approvals),
        (fails("/v1/chat/completions", "HTTP/1.1 429 Slow"), rest, TaskPart::Chat),
    ] {
        let server = AgentServer::start(options.clone());
        let ran = run(plan(&server.url(), &format!("{AGENT}stages: '@20:300ms'\n{agent}")));
        let log = server.log();
        let groups = ran.result.tasks.groups(&ran.result.metadata).unwrap();
        assert_eq!((groups[0].totals.started, groups[0].totals.failed), (6, 6), "{options:?}");
        let failed_in = BTreeMap::from([(part.name().to_owned(), 6)]);
        assert_eq!(groups[0].failed_in, failed_in, "{options:?}");
        let total: u64 = (0..ran.result.metadata.scenarios.len())
            .map(|scenario| sent(&ran, scenario.try_into().unwrap()))
            .sum();
        assert_eq!(total, log.len() as u64, "{options:?}");
        assert!(ran.tasks.iter().all(|task| task.failed_in == Some(part)));
    }
}

#[test]
fn counts_agree_when_the_run_is_ended_early() {
    let slow = Options { latency: Duration::from_millis(15), ..Options::default() };
    let agent = "agent: {approve: {tools: [second], share: 0.5}}";
    // By the number of requests.
    let server = AgentServer::start(slow.clone());
    let profile = format!("{AGENT}stages: '5:30s'\nmax_requests: 83\n{agent}");
    let ran = run(plan(&server.url(), &profile));
    let log = server.log();
    agree(&ran, &log);
    assert_eq!(log.len(), 83);
    assert!(totals(&ran).unfinished > 0, "{:?}", totals(&ran));

    // By the user, with requests in flight: they get the time to end.
    let server = AgentServer::start(slow);
    let control = Control::new();
    let handle = control.clone();
    let interrupt = thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        handle.interrupt();
    });
    let profile = format!("{AGENT}stages: '5:30s'\n{agent}");
    let ran = run_under(plan(&server.url(), &profile), &control, &mut |_| {});
    interrupt.join().unwrap();
    let log = server.log();
    agree(&ran, &log);
    let totals = totals(&ran);
    assert!(totals.unfinished > 0 && totals.started > totals.unfinished, "{totals:?}");
}

/// The last answers of the tasks come when the stage is long over.
#[test]
fn tasks_go_on_in_the_drain_time_and_new_ones_do_not_begin() {
    let options =
        Options { rounds: Some(4), latency: Duration::from_millis(60), ..Options::default() };
    let server = AgentServer::start(options);
    let ran = run(plan(&server.url(), &format!("{AGENT}stages: '@20:300ms'\nagent: {{}}")));
    let log = server.log();
    agree_counts_only(&ran, &log);
    let totals = totals(&ran);
    assert_eq!((totals.started, totals.done), (6, 6), "{totals:?}");
    assert_eq!((totals.steps, totals.tool_calls), (6 * 5, 6 * 8));

    // Where the drain time does not suffice, they are told apart.
    let slow =
        Options { rounds: Some(50), latency: Duration::from_millis(60), ..Options::default() };
    let server = AgentServer::start(slow);
    let profile = format!("{AGENT}stages: '@20:300ms'\nagent: {{max_steps: 60}}");
    let ran = run(plan(&server.url(), &profile.replace("drain: 10s", "drain: 400ms")));
    let log = server.log();
    agree_counts_only(&ran, &log);
    assert_eq!(crate::agent::totals(&ran).unfinished, 6);
}

fn agree_counts_only(ran: &Ran, log: &[Logged]) {
    let chats = log.iter().filter(|row| row.is_chat()).count() as u64;
    let tools = log.iter().filter(|row| row.is_tool()).count() as u64;
    assert_eq!([sent(ran, 0), sent(ran, 1)], [chats, tools]);
    let totals = totals(ran);
    assert_eq!(totals.steps, counters(ran, 0).completed);
    assert_eq!(totals.tool_calls, counters(ran, 1).completed);
}

/// A chat without an agent answers tool calls as it always did, and has no tasks.
#[test]
fn a_plain_chat_has_no_tasks() {
    let server = AgentServer::start(Options::default());
    let ran = run(plan(&server.url(), &format!("{AGENT}stages: '2:200ms'\nturns: 2")));
    assert!(ran.result.tasks.groups(&ran.result.metadata).unwrap().is_empty());
    assert!(ran.tasks.is_empty() && ran.result.metadata.scenarios.len() == 1);
    assert!(server.log().iter().all(Logged::is_chat));
}

/// Tools that fail, by their result or by an error of JSON-RPC, are in the rows of their calls and
/// in the table of codes.
#[test]
fn errors_of_tools_are_counted_as_the_mocks_log_has_them() {
    let mock = mock_with(
        "other_models: {tool_loop: {steps: 3, tools: [echo], parallel: 2}}
mcp: {tools: {echo: {tool_error_share: 0.3, rpc_error_share: 0.1, rpc_error_code: -32050}}}",
    );
    let profile = format!("{AGENT}stages: '3:60s'\nmax_requests: 300\nagent: {{tools: mcp}}");
    let ran = run(plan(&url(&mock), &profile));
    let log = log_of(&mock, ran.sent());
    let (mut codes, mut tool_errors, mut calls) = (BTreeMap::new(), 0, 0);
    for (sample, record) in joined(&ran, &log) {
        let Some(rpc) = &record.rpc else {
            assert_eq!((sample.operation, sample.rpc), (None, RpcReport::default()));
            continue;
        };
        assert_eq!((sample.scenario.0, sample.operation), (1, Some(Operation::CallTool)));
        let code = (rpc.outcome == RpcOutcome::Error).then_some(rpc.code).flatten();
        assert_eq!(sample.rpc.code.map(i64::from), code, "{sample:?} {rpc:?}");
        assert_eq!(sample.rpc.tool_error, rpc.outcome == RpcOutcome::ToolError);
        calls += 1;
        tool_errors += u64::from(sample.rpc.tool_error);
        if let Some(code) = code {
            *codes.entry(i32::try_from(code).unwrap()).or_insert(0_u64) += 1;
        }
    }
    let group = ran.result.snapshot.total(|key| key.operation == Some(Operation::CallTool));
    assert_eq!(group.counters().scheduled, calls);
    assert_eq!((group.rpc_errors(), group.counters().tool_errors), (&codes, tool_errors));
    assert!(codes[&-32_050] > 3 && tool_errors > 10, "{codes:?} {tool_errors}");
}

/// The mock's models call a tool of its own tool server.
#[test]
fn counts_agree_with_the_mocks_log() {
    let mock = mock("output: 40, tool_loop: {steps: 3, tools: [echo], parallel: 2}");
    let profile = format!("{AGENT}stages: '3:400ms'\nstream: true\nagent: {{tools: mcp}}");
    let ran = run(plan(&url(&mock), &profile.replace("max_tokens: 8", "max_tokens: 400")));
    let log = mock.take_log();
    let calls = log.iter().filter(|record| record.rpc.is_some()).count() as u64;
    assert_eq!([sent(&ran, 0), sent(&ran, 1)], [log.len() as u64 - calls, calls]);
    let totals = totals(&ran);
    assert!(totals.done > 3 && totals.done == totals.started, "{totals:?}");
    // Three rounds of two calls, and the text.
    assert_eq!((totals.steps, totals.tool_calls), (4 * totals.done, 6 * totals.done));
    assert_eq!(joined(&ran, &log).len(), log.len(), "every turn under its own id");
}
