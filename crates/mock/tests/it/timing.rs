//! Times, in the log and as a client sees them. The bounds are absolute and generous, because other
//! tests share the cores.

use std::time::Instant;

use plimsoll_mock::LogRecord;

use crate::support::{Client, chat, finish, spawn, wait};

const MS: u64 = 1_000_000;
const CHAT: &str = "/v1/chat/completions";
const STREAM: &str = r#","stream":true"#;

/// Due times in ms after the complete request.
fn dues(record: &LogRecord) -> Vec<u64> {
    record.chunks.iter().map(|chunk| (chunk.due - record.body_complete) / MS).collect()
}

/// Lateness of each chunk in ns, the worst first; panics if one was written early.
fn lateness(records: &[LogRecord]) -> Vec<u64> {
    let chunks = records.iter().flat_map(|record| &record.chunks);
    let mut late: Vec<u64> =
        chunks.map(|chunk| chunk.written.checked_sub(chunk.due).unwrap()).collect();
    late.sort_unstable_by(|a, b| b.cmp(a));
    late
}

#[test]
fn each_event_is_written_alone_and_at_its_time() {
    let mock = spawn("{log: memory, other_models: {preamble: 4ms, ttft: 30ms, gap: 10ms}}");
    let mut client = Client::connect(&mock);
    let sent = Instant::now();
    let response = client.post(CHAT, &[("x-mock-output-tokens", "5")], &chat("hi", STREAM));
    // One read can bring several HTTP chunks when the client is late.
    let arrivals: Vec<u128> = response
        .reads
        .iter()
        .flat_map(|(at, chunks)| std::iter::repeat_n((*at - sent).as_millis(), *chunks))
        .collect();
    let log = finish(mock);
    let expected = [4, 30, 40, 50, 60, 70];
    assert_eq!(dues(&log[0]), expected);
    let tokens: Vec<u32> = log[0].chunks.iter().map(|chunk| chunk.tokens).collect();
    assert_eq!(tokens, [0, 1, 1, 1, 1, 1]);
    let bytes: u64 = log[0].chunks.iter().map(|chunk| chunk.bytes).sum();
    assert_eq!(bytes, response.body.len() as u64);
    assert_eq!(arrivals.len(), expected.len(), "{arrivals:?}");
    for (arrival, due) in arrivals.iter().zip(expected) {
        assert!((u128::from(due)..u128::from(due) + 500).contains(arrival), "{arrivals:?}");
    }
    assert!(log[0].chunks.windows(2).all(|pair| pair[0].written < pair[1].written), "{log:?}");
    assert!(lateness(&log)[0] < 500 * MS, "{log:?}");
}

