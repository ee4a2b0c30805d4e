//! Chats over WebSockets: each turn, handshake and end against the mock's own log.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use plimsoll_engine::Control;
use plimsoll_measure::{ErrorClass, Nanos, Outcome, Sample};
use plimsoll_mock::{LogRecord, Mock, RequestEnd, WebSocketEvent};

use crate::support::{Ran, mock, plan, run, run_under, url};

/// Chats of three turns.
const CHAT: &str = "protocol: websocket\nturns: 3\nthink_time: 2ms\ndrain: 5s\n\
                    content: {mode: sized, approx_input_tokens: 64}\n";

fn with_event(log: &[LogRecord], event: WebSocketEvent) -> Vec<&LogRecord> {
    log.iter()
        .filter(|record: &&LogRecord| {
            record.websocket.as_ref().is_some_and(|websocket| websocket.event == event)
        })
        .collect()
}

/// The log, once no connection is open any more.
fn log(mut mock: Mock) -> Vec<LogRecord> {
    for _ in 0..2_000 {
        if mock.stats().connections_open == 0 {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    mock.shutdown();
    mock.take_log()
}

/// Each turn's record, by the id that follows from the conversation.
fn turns<'l>(ran: &Ran, log: &'l [LogRecord]) -> Vec<(Sample, Option<&'l LogRecord>)> {
    let by_id: BTreeMap<&str, &LogRecord> = with_event(log, WebSocketEvent::Turn)
        .into_iter()
        .map(|record| (record.request_id.as_deref().unwrap(), record))
        .collect();
    assert_eq!(by_id.len(), with_event(log, WebSocketEvent::Turn).len(), "ids are unique");
    let ids = ran.result.metadata.run.id_seed();
    let id = |sample: &Sample| {
        let conversation = plimsoll_workload::conversation_id(ids, sample.conversation);
        format!("{}-0/{}", conversation.as_str(), sample.turn)
    };
    ran.samples.iter().map(|sample| (*sample, by_id.get(&*id(sample)).copied())).collect()
}

#[test]
fn turns_handshakes_and_ends_agree_with_the_log_exactly() {
    let mock = mock("ttft: {constant: 5ms}, gap: {constant: 2ms}, default_output: 8");
    let ran = run(plan(&url(&mock), &format!("{CHAT}stages: '8:1s'\n")));
    let log = log(mock);
    let accounting = ran.accounting();
    assert_eq!(accounting.completed, accounting.scheduled, "{accounting}");
    assert!(accounting.scheduled > 50, "{accounting}");
    assert_eq!(with_event(&log, WebSocketEvent::Turn).len(), ran.samples.len());
    for (sample, record) in turns(&ran, &log) {
        let record = record.unwrap();
        assert_eq!(record.end, Some(RequestEnd::Completed));
        assert_eq!((sample.status, sample.stream, sample.events), (101, true, 8));
        assert_eq!(sample.usage.completion.count, record.planned_tokens);
        assert_eq!(u64::from(sample.usage.prompt.count), record.prompt_tokens);
        assert_eq!(record.prompt_tokens, 64);
        // The frames of the answer, and nothing of the handshake.
        let bytes: u64 = record.chunks.iter().map(|chunk| chunk.bytes).sum();
        assert_eq!(sample.bytes_in, bytes);
        let message = record.websocket.as_ref().unwrap().message_bytes;
        assert_eq!(sample.bytes_out, message + 8, "two bytes, two of the length, and the key");
        let opens = sample.turn == 0;
        assert_eq!((sample.reused, sample.connect.upgrade.is_some()), (!opens, opens));
        assert_eq!(sample.connect.tcp.is_some(), opens);
    }
    // One connection for each conversation, and each closed with 1000 by us.
    let conversations: BTreeSet<u64> = ran.samples.iter().map(|s| s.conversation.0).collect();
    assert_eq!(with_event(&log, WebSocketEvent::Handshake).len(), conversations.len());
    let connections: BTreeSet<u64> =
        with_event(&log, WebSocketEvent::Turn).iter().map(|record| record.connection).collect();
    assert_eq!(connections.len(), conversations.len());
    let ends = with_event(&log, WebSocketEvent::End);
    assert_eq!(ends.len(), conversations.len());
    for end in ends {
        let end = end.websocket.as_ref().unwrap();
        assert_eq!((end.code, end.by_client), (Some(1000), true));
    }
    // Unique prompts by default.
    let prompts: BTreeSet<u64> =
        with_event(&log, WebSocketEvent::Turn).iter().map(|record| record.prompt_hash).collect();
    assert_eq!(prompts.len(), ran.samples.len());
}

/// The times are those of the log, at least in the quietest of some attempts.
#[test]
fn times_to_the_first_token_and_between_tokens_are_those_of_the_log() {
    let mut worst = Nanos::ZERO;
    for _ in 0..5 {
        let mock = mock("ttft: {constant: 20ms}, gap: {constant: 5ms}, default_output: 6");
        let ran = run(plan(&url(&mock), &format!("{CHAT}stages: '@20:500ms'\n")));
        let log = log(mock);
        let mut errors = Vec::new();
        for (sample, record) in turns(&ran, &log) {
            let (line, record) = (sample.timeline, record.unwrap());
            assert_eq!(sample.outcome, Outcome::Completed);
            let sent = line.sent.unwrap();
            let first = line.first_token.unwrap().since(sent);
            let span = line.last_token.unwrap().since(line.first_token.unwrap());
            let content: Vec<_> = record.chunks.iter().filter(|chunk| chunk.tokens > 0).collect();
            let (one, last) = (content[0], content[content.len() - 1]);
            let truth = [one.written - record.arrived, last.written - one.written];
            for (ours, truth) in [first, span].into_iter().zip(truth) {
                errors.push(Nanos::new(ours.as_u64().abs_diff(truth)));
            }
            assert!(sample.gaps.count <= 5);
        }
        errors.sort_unstable();
        worst = errors[errors.len() / 2];
        if worst < Nanos::from_micros(500) {
            return;
        }
    }
    panic!("half of the times differ by more than {worst}");
}

#[test]
fn a_run_that_ends_early_accounts_for_each_turn() {
    let mock = mock("ttft: {constant: 50ms}, default_output: 4");
    let control = Control::new();
    let profile = format!("{CHAT}stages: '@60:30s'\n").replace("drain: 5s", "drain: 20ms");
    let mut seconds = 0;
    let ran = run_under(plan(&url(&mock), &profile), &control, &mut |_| {
        seconds += 1;
        control.interrupt();
    });
    let log = log(mock);
    assert!(seconds > 0 && ran.samples.len() > 20, "{}", ran.samples.len());
    let mut records = 0;
    for (sample, record) in turns(&ran, &log) {
        records += usize::from(record.is_some());
        match sample.outcome {
            Outcome::Completed => assert_eq!(record.unwrap().end, Some(RequestEnd::Completed)),
            // It may have been dropped before its message was sent.
            Outcome::InFlight => {
                let end = record.and_then(|record| record.end);
                assert!(!matches!(end, Some(RequestEnd::Aborted | RequestEnd::ShutDown)));
            }
            Outcome::NeverSent => assert!(record.is_none()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        records,
        with_event(&log, WebSocketEvent::Turn).len(),
        "no turn that nobody knows of"
    );
    let complete = with_event(&log, WebSocketEvent::Turn)
        .iter()
        .filter(|record| record.end == Some(RequestEnd::Completed))
        .count();
    assert!(ran.count("completed") <= complete);
}

#[test]
fn each_bad_end_has_its_class_and_the_next_conversation_a_new_connection() {
    for (model, headers, expected) in [
        ("faults: [{fault: cut@2, share: 1}]", "", ErrorClass::StreamTruncated),
        ("faults: [{fault: cut@0, share: 1}]", "", ErrorClass::ClosedEarly),
        ("faults: [{fault: truncate@2, share: 1}]", "", ErrorClass::WebsocketClosed),
        ("faults: [{fault: error@2, share: 1}]", "", ErrorClass::StreamError),
        ("faults: [{fault: '503', share: 1}]", "", ErrorClass::StreamError),
        ("faults: [{fault: reset, share: 1}]", "", ErrorClass::Reset),
        ("", "headers: {x-mock-status: '503'}", ErrorClass::ServerError),
    ] {
        let mock = mock(&format!("gap: 1ms, default_output: 4, {model}").replace(", }", "}"));
        let profile = format!("{CHAT}{headers}\nstages: '@50:200ms'\n");
        let ran = run(plan(&url(&mock), &profile));
        let log = log(mock);
        assert_eq!(ran.samples.len(), 10, "the first turn ends the conversation");
        for sample in &ran.samples {
            assert_eq!(sample.outcome, Outcome::Failed(expected), "{model}{headers}");
        }
        let recorded = with_event(&log, WebSocketEvent::Turn).len();
        assert_eq!(recorded, if headers.is_empty() { 10 } else { 0 }, "{model}{headers}");
        assert_eq!(with_event(&log, WebSocketEvent::Handshake).len(), 10);
    }
}

#[test]
fn refusals_and_time_limits_are_counted_as_such() {
    let mock = mock("");
    let refused = format!("{CHAT}headers: {{x-mock-status: '401'}}\nstages: '@50:200ms'\n");
    let ran = run(plan(&url(&mock), &refused));
    assert!(ran.samples.iter().all(|sample| sample.outcome == Outcome::Rejected(401)));
    assert_eq!(ran.result.causes[0].kind, "status 401");
    let log_of_refusals = log(mock);
    assert_eq!(log_of_refusals.len(), 10);
    let mock = crate::support::mock("faults: [{fault: hang, share: 1}]");
    let hangs = format!("{CHAT}timeout: 200ms\nstages: '@50:200ms'\n");
    let ran = run(plan(&url(&mock), &hangs));
    assert_eq!(ran.count("timed_out"), 10);
    let log = log(mock);
    let ends = with_event(&log, WebSocketEvent::End);
    let codes: BTreeSet<_> = ends.iter().map(|end| end.websocket.as_ref().unwrap().code).collect();
    assert_eq!((ends.len(), codes), (10, BTreeSet::from([Some(1001)])), "the client goes away");
}

#[test]
fn a_share_of_faults_is_counted_as_in_the_log() {
    let mock = mock(
        "default_output: 4, faults: [{fault: cut@1, share: 0.2}, {fault: error@1, share: 0.2}]",
    );
    let ran = run(plan(&url(&mock), &format!("{CHAT}stages: '@200:1s'\n")));
    let log = log(mock);
    let mut counts: BTreeMap<(String, Option<String>), usize> = BTreeMap::new();
    for (sample, record) in turns(&ran, &log) {
        let fault = record.unwrap().fault.clone();
        *counts.entry((format!("{:?}", sample.outcome), fault)).or_default() += 1;
    }
    let kinds: Vec<_> = counts.keys().cloned().collect();
    let expected = [
        ("Completed", None),
        ("Failed(StreamError)", Some("error@1")),
        ("Failed(StreamTruncated)", Some("cut@1")),
    ]
    .map(|(outcome, fault): (&str, Option<&str>)| (outcome.to_owned(), fault.map(str::to_owned)));
    assert_eq!(kinds, expected, "{counts:?}");
}

/// A target that answers every handshake with 200 is found by the probe.
#[test]
fn a_target_without_websockets_stops_the_run_before_its_load() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4_096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        }
    });
    let run = plimsoll_engine::Run::prepare(plan(&target, &format!("{CHAT}stages: 1:1s\n")));
    let report = run.unwrap().probe().unwrap();
    let finding = &report.findings[0];
    assert!(
        finding.fatal && finding.message.contains("failed: WebSocket handshake"),
        "{finding:?}"
    );
}
