//! Personal data in responses.

use serde_json::Value;

use super::support::client::post;
use super::support::provider::{AnswerKind, Provider, frames};
use super::support::{CHAT, MESSAGES, gateway, llm, question, streamed, with};

const PIECES: [&str; 5] =
    ["my card is 41", "11 1111 ", "1111 11", "11 and mail ann@exam", "ple.com, bye"];
const CLEAN: &str = "my card is [REDACTED] and mail [REDACTED], bye";

/// The texts of a stream's deltas, joined.
fn text(frames: &[String]) -> String {
    let data =
        frames.iter().flat_map(|frame| frame.lines()).filter_map(|l| l.strip_prefix("data: "));
    let events = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let texts = events.map(|event| {
        let chat = event["choices"][0]["delta"]["content"].as_str().map(str::to_owned);
        chat.or_else(|| event["delta"]["text"].as_str().map(str::to_owned)).unwrap_or_default()
    });
    texts.collect()
}

#[test]
fn a_number_is_found_whole_and_split_over_deltas() {
    let provider = Provider::with_text(&PIECES);
    for upstream in ["openai", "anthropic"] {
        let gateway = with(provider.addr, upstream, "scrub: {}");
        for path in [CHAT, MESSAGES] {
            let told = format!("{path} to {upstream}");
            let whole = post(gateway.addr(), path, &[], &question("hi"));
            assert!(whole.text().contains(CLEAN), "{told}: {}", whole.text());
            whole.json();
            let stream = post(gateway.addr(), path, &[], &streamed("hi"));
            assert!(!stream.broken);
            assert_eq!(text(&stream.frames()), CLEAN, "{told}: {:#?}", stream.frames());
            // With the space: a time may have these digits.
            assert!(!stream.text().contains("1111 ") && !stream.text().contains("exam"));
        }
    }
}

#[test]
fn frames_without_personal_data_pass_one_by_one() {
    let pieces = ["The ", "quick brown ", "fox ", "jumps ", "över ", "the lazy dog. "];
    let provider = Provider::with_text(&pieces);
    let pieces = pieces.map(str::to_owned);
    for (upstream, path) in [("openai", CHAT), ("anthropic", MESSAGES)] {
        let gateway = with(provider.addr, upstream, "scrub: {}");
        let reply = post(gateway.addr(), path, &[], &streamed("hi"));
        let seen = provider.seen().pop().unwrap();
        assert_eq!(reply.frames(), frames(&seen, &pieces, AnswerKind::Text), "{path}");
        let (bare, scrubbed) = (with(provider.addr, upstream, ""), &gateway);
        let whole = |gateway: &plimsoll_gateway_server::Gateway| {
            post(gateway.addr(), path, &[], &question("hi")).text()
        };
        assert_eq!(whole(scrubbed), whole(&bare), "{path}");
    }
}

/// A word might be the beginning of an address: it waits for what comes next, in as many frames.
#[test]
fn a_word_at_the_end_of_a_delta_is_sent_with_the_next_one() {
    let pieces = ["The", " quick brown", " fox", " jumps", " över", " the lazy dog", "."];
    let provider = Provider::with_text(&pieces);
    for (upstream, path) in [("openai", CHAT), ("anthropic", MESSAGES)] {
        let gateway = with(provider.addr, upstream, "scrub: {}");
        let reply = post(gateway.addr(), path, &[], &streamed("hi"));
        assert_eq!(text(&reply.frames()), pieces.concat(), "{path}");
        let seen = provider.seen().pop().unwrap();
        let count = frames(&seen, &pieces.map(str::to_owned), AnswerKind::Text).len();
        let more = reply.frames().len() - count;
        assert!(more <= 1, "{path}: {more} frames more, of what was held back at the end");
    }
}

#[test]
fn harmless_tool_calls_pass_unchanged() {
    let provider = Provider::with_text(&["x"]);
    let (bare, scrubbed) = (llm(provider.addr, ""), llm(provider.addr, "scrub: {}"));
    for body in [question("use the tool"), streamed("use the tool")] {
        let [bare, scrubbed] =
            [&bare, &scrubbed].map(|gateway| post(gateway.addr(), CHAT, &[], &body).text());
        assert_eq!(bare, scrubbed);
    }
}

#[test]
fn responses_of_other_routes_are_scrubbed() {
    let provider = Provider::start(|seen, wire| {
        if seen.path == "/text" {
            return wire.whole(200, "text/html", "<b>ann@example.com</b>");
        }
        wire.whole(200, "application/json", "{\"mail\":\"ann@example.com\",\"name\":\"Löwe\"}")
    });
    let gateway = gateway(&format!(
        "scrub: {{}}
upstreams: {{p: {{addresses: ['{}']}}}}
routes: [{{name: rest, path: /*, upstream: p}}]",
        provider.addr
    ));
    let reply = super::support::client::get(gateway.addr(), "/json");
    assert_eq!(reply.text(), "{\"mail\":\"[REDACTED]\",\"name\":\"Löwe\"}");
    let reply = super::support::client::get(gateway.addr(), "/text");
    assert_eq!(reply.text(), "<b>[REDACTED]</b>");
}
