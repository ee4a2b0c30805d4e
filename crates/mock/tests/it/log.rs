//! The ground-truth log: complete and exact; lost records are counted.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use plimsoll_mock::{Dialect, LogRecord, MockConfig, MockError, RequestEnd};

use crate::support::{Client, chat, finish, spawn, wait};

const CHAT: &str = "/v1/chat/completions";

fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = 14_695_981_039_346_656_037u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211);
    }
    hash
}

#[test]
fn every_request_is_logged_once_and_the_counts_agree() {
    let mut mock = spawn("{log: memory, workers: 2}");
    let load = |thread: usize| {
        let mut client = Client::connect(&mock);
        for number in 0..250 {
            let id = format!("{thread}-{number}");
            let extra = if number % 2 == 0 { r#","stream":true"# } else { "" };
            let response = client.post(CHAT, &[("x-request-id", &id)], &chat("12345", extra));
            assert!(response.complete);
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|thread| drop(scope.spawn(move || load(thread)))));
    // A client can have its response a moment before the mock has counted it.
    mock.shutdown();
    let stats = mock.stats();
    let log = finish(mock);
    let sequences: Vec<u64> = log.iter().map(|record| record.sequence).collect();
    assert_eq!(sequences, (0..1_000).collect::<Vec<_>>());
    let ids: HashSet<&String> =
        log.iter().filter_map(|record| record.request_id.as_ref()).collect();
    let connections: HashSet<u64> = log.iter().map(|record| record.connection).collect();
    assert_eq!((ids.len(), connections.len()), (1_000, 4));
    assert!(log.iter().all(|record| record.end == Some(RequestEnd::Completed)));
    assert_eq!((stats.requests, stats.completed, stats.in_flight), (1_000, 1_000, 0));
    assert_eq!((stats.streams, stats.tokens_in, stats.tokens_out), (500, 2_000, 64_000));
    let tokens: u64 = log.iter().flat_map(|r| &r.chunks).map(|chunk| u64::from(chunk.tokens)).sum();
    let chunks: usize = log.iter().map(|record| record.chunks.len()).sum();
    assert_eq!((tokens, chunks as u64), (stats.tokens_out, stats.chunks));
}

#[test]
fn a_record_describes_its_request() {
    let mock = spawn("{log: memory, log_text: true}");
    let before = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    let long = "x".repeat(61);
    let body = format!(
        r#"{{"model":"big","max_tokens":7,"stream":true,"system":"{long}","messages":[
            {{"role":"user","content":"12345"}},{{"role":"assistant","content":[{{"type":"text","text":"é"}}]}}]}}"#
    );
    Client::connect(&mock).post("/v1/messages?beta=1", &[("x-request-id", "r-1")], &body);
    let after = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    let record = finish(mock).remove(0);
    let expected = LogRecord {
        sequence: 0,
        request_id: Some("r-1".to_owned()),
        connection: 0,
        version: "HTTP/1.1".to_owned(),
        method: "POST".to_owned(),
        path: "/v1/messages".to_owned(),
        dialect: Some(Dialect::AnthropicMessages),
        model: Some("big".to_owned()),
        stream: true,
        messages: 2,
        prompt_bytes: 61 + 5 + 2,
        prompt_tokens: 16 + 2 + 1,
        prompt_hash: fnv1a(format!("{long}12345é").as_bytes()),
        prompt_blocks: vec![fnv1a(format!("{long}12345é").as_bytes())],
        prompt_head: Some("x".repeat(60)),
        status: 200,
        planned_tokens: 7,
        fault: None,
        end: Some(RequestEnd::Completed),
        ..record.clone()
    };
    assert_eq!(record, expected);
    let clock = Duration::from_millis(50).as_nanos();
    assert!(u128::from(record.received) + clock > before, "{record:?}");
    assert!(u128::from(record.finished) < after + clock, "{record:?}");
}

