//! Each fault, as a client sees it.

use std::io::ErrorKind;

use plimsoll_mock::{LogRecord, RequestEnd};

use crate::support::{Client, Response, chat, finish, spawn, wait};

const MS: u64 = 1_000_000;
const CHAT: &str = "/v1/chat/completions";
const STREAM: &str = r#","stream":true,"max_tokens":6"#;
const WHOLE: &str = r#","max_tokens":6"#;

/// One request with a fault, and its log record.
fn request_with(fault: &str, extra: &str, gap: &str) -> (Response, LogRecord) {
    let mock = spawn("log: memory");
    let headers = [("x-mock-fault", fault), ("x-mock-gap", gap)];
    let response = Client::connect(&mock).post(CHAT, &headers, &chat("hi", extra));
    let stats = mock.stats();
    let mut log = finish(mock);
    assert_eq!((log.len(), stats.requests), (1, 1), "{fault}");
    let record = log.remove(0);
    assert_eq!(record.fault.as_deref(), Some(fault));
    (response, record)
}

fn content_events(response: &Response) -> usize {
    // The role chunk has an empty content.
    response.text().matches("\"content\":\"").count().saturating_sub(1)
}

#[test]
fn faults_in_streams_come_after_their_token() {
    for gap in ["0", "300us"] {
        for (fault, events, complete, error, end) in [
            ("error@5", 5, true, None, RequestEnd::Completed),
            ("truncate@2", 2, true, None, RequestEnd::Completed),
            ("cut@5", 5, false, Some(ErrorKind::UnexpectedEof), RequestEnd::Aborted),
            ("cut@0", 0, false, Some(ErrorKind::UnexpectedEof), RequestEnd::Aborted),
            ("reset@3", 3, false, Some(ErrorKind::ConnectionReset), RequestEnd::Aborted),
        ] {
            let (response, record) = request_with(fault, STREAM, gap);
            let found = (response.status, response.complete, response.error, record.end);
            assert_eq!(found, (200, complete, error, Some(end)), "{fault}, gap {gap}");
            // A reset may overtake what was written before it.
            if error != Some(ErrorKind::ConnectionReset) {
                assert_eq!(content_events(&response), events, "{fault}, gap {gap}");
            }
            let tokens: u32 = record.chunks.iter().map(|chunk| chunk.tokens).sum();
            assert_eq!(tokens as usize, events, "{fault}, gap {gap}");
            assert!(record.chunks.iter().all(|chunk| chunk.written >= chunk.handed), "{record:?}");
            assert!(!response.text().contains("[DONE]"), "{fault}");
            assert_eq!(response.text().contains("\"error\""), fault == "error@5", "{fault}");
        }
    }
}

#[test]
fn a_stall_is_a_pause_and_loses_nothing() {
    let (response, record) = request_with("stall@3:80ms", STREAM, "1ms");
    assert!(response.complete && response.text().ends_with("data: [DONE]\n\n"));
    assert_eq!((content_events(&response), record.end), (6, Some(RequestEnd::Completed)));
    let dues: Vec<u64> =
        record.chunks.iter().map(|chunk| (chunk.due - record.body_complete) / MS).collect();
    // The head is due together with the first token.
    assert_eq!(dues, [0, 1, 2, 83, 84, 85]);
    assert!(record.chunks[3].written - record.body_complete >= 83 * MS, "{record:?}");
}

#[test]
fn full_responses_are_truncated_or_become_errors() {
    for (fault, status, error, end) in [
        ("error@3", 500, None, RequestEnd::Completed),
        ("cut@3", 200, Some(ErrorKind::UnexpectedEof), RequestEnd::Aborted),
        ("truncate@3", 200, Some(ErrorKind::UnexpectedEof), RequestEnd::Aborted),
        ("reset@3", 200, Some(ErrorKind::ConnectionReset), RequestEnd::Aborted),
    ] {
        let (response, record) = request_with(fault, WHOLE, "0");
        if error == Some(ErrorKind::ConnectionReset) {
            // A reset may overtake the head as well.
            assert_eq!((response.error, record.end), (error, Some(end)), "{fault}");
            continue;
        }
        let found = (response.status, response.complete, response.error, record.end);
        assert_eq!(found, (status, error.is_none(), error, Some(end)), "{fault}");
        if !response.complete {
            assert_eq!(response.body.len() as u64, record.chunks[0].bytes);
        }
    }
}

