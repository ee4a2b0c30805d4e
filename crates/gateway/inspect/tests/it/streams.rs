//! Streams: what a client would see, however the bytes are split.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_gateway_inspect::{
    EventScrubber, FileRule, Inspector, MAX_WAITING_BYTES, Unread, Unreadable,
};
use plimsoll_gateway_policy::Policy;
use serde_json::Value;

use super::answers::{CARD, MAIL, NO_CARD, NO_MAIL};
use super::forms::{STREAMS, cases, fill, scrub};

/// The bytes of a case: its lines as events.
fn stream(template: &str, text: &str, cut: usize) -> String {
    let filled = fill(template, text, cut);
    let mut stream = String::new();
    for event in filled.lines() {
        let named = ["data:", "event:", "id:", ":"].iter().any(|field| event.starts_with(field));
        stream += if named { "" } else { "data: " };
        stream += &event.replace('|', "\n");
        stream += "\n\n";
    }
    stream
}

fn run<'c>(
    inspector: &Arc<Inspector>,
    chunks: impl IntoIterator<Item = &'c [u8]>,
) -> Result<String, Unreadable> {
    let mut scrubber = EventScrubber::new(Arc::clone(inspector));
    let mut out = Vec::new();
    for chunk in chunks {
        scrubber.feed(chunk, &mut out)?;
    }
    scrubber.finish(&mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn whole(inspector: &Arc<Inspector>, stream: &str) -> String {
    run(inspector, [stream.as_bytes()]).unwrap()
}

/// Everything that a client could put together from a stream: the strings of each place, joined
/// over the events; all tokens; all plain data; all other lines.
fn seen(stream: &str) -> Vec<String> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for event in stream.split("\n\n") {
        let data: Vec<&str> = event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
        let data = data.join("\n");
        match serde_json::from_str::<Value>(&data) {
            Ok(value) => collect(&value, "", &mut texts),
            Err(_) => *texts.entry("plain".to_owned()).or_default() += data.trim(),
        }
        let others = event.lines().filter(|line| !line.starts_with("data:"));
        texts.entry(format!("{}", texts.len())).or_default().extend(others);
    }
    texts.into_values().collect()
}

fn collect(value: &Value, path: &str, texts: &mut BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            let path = path.replace("delta", "").replace("content_block", "");
            let path = if path.ends_with("token") { "token".to_owned() } else { path };
            *texts.entry(path).or_default() += text;
        }
        Value::Array(items) => items.iter().enumerate().for_each(|(at, item)| {
            let index = item.get("index").map_or_else(|| at.to_string(), Value::to_string);
            collect(item, &format!("{path}/{index}"), texts);
        }),
        Value::Object(members) => {
            for (name, member) in members {
                texts.entry("names".to_owned()).or_default().push_str(name);
                let path = if name == "top_logprobs" { "alternatives" } else { path };
                collect(member, &format!("{path}/{name}"), texts);
            }
        }
        Value::Number(_) | Value::Null | Value::Bool(_) => {}
    }
}

fn check(name: &str, output: &str, text: &str) {
    let forbidden = if text == CARD { "4111 1111 1111 1111" } else { "ann.b@example.com" };
    for seen in seen(output) {
        assert!(!seen.contains(forbidden), "{name}: {seen:?} in\n{output}");
    }
    assert!(output.contains("[REDACTED]"), "{name}:\n{output}");
    assert!(!output.contains("[1,2]"), "{name}: the bytes of a token in\n{output}");
}

#[test]
fn a_value_is_redacted_wherever_the_text_is_split_over_events() {
    let inspector = Arc::new(scrub());
    let mut count = 0;
    for (name, template) in cases(STREAMS) {
        for (text, from, to) in [(CARD, 6, 23), (MAIL, 10, 25)] {
            for cut in from..to {
                let stream = stream(template, text, cut);
                let output = whole(&inspector, &stream);
                check(&format!("{name}, cut at {cut}"), &output, text);
                let bytes = stream.as_bytes().chunks(1);
                assert_eq!(run(&inspector, bytes).as_ref(), Ok(&output), "{name}, bytes");
                let events = |stream: &str| stream.matches("\n\n").count();
                assert_eq!(events(&output), events(&stream), "{name}: no event more, none less");
            }
        }
        count += 1;
    }
    assert!(count >= 25, "{count}");
}

#[test]
fn every_split_of_the_bytes_gives_the_same_output() {
    let inspector = Arc::new(scrub());
    for (name, template) in cases(STREAMS) {
        let stream = stream(template, CARD, 12);
        let expected = whole(&inspector, &stream);
        for at in 0..=stream.len() {
            let (before, after) = stream.as_bytes().split_at(at);
            assert_eq!(run(&inspector, [before, after]).as_ref(), Ok(&expected), "{name} at {at}");
        }
    }
}

#[test]
fn harmless_neighbours_pass_byte_for_byte() {
    let inspector = Arc::new(scrub());
    for (name, template) in cases(STREAMS) {
        for text in [NO_CARD, NO_MAIL] {
            for cut in 1..text.len() {
                let stream = stream(template, text, cut);
                assert_eq!(whole(&inspector, &stream), stream, "{name}, cut at {cut}");
            }
        }
        let crlf = stream(template, NO_CARD, 9).replace('\n', "\r\n");
        assert_eq!(whole(&inspector, &crlf), crlf, "{name}");
    }
}

