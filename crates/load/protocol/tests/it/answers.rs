//! The forms of answers that real services give. `tests/answers` has them as bytes; public reports
//! gave the idea of each, and the expected values were worked out from the bytes by hand.

use plimsoll_measure::{ErrorClass, Outcome};
use plimsoll_protocol::Dialect;

use crate::support::{EVENTS, JSON, Read, decoder, read};

/// The text of all streams whose row says nothing else.
const TEXT: &str = "Hello big world again.";

/// What is to be read from an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Expected<'a> {
    text: &'a str,
    reasoning: &'a str,
    tools: &'a str,
    finish: &'a str,
    usage: &'a str,
    /// The class of a failure, and a part of its message.
    failure: Option<(ErrorClass, &'a str)>,
}

const OK: Expected<'static> = Expected {
    text: TEXT,
    reasoning: "",
    tools: "",
    finish: "stop",
    usage: "10 in, 5 out, 0 cached, 0 reasoning",
    failure: None,
};

/// A failure before any usage; `text` came before it.
const fn failed(class: ErrorClass, message: &'static str, text: &'static str) -> Expected<'static> {
    let usage = if text.is_empty() { "? in, ? out, 0 cached, 0 reasoning" } else { ESTIMATED };
    Expected { text, finish: "", usage, failure: Some((class, message)), ..OK }
}

const ESTIMATED: &str = "estimated";