#[test]
fn a_full_response_takes_as_long_as_its_stream() {
    let yaml = "{log: memory, other_models: {ttft: 10ms, gap: 5ms, prefill_per_token: 3ms}}";
    let mock = spawn(yaml);
    // Two input tokens: 10 + 6 ms, and three gaps.
    Client::connect(&mock).post(CHAT, &[], &chat("12345678", r#","max_tokens":4"#));
    let log = finish(mock);
    assert_eq!(dues(&log[0]), [31]);
    assert_eq!(log[0].chunks[0].tokens, 4);
    assert!(lateness(&log)[0] < 500 * MS, "{log:?}");
}

/// Attempts of a test that bounds lateness. A busy machine delays some of them, a defect of the
/// mock delays all.
const ATTEMPTS: usize = 5;

/// Repeats `measure` until the lateness that it returns is within the bounds; all in ns.
fn assert_lateness<const N: usize>(bounds: [u64; N], measure: impl Fn() -> [u64; N]) {
    let mut found = Vec::new();
    while found.len() < ATTEMPTS {
        let late = measure();
        found.push(late);
        if late.iter().zip(&bounds).all(|(late, bound)| late < bound) {
            return;
        }
    }
    panic!("later than {bounds:?} ns in each attempt: {found:?}");
}

fn median(worst_first: &[u64]) -> u64 {
    worst_first[worst_first.len() / 2]
}

#[test]
fn lateness_does_not_add_up_over_a_stream() {
    // Waits that count from the previous event would add up their lateness: with a timer of whole
    // milliseconds to hundreds of milliseconds.
    assert_lateness([200 * MS, 20 * MS], || {
        let mock = spawn("log: memory");
        let headers = [("x-mock-gap", "500us"), ("x-mock-output-tokens", "600")];
        Client::connect(&mock).post(CHAT, &headers, &chat("hi", STREAM));
        let log = finish(mock);
        let last = log[0].chunks.last().unwrap();
        assert_eq!((last.due - log[0].body_complete) / 1_000, 299_500);
        assert_eq!(log[0].chunks.len(), 600);
        [last.written - last.due, median(&lateness(&log))]
    });
}

#[test]
fn many_streams_at_once_keep_their_times() {
    assert_lateness([50 * MS], || {
        let mock = spawn("{log: memory, other_models: {ttft: 50ms, gap: 10ms}}");
        let mut clients: Vec<Client> = (0..100).map(|_| Client::connect(&mock)).collect();
        for client in &mut clients {
            client.send_post(CHAT, &[("x-mock-output-tokens", "10")], &chat("hi", STREAM));
        }
        assert!(clients.iter_mut().all(|client| client.response().complete));
        let log = finish(mock);
        assert_eq!(log.len(), 100);
        [median(&lateness(&log))]
    });
}

#[test]
fn events_without_gaps_share_writes_and_late_events_do_not() {
    let mock = spawn("log: memory");
    let mut client = Client::connect(&mock);
    let tokens = ("x-mock-output-tokens", "2000");
    let at_once = client.post(CHAT, &[tokens], &chat("hi", STREAM));
    let late = client.post(CHAT, &[tokens, ("x-mock-gap", "1ns")], &chat("hi", STREAM));
    assert_eq!((count_words(at_once.text()), count_words(late.text())), (2_001, 2_001));
    let log = finish(mock);
    assert!(log[0].chunks.len() < 10, "{}", log[0].chunks.len());
    let one_by_one: Vec<u32> = log[1].chunks.iter().map(|chunk| chunk.tokens).collect();
    // The preamble is due together with the first token.
    assert_eq!(one_by_one, vec![1; 2_000]);
    assert!(log[1].chunks.windows(2).all(|pair| pair[0].written <= pair[1].handed));
}

fn count_words(text: &str) -> usize {
    text.matches("\"content\":\"").count()
}

#[test]
fn slowdown_delays_requests_under_load() {
    let yaml = "{log: memory, drain: 0, other_models: {ttft: 5ms, slowdown: {knee: 1, slope: 1}}}";
    let mock = spawn(yaml);
    let mut hanging = Vec::new();
    for others in 0..3 {
        wait(|| mock.stats().in_flight == others);
        Client::connect(&mock).post(CHAT, &[], &chat("hi", r#","max_tokens":1"#));
        let mut client = Client::connect(&mock);
        client.send_post(CHAT, &[("x-mock-fault", "hang")], &chat("hi", ""));
        hanging.push(client);
    }
    let log = finish(mock);
    let due: Vec<u64> =
        log.iter().filter(|record| record.status == 200).map(|record| dues(record)[0]).collect();
    assert_eq!(due, [5, 10, 15]);
}

#[test]
fn times_follow_their_distribution() {
    let yaml = "
log: memory
other_models:
  ttft: {lognormal: {median: 2ms, p95: 6ms}}
  gap: {quantiles: [[0.5, 100us], [0.9, 300us]]}
";
    let mock = spawn(yaml);
    let mut clients: Vec<Client> = (0..300).map(|_| Client::connect(&mock)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let id = format!("draw-{number}");
        let headers = [("x-request-id", id.as_str()), ("x-mock-output-tokens", "11")];
        client.send_post(CHAT, &headers, &chat("hi", STREAM));
    }
    assert!(clients.iter_mut().all(|client| client.response().complete));
    let log = finish(mock);
    let ttft: Vec<u64> = log.iter().map(|r| r.chunks[1].due - r.body_complete).collect();
    assert!((share_below(&ttft, 2 * MS) - 0.5).abs() < 0.1, "{}", share_below(&ttft, 2 * MS));
    assert!((share_below(&ttft, 6 * MS) - 0.95).abs() < 0.05, "{}", share_below(&ttft, 6 * MS));
    let gaps: Vec<u64> = log
        .iter()
        .flat_map(|r| r.chunks[1..].windows(2).map(|pair| pair[1].due - pair[0].due))
        .collect();
    assert_eq!(gaps.len(), 3_000);
    assert!((share_below(&gaps, 100_000) - 0.5).abs() < 0.04, "{}", share_below(&gaps, 100_000));
    assert!((share_below(&gaps, 200_000) - 0.7).abs() < 0.04, "{}", share_below(&gaps, 200_000));
}

fn share_below(values: &[u64], limit: u64) -> f64 {
    values.iter().filter(|value| **value <= limit).count() as f64 / values.len() as f64
}