fn delta(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

#[test]
fn an_event_leaves_as_soon_as_everything_in_it_is_known() {
    let mut scrubber = EventScrubber::new(Arc::new(scrub()));
    let mut left = |event: &str| {
        let mut out = Vec::new();
        scrubber.feed(event.as_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(left(&delta("The ")), delta("The "));
    assert_eq!(left(&delta("quick")), "", "the word may go on");
    assert_eq!(left(": ping\n\n"), "", "events keep their order");
    assert_eq!(left(&delta(" fox")), delta("quick") + ": ping\n\n");
    let refusal = delta("no.").replace("content", "refusal");
    assert_eq!(left(&refusal), delta(" fox"), "the content did not go on");
    let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    assert_eq!(left(end), refusal + end);
}

/// An event of A2A; its ids, times and words are the same in every event.
fn update(text: &str) -> String {
    let event = serde_json::json!({"jsonrpc": "2.0", "id": "r-1", "result": {"artifactUpdate": {
        "taskId": "7f000000-0000-4000-8000-000000000001", "contextId": "4111-1111", "kind": "x",
        "artifact": {"artifactId": "1", "parts": [{"text": text}]},
        "status": {"state": "TASK_STATE_WORKING", "timestamp": "2026-11-22T17:00:00.123Z"}}}});
    format!("data: {event}\n\n")
}

#[test]
fn events_of_agents_leave_one_by_one() {
    let mut scrubber = EventScrubber::new(Arc::new(scrub()));
    for text in ["The quick brown fox. ", "It jumps.\n", "No.\n"] {
        let mut out = Vec::new();
        scrubber.feed(update(text).as_bytes(), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), update(text));
    }
    // A text that may continue waits for the next piece of the artifact, until the last.
    let mut left = |event: &str| {
        let mut out = Vec::new();
        scrubber.feed(event.as_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(left(&update("quick")), "");
    let status = update("half a word").replace("artifact\"", "history\"");
    assert_eq!(left(&status), "", "events keep their order");
    let last = update(" fox").replace("\"kind\":\"x\"", "\"lastChunk\":true");
    assert_eq!(left(&last), [update("quick"), status.clone(), last].concat());
    assert_eq!(left(&status), status, "nothing continues it");
    let split = [update("call 4111 1111"), update(" 1111 1111 now.")].concat();
    let output = whole(&Arc::new(scrub()), &split);
    assert!(output.contains("[REDACTED]") && !output.contains("1111 1111"), "{output}");
}

#[test]
fn a_number_is_no_word_of_the_protocol() {
    let card = "4111111111111111";
    for name in ["jsonrpc", "state", "kind", "timestamp", "role"] {
        let event = format!("data: {{\"{name}\":\"{card}\"}}\n\n");
        let output = whole(&Arc::new(scrub()), &event);
        assert!(output.contains("[REDACTED]"), "{name}: {output}");
    }
}

#[test]
fn what_goes_on_late_is_still_found() {
    let stream =
        [delta("call 4111 11"), delta("no").replace("content", "refusal"), delta("11 1111 1111.")];
    let output = whole(&Arc::new(scrub()), &stream.concat());
    assert_eq!(
        output,
        [&stream[0], &stream[1], &delta("[REDACTED].")].map(String::as_str).concat()
    );
}

#[test]
fn what_waits_is_bounded() {
    let mut scrubber = EventScrubber::new(Arc::new(scrub()));
    let (mut out, mut fed) = (Vec::new(), 0);
    let mut feed = |event: String| {
        fed += event.len();
        scrubber.feed(event.as_bytes(), &mut out).unwrap();
        assert!(fed - out.len() <= MAX_WAITING_BYTES + event.len(), "{fed} {}", out.len());
    };
    feed(delta("open"));
    for _ in 0..2_000 {
        feed(delta("other words").replace("\"index\":0", "\"index\":1"));
        feed(": ping\n\n".to_owned());
    }
}

#[test]
fn events_that_cannot_be_read_are_refused_or_pass() {
    let closed = Arc::new(scrub());
    let files = FileRule { unreadable: Unread::Pass, ..FileRule::default() };
    let builtin = Arc::new(Policy::builtin().unwrap());
    let open = Arc::new(Inspector::personal_data(builtin, files));
    for broken in ["data: {\"a\":\"b\n\n", "data: {\"a\":b@c.de}\n\n", "data: [1\n\n"] {
        let stream = format!("{}{broken}{}", delta("a "), delta("b"));
        assert_eq!(run(&closed, [stream.as_bytes()]), Err(Unreadable::Json), "{broken}");
        assert_eq!(whole(&open, &stream), stream, "{broken}");
    }
    let latin1 = b"data: {\"a\":\"\xe9\"}\n\n";
    assert_eq!(run(&closed, [&latin1[..]]), Err(Unreadable::NotUtf8));
    let last = delta("to ann@example.com");
    let whole_last = [delta("x "), last.trim_end().to_owned()].concat();
    let scrubbed = run(&closed, [whole_last.as_bytes()]).unwrap();
    assert!(scrubbed.ends_with("}\n\n") && !scrubbed.contains("ann@"), "{scrubbed}");
    let cut = [delta("x "), last.trim_end_matches("}\n\n").to_owned()].concat();
    assert_eq!(run(&closed, [cut.as_bytes()]), Err(Unreadable::Truncated));
}