pub(crate) fn file(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/answers/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn joined(read: &Read, kind: &str) -> String {
    read.events.iter().filter_map(|event| event.strip_prefix(kind)).collect()
}

#[track_caller]
fn check(name: &str, read: &Read, expected: Expected<'_>) {
    let outcome = match expected.failure {
        Some((class, _)) => Outcome::Failed(class),
        None => Outcome::Completed,
    };
    assert_eq!(read.outcome, outcome, "{name}: {:?}", read.detail);
    assert_eq!(read.text, expected.text, "{name}");
    assert_eq!(joined(read, "reasoning: "), expected.reasoning, "{name}");
    assert_eq!(joined(read, "tool: "), expected.tools, "{name}");
    assert_eq!(joined(read, "finish: "), expected.finish, "{name}");
    if expected.usage == ESTIMATED {
        assert!(read.usage.contains('~'), "{name}: {}", read.usage);
    } else {
        assert_eq!(read.usage, expected.usage, "{name}");
    }
    let message = read.detail.as_ref().map(|detail| detail.message.as_str()).unwrap_or_default();
    let part = expected.failure.map_or("", |(_, part)| part);
    assert!(message.contains(part), "{name}: {message}");
}

/// Reads a stream of a chat, also with other line ends, and in pieces.
#[track_caller]
fn check_chat(name: &str, expected: Expected<'_>) {
    let body = file(&format!("{name}.sse"));
    let mut chat = decoder(Dialect::OpenaiChat, true);
    let whole = read(&mut chat, (200, EVENTS), [&body[..]]);
    check(name, &whole, expected);
    // Other line ends, and any split, give the same.
    let bytewise = read(&mut chat, (200, EVENTS), body.chunks(1));
    assert_eq!(bytewise, whole, "{name}");
    if expected.failure.is_none() && name != "bom" {
        for end in ["\r", "\r\n"] {
            let other = String::from_utf8(body.clone()).unwrap().replace('\n', end);
            let other = read(&mut chat, (200, EVENTS), other.as_bytes().chunks(7));
            check(name, &other, expected);
        }
    }
}

#[test]
fn usual_streams_of_chats_are_read_whatever_their_form() {
    use ErrorClass::MalformedBody;
    let usage = |usage| Expected { usage, ..OK };
    let ten = "10 in, 10 out, 0 cached, 0 reasoning";
    let unknown = "? in, ~5 out, 0 cached, 0 reasoning";
    for (name, expected) in [
        ("ok", OK),
        ("azure", OK),
        ("bom", OK),
        ("nospace", OK),
        ("comments", OK),
        ("multiline", OK),
        ("nulldelta", OK),
        ("strchoices", OK),
        ("intid", OK),
        ("finempty", OK),
        ("finobj", OK),
        ("nanlog", failed(MalformedBody, "expected a digit at byte 107 of `{", "")),
        ("usagefl", OK),
        ("usageinfin", OK),
        ("contentobj", OK),
        ("choiceobj", Expected { finish: "stop", ..OK }),
        ("stopmid", OK),
        ("contusage", usage("10 in, 35 out, 0 cached, 0 reasoning")),
        ("hidden", usage("10 in, 505 out, 0 cached, 500 reasoning")),
        ("hidden_nodetail", usage("10 in, 505 out, 0 cached, 0 reasoning")),
        ("usagenull", usage(unknown)),
        ("timings", usage(unknown)),
        ("xgroq", usage(unknown)),
        ("usageout", usage(unknown)),
        ("usagefloat", usage("10 in, ~5 out, 0 cached, 0 reasoning")),
        (
            "utf8split",
            Expected {
                text: "日本語😀Hello big world again.",
                usage: "10 in, 6 out, 0 cached, 0 reasoning",
                ..OK
            },
        ),
        ("audio", usage("10 in, 50 out, 0 cached, 0 reasoning")),
        ("n2", Expected { text: "Hello world. big again", usage: ten, ..OK }),
        // The end.
        ("done_nonl", OK),
        ("done_onenl", OK),
        ("done_space", OK),
        ("nodone", OK),
        ("stop_nonl_nodone", OK),
    ] {
        check_chat(name, expected);
    }
}

#[test]
fn reasoning_and_tools_are_read_whatever_their_form() {
    let thought = |usage| Expected { reasoning: TEXT, usage, ..OK };
    let tool = |tools| Expected {
        text: "",
        tools,
        finish: "tool_calls",
        usage: "10 in, 9 out, 0 cached, 0 reasoning",
        ..OK
    };
    let ten = "10 in, 10 out, 0 cached, 0 reasoning";
    for (name, expected) in [
        // Reasoning.
        ("reasoning", thought("10 in, 10 out, 0 cached, 5 reasoning")),
        ("reasoning_content", thought(ten)),
        ("reasoning_details", thought("10 in, 10 out, 0 cached, 5 reasoning")),
        ("mistralthink", thought(ten)),
        ("thinking_blocks", thought(ten)),
        // Tools.
        ("tool", tool("f{\"a\":1}")),
        ("toolobj", tool("{\"a\": 1}")),
        ("toolnull", Expected { text: "x", ..tool("f{}") }),
    ] {
        check_chat(name, expected);
    }
}

#[test]
fn a_stream_that_says_that_it_failed_or_says_nothing_has_failed() {
    use ErrorClass::{EmptyAnswer, MalformedBody, StreamError, StreamTruncated};
    let said =
        |finish, usage, failure| Expected { text: "Hello big", finish, usage, failure, ..OK };
    let two = "10 in, 2 out, 0 cached, 0 reasoning";
    for (name, expected) in [
        // An answer that says that it failed.
        ("finerror", said("error", two, Some((StreamError, "reason `error`")))),
        ("finabort", said("abort", two, Some((StreamError, "reason `abort`")))),
        ("orerror", said("", ESTIMATED, Some((StreamError, "Provider disconnected")))),
        ("vllmerr", failed(StreamError, "EngineCore died", "")),
        ("errstring", failed(StreamError, "generation failed", "")),
        ("errnoblank", failed(StreamError, "boom", "Hello")),
        ("errevent", failed(StreamError, "overloaded", "Hello")),
        ("errerrline", failed(StreamError, "upstream closed", "Hello")),
        ("errtext", failed(MalformedBody, "Internal Server Error", "Hello")),
        // An answer that says nothing; one that says why it has no text is none of these.
        ("emptydone", failed(EmptyAnswer, "nothing before it", "")),
        ("emptystop", Expected { text: "", usage: "10 in, 0 out, 0 cached, 0 reasoning", ..OK }),
        (
            "emptystopusage",
            Expected { text: "", usage: "10 in, 40 out, 0 cached, 0 reasoning", ..OK },
        ),
        (
            "fincontent",
            Expected {
                text: "",
                finish: "content_filter",
                usage: "10 in, 0 out, 0 cached, 0 reasoning",
                ..OK
            },
        ),
        ("ndjson", failed(StreamTruncated, "the stream ended without `[DONE]`", "")),
    ] {
        check_chat(name, expected);
    }
}

#[test]
fn whole_answers_of_chats_are_read_as_their_services_mean_them() {
    use ErrorClass::{MalformedBody, StreamError};
    let text = |text| Expected { text, ..OK };
    let none = "10 in, 0 out, 0 cached, 0 reasoning";
    for (name, expected) in [
        ("ok", text("Hello")),
        ("listcontent", text("hi")),
        ("hidden", Expected { usage: "10 in, 505 out, 0 cached, 500 reasoning", ..text("Hello") }),
        ("nullcontent", Expected { usage: none, ..text("") }),
        (
            "finerror",
            Expected {
                finish: "error",
                failure: Some((StreamError, "reason `error`")),
                ..text("")
            },
        ),
        ("err200", failed(StreamError, "boom", "")),
        ("errobj", failed(StreamError, "boom", "")),
        ("errmsg", failed(StreamError, "system busy", "")),
        ("emptychoices", failed(MalformedBody, "there is no `choices` in `{\"id\"", "")),
        ("nullchoices", failed(MalformedBody, "there is no `choices`", "")),
    ] {
        let mut chat = decoder(Dialect::OpenaiChat, false);
        let body = file(&format!("{name}.json"));
        check(name, &read(&mut chat, (200, JSON), [&body[..]]), expected);
    }
}

#[test]
fn streams_of_other_dialects_are_read_as_their_services_mean_them() {
    use Dialect::{AnthropicMessages, OpenaiResponses};
    use ErrorClass::StreamError;
    let done = Expected { finish: "completed", ..OK };
    for (dialect, name, expected) in [
        (AnthropicMessages, "a_ok", Expected { finish: "end_turn", ..OK }),
        (AnthropicMessages, "a_done", Expected { finish: "end_turn", ..OK }),
        (
            AnthropicMessages,
            "a_err",
            Expected {
                usage: "10 in, ~2 out, 0 cached, 0 reasoning",
                ..failed(StreamError, "Overloaded", "Hello big")
            },
        ),
        (
            OpenaiResponses,
            "resphidden",
            Expected { usage: "10 in, 505 out, 0 cached, 500 reasoning", ..done },
        ),
        (OpenaiResponses, "respfail", failed(StreamError, "boom", "a")),
    ] {
        let body = file(&format!("{name}.sse"));
        let whole = read(&mut decoder(dialect, true), (200, EVENTS), [&body[..]]);
        check(name, &whole, expected);
    }
}