#[test]
fn prompts_with_a_common_prefix_share_block_hashes() {
    let mock = spawn("log: memory");
    let mut client = Client::connect(&mock);
    let shared = "shared. ".repeat(512);
    for tail in ["one", "two"] {
        client.post(CHAT, &[], &chat(&format!("{shared}{tail}"), r#","max_tokens":1"#));
    }
    let log = finish(mock);
    let (one, two) = (&log[0].prompt_blocks, &log[1].prompt_blocks);
    assert_eq!((one.len(), one[..2] == two[..2], one[2] == two[2]), (3, true, false));
    assert_eq!(one[0], fnv1a(&shared.as_bytes()[..2_048]));
    assert_ne!(log[0].prompt_hash, log[1].prompt_hash);
}

#[test]
fn a_disconnected_client_is_logged_with_what_it_was_sent() {
    let mock = spawn("log: memory");
    let mut client = Client::connect(&mock);
    let headers = [("x-mock-gap", "20ms"), ("x-mock-output-tokens", "1000")];
    client.send_post(CHAT, &headers, &chat("hi", r#","stream":true"#));
    wait(|| mock.stats().chunks >= 3);
    drop(client);
    wait(|| mock.stats().connections_open == 0);
    let stats = mock.stats();
    assert_eq!((stats.client_gone, stats.in_flight, stats.connections_open), (1, 0, 0));
    let record = finish(mock).remove(0);
    assert_eq!((record.end, record.planned_tokens), (Some(RequestEnd::ClientGone), 1_000));
    assert!((3..900).contains(&record.chunks.len()), "{}", record.chunks.len());
    assert!(record.chunks[..2].iter().all(|chunk| chunk.written > 0), "{record:?}");
}

#[test]
fn shutdown_waits_for_requests_in_flight_for_the_drain_time() {
    for (tokens, end) in [("5", RequestEnd::Completed), ("1000", RequestEnd::ShutDown)] {
        let mut mock = spawn("{log: memory, drain: 300ms}");
        let mut client = Client::connect(&mock);
        let headers = [("x-mock-gap", "10ms"), ("x-mock-output-tokens", tokens)];
        client.send_post(CHAT, &headers, &chat("hi", r#","stream":true"#));
        wait(|| mock.stats().requests == 1);
        mock.shutdown();
        assert_eq!(client.response().complete, end == RequestEnd::Completed);
        let stats = mock.stats();
        assert_eq!((stats.in_flight, stats.connections_open), (0, 0));
        let record = finish(mock).remove(0);
        assert_eq!(record.end, Some(end));
        assert!(record.chunks.iter().all(|chunk| chunk.written >= chunk.handed), "{record:?}");
    }
}

#[test]
fn records_beyond_the_capacity_are_counted() {
    let mut mock = spawn("{log: memory, log_capacity: 3}");
    let mut client = Client::connect(&mock);
    (0..10).for_each(|_| drop(client.get("/")));
    mock.shutdown();
    assert_eq!(mock.stats().log_lost, 7);
    assert_eq!(finish(mock).len(), 3);
}

#[test]
fn the_file_gets_a_line_soon_and_is_complete_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mock.jsonl");
    let mut mock = spawn(&format!("log: {{file: '{}'}}", path.display()));
    let mut client = Client::connect(&mock);
    let lines = || -> Vec<LogRecord> {
        let text = std::fs::read_to_string(&path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    client.get("/health");
    wait(|| std::fs::metadata(&path).unwrap().len() > 0);
    assert_eq!(lines().len(), 1);
    for _ in 0..500 {
        client.post(CHAT, &[], &chat("12345678", r#","stream":true,"max_tokens":3"#));
    }
    mock.shutdown();
    let records = lines();
    assert_eq!((records.len(), mock.stats().log_lost), (501, 0));
    assert_eq!((records[500].prompt_tokens, records[500].planned_tokens), (2, 3));
    assert_eq!(mock.take_log(), []);
}

#[test]
fn a_log_or_address_that_cannot_be_opened_is_an_error_at_start() {
    let addr = "127.0.0.1:0".parse().unwrap();
    let config = MockConfig::from_yaml("log: {file: /nonexistent/folder/x.jsonl}").unwrap();
    let error = plimsoll_mock::Mock::spawn(&config, addr).unwrap_err();
    assert!(matches!(error, MockError::Log { .. }), "{error}");
    let first = spawn("{}");
    let error = plimsoll_mock::Mock::spawn(&MockConfig::default(), first.addr()).unwrap_err();
    assert!(matches!(error, MockError::Listen { .. }), "{error}");
}

/// Requests of one block of a comparison: other ids, other headers, the same content.
#[test]
fn draws_by_prompt_are_the_same_for_the_same_content() {
    let mock = spawn(
        "{log: memory, draw: prompt, other_models: {ttft: {uniform: {min: 0s, max: 2ms}}, output: {uniform: {min: 1, max: 90}}}}",
    );
    let mut client = Client::connect(&mock);
    for content in ["one", "two", "three", "four"] {
        for target in 0..3 {
            let word = ["cow", "cat", "dog"][target];
            let text = format!("{word} sun sky sea sir --- {content}");
            let id = format!("{content}-{target}");
            client.post(CHAT, &[("x-request-id", &id)], &chat(&text, r#","stream":true"#));
        }
    }
    let log = finish(mock);
    for block in log.chunks(3) {
        assert_eq!(block[0].content_hash, drawn_values(&block[1]).0);
        assert!(
            block.iter().all(|record| drawn_values(record) == drawn_values(&block[0])),
            "{block:?}"
        );
        assert_ne!(block[0].prompt_hash, block[1].prompt_hash);
    }
    assert_eq!(log[0].content_hash, Some(fnv1a(b"one")));
    let blocks: HashSet<_> = log.iter().map(drawn_values).collect();
    assert_eq!(blocks.len(), 4, "each content has its own draws");
}

fn drawn_values(record: &LogRecord) -> (Option<u64>, u32, u64) {
    let first = record.chunks.iter().find(|chunk| chunk.tokens > 0).unwrap();
    (record.content_hash, record.planned_tokens, first.due - record.body_complete)
}