#[test]
fn statuses_and_resets_replace_the_response() {
    for (fault, status, retry_after) in [
        ("429:2s", 429, Some("2")),
        ("429:1s", 429, Some("1")),
        ("503", 503, None),
        ("404", 404, None),
    ] {
        let (response, record) = request_with(fault, STREAM, "0");
        assert_eq!((response.status, response.header("retry-after")), (status, retry_after));
        assert_eq!((record.status, record.end), (status, Some(RequestEnd::Completed)));
        assert!(response.complete);
    }
    let (response, record) = request_with("reset", STREAM, "0");
    assert_eq!((response.status, response.error), (0, Some(ErrorKind::ConnectionReset)));
    assert_eq!((record.status, record.end), (0, Some(RequestEnd::Aborted)));
}

#[test]
fn a_hanging_request_ends_when_its_client_disconnects() {
    let mock = spawn("log: memory");
    let mut client = Client::connect(&mock);
    client.send_post(CHAT, &[("x-mock-fault", "hang")], &chat("hi", STREAM));
    wait(|| mock.stats().in_flight == 1);
    drop(client);
    wait(|| mock.stats().in_flight == 0);
    let stats = mock.stats();
    assert_eq!((stats.requests, stats.aborted, stats.client_gone), (1, 1, 0));
    let log = finish(mock);
    assert_eq!((log[0].status, log[0].end), (0, Some(RequestEnd::Aborted)));
}

#[test]
fn pages_have_faults_too() {
    let mock = spawn("log: memory");
    for (fault, status, complete) in
        [("503", 503, true), ("cut@0", 200, false), ("error@0", 500, true), ("reset", 0, false)]
    {
        let response = Client::connect(&mock).post("/", &[("x-mock-fault", fault)], "");
        assert_eq!((response.status, response.complete), (status, complete), "{fault}");
    }
    let mut client = Client::connect(&mock);
    client.post("/", &[("x-mock-ttft", "12ms")], "");
    let log = finish(mock);
    assert_eq!(log[4].chunks[0].due - log[4].body_complete, 12 * MS);
}

#[test]
fn configured_faults_have_their_shares() {
    let yaml = "
log: memory
other_models:
  faults:
    - {fault: '429', share: 0.2}
    - {fault: cut@1, share: 0.1}
    - {fault: error@2, share: 0.1}
";
    let mut mock = spawn(yaml);
    let mut client = Client::connect(&mock);
    let mut complete = 0;
    for number in 0..1_000 {
        let id = format!("share-{number}");
        let response = client.post(CHAT, &[("x-request-id", &id)], &chat("hi", STREAM));
        complete += u64::from(response.complete);
        if !response.complete {
            client = Client::connect(&mock);
        }
    }
    mock.shutdown();
    let stats = mock.stats();
    let log = finish(mock);
    let (limited, cut, error) = (
        count_of_fault(&log, "429:1s"),
        count_of_fault(&log, "cut@1"),
        count_of_fault(&log, "error@2"),
    );
    assert_eq!((stats.completed, stats.aborted), (complete, cut));
    assert_eq!((stats.by_status[&429], stats.by_status[&200]), (limited, 1_000 - limited));
    assert!((150..250).contains(&limited), "{limited}");
    assert!((60..140).contains(&cut) && (60..140).contains(&error), "{cut} {error}");
}

fn count_of_fault(log: &[LogRecord], fault: &str) -> u64 {
    log.iter().filter(|record| record.fault.as_deref() == Some(fault)).count() as u64
}
