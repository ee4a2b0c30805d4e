//! Implausible usage is rejected, and the rest of the response stays valid.

use plimsoll_measure::Outcome;
use plimsoll_protocol::{Decoder, Dialect};

use crate::support::{EVENTS, JSON, Read, decoder, read, usage};

const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"word\"}}]}\n\n";

/// A stream with this number of events of four bytes, and this usage at its end.
fn chat(events: usize, usage: &str) -> String {
    let end = format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\ndata: [DONE]\n\n");
    [TEXT.repeat(events), end].concat()
}

fn decode(dialect: Dialect, body: &str) -> (Decoder, Read) {
    let is_stream = body.contains("data: ");
    let mut decoder = decoder(dialect, is_stream);
    let head = (200, if is_stream { EVENTS } else { JSON });
    let read = read(&mut decoder, head, body.split_inclusive("\n\n").map(str::as_bytes));
    (decoder, read)
}

#[test]
fn a_count_that_is_no_whole_number_is_refused_and_quoted() {
    for count in ["18446744073709551615", "4294967296", "-5", "1.5", "\"7\"", "1e99", "[3]"] {
        let reported = format!("{{\"prompt_tokens\":9,\"completion_tokens\":{count}}}");
        let (decoder, read) = decode(Dialect::OpenaiChat, &chat(3, &reported));
        assert_eq!(read.outcome, Outcome::Completed, "{count}");
        // The prompt's count is valid; the output is counted by its events.
        assert_eq!(read.usage, "9 in, ~3 out, 0 cached, 0 reasoning");
        let quoted = format!("completion_tokens {count}");
        assert_eq!(decoder.refused_usage(), Some(quoted.as_str()));
    }
}

#[test]
fn whole_numbers_with_a_point_are_counts() {
    let body = chat(3, r#"{"prompt_tokens":9.0,"completion_tokens":3}"#);
    let (decoder, read) = decode(Dialect::OpenaiChat, &body);
    assert_eq!(read.usage, "9 in, 3 out, 0 cached, 0 reasoning");
    assert_eq!(decoder.refused_usage(), None);
}

#[test]
fn the_details_and_the_other_dialects_are_checked_too() {
    let details = r#"{"prompt_tokens":9,"completion_tokens":3,
        "prompt_tokens_details":{"cached_tokens":-1},
        "completion_tokens_details":{"reasoning_tokens":0.5}}"#;
    let anthropic = concat!(
        r#"{"type":"message","content":[{"type":"text","text":"a"}],"#,
        r#""usage":{"input_tokens":1e20,"output_tokens":2}}"#
    );
    let responses = concat!(
        r#"{"status":"completed","output":[],"#,
        r#""usage":{"input_tokens":5,"output_tokens":-2}}"#
    );
    let embeddings = r#"{"data":[{}],"usage":{"prompt_tokens":-3}}"#;
    for (dialect, body, usage, refused) in [
        (
            Dialect::OpenaiChat,
            chat(3, &details.replace('\n', "")),
            "9 in, 3 out, 0 cached, 0 reasoning",
            "cached_tokens -1",
        ),
        (
            Dialect::AnthropicMessages,
            anthropic.to_owned(),
            "? in, 2 out, 0 cached, 0 reasoning",
            "input_tokens 1e20",
        ),
        (
            Dialect::OpenaiResponses,
            responses.to_owned(),
            "5 in, ? out, 0 cached, 0 reasoning",
            "output_tokens -2",
        ),
        (
            Dialect::OpenaiEmbeddings,
            embeddings.to_owned(),
            "? in, ? out, 0 cached, 0 reasoning",
            "prompt_tokens -3",
        ),
    ] {
        let (decoder, read) = decode(dialect, &body);
        assert_eq!(read.outcome, Outcome::Completed, "{}", dialect.name());
        assert_eq!((read.usage.as_str(), decoder.refused_usage()), (usage, Some(refused)));
    }
}

/// A stream of three events: less than 400 bytes.
#[test]
fn more_tokens_than_were_asked_for_and_than_the_bytes_could_carry_are_refused() {
    for (reported, asked, accepted) in [
        // As requested: the model may have reasoned without sending it.
        (5_000, Some(5_000), true),
        // The target ignored the limit, but its bytes could encode that many tokens.
        (200, Some(16), true),
        (5_000, Some(4_000), false),
        (500, Some(16), false),
        (100_000, None, true),
        (2_000_000, None, false),
    ] {
        let reported = format!("{{\"prompt_tokens\":9,\"completion_tokens\":{reported}}}");
        let (mut decoder, _) = decode(Dialect::OpenaiChat, &chat(3, &reported));
        decoder.check_usage(100, asked);
        let refused = decoder.refused_usage().is_some();
        assert_eq!(!refused, accepted, "{reported} of {asked:?}");
        let estimated = usage(decoder.usage()) == "9 in, ~3 out, 0 cached, 0 reasoning";
        assert_eq!(estimated, refused);
    }
}

#[test]
fn a_prompt_larger_than_any_model_takes_is_refused() {
    for (prompt, accepted) in [(1_000_000, true), (10_000_000, true), (4_000_000_000_u32, false)] {
        let body = chat(1, &format!("{{\"prompt_tokens\":{prompt},\"completion_tokens\":1}}"));
        let (mut decoder, _) = decode(Dialect::OpenaiChat, &body);
        decoder.check_usage(100, Some(16));
        assert_eq!(decoder.refused_usage().is_none(), accepted, "{prompt}");
    }
}

#[test]
fn a_count_is_believed_if_so_many_tokens_can_be_in_the_content() {
    for (events, reported, reasoning, after_first) in [
        (3, 100, 0, None),
        (30, 100, 0, None),
        (60, 100, 0, None),
        (100, 100, 0, Some(99)),
        // Two tokens have no content.
        (20, 22, 0, Some(19)),
        (20, 40, 0, None),
        // Each event has a token.
        (20, 5, 0, None),
        // Hidden reasoning that the target reports.
        (3, 503, 500, Some(2)),
        (3, 520, 500, None),
    ] {
        let usage = format!(
            "{{\"completion_tokens\":{reported},\"completion_tokens_details\":{{\"reasoning_tokens\":{reasoning}}}}}"
        );
        let (decoder, read) = decode(Dialect::OpenaiChat, &chat(events, &usage));
        assert_eq!(read.outcome, Outcome::Completed);
        let known = decoder.usage().after_first;
        assert_eq!(known, after_first, "{events} events, {reported} tokens");
    }
}

/// Members of individual servers, and the effect of later reports of a stream.
#[test]
fn counts_are_merged_by_member() {
    for (reports, expected) in [
        // Zeros at the end are ignored.
        (
            &[
                r#"{"prompt_tokens":9,"completion_tokens":3}"#,
                r#"{"prompt_tokens":0,"completion_tokens":0}"#,
            ][..],
            "9 in, 3 out, 0 cached, 0 reasoning",
        ),
        // A later count is smaller, because the first was an estimate.
        (
            &[r#"{"prompt_tokens":9}"#, r#"{"prompt_tokens":7,"completion_tokens":3}"#],
            "7 in, 3 out, 0 cached, 0 reasoning",
        ),
        // Mistral.
        (
            &[r#"{"prompt_tokens":9,"completion_tokens":3,"num_cached_tokens":8}"#],
            "9 in, 3 out, 8 cached, 0 reasoning",
        ),
        // SGLang: the completion includes reasoning.
        (
            &[
                r#"{"prompt_tokens":9,"completion_tokens":13,"total_tokens":22,"reasoning_tokens":10}"#,
            ],
            "9 in, 13 out, 0 cached, 10 reasoning",
        ),
        // Converse behind a gateway: only the total includes cached tokens.
        (
            &[
                r#"{"prompt_tokens":9,"completion_tokens":3,"total_tokens":20,"prompt_tokens_details":{"cached_tokens":8}}"#,
            ],
            "17 in, 3 out, 8 cached, 0 reasoning",
        ),
        // A translator of Google's usage: only the total includes reasoning.
        (
            &[
                r#"{"prompt_tokens":9,"completion_tokens":3,"total_tokens":22,"completion_tokens_details":{"reasoning_tokens":0}}"#,
            ],
            "9 in, 13 out, 0 cached, 10 reasoning",
        ),
        // More reasoning than output: one of the counts is wrong.
        (
            &[
                r#"{"prompt_tokens":9,"completion_tokens":3,"completion_tokens_details":{"reasoning_tokens":10}}"#,
            ],
            "9 in, 3 out, 0 cached, 0 reasoning",
        ),
    ] {
        let reports: Vec<_> = reports
            .iter()
            .map(|usage| format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\n"))
            .collect();
        let body = [&TEXT.repeat(3), &reports.concat(), "data: [DONE]\n\n"].concat();
        assert_eq!(decode(Dialect::OpenaiChat, &body).1.usage, expected, "{reports:?}");
    }
}

/// Two bytes of reasoning, three of text and three of a call, in every dialect and form.
#[test]
fn the_parts_of_an_answer_are_counted_in_bytes() {
    let chat = Dialect::OpenaiChat;
    let messages = Dialect::AnthropicMessages;
    let call = r#"{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}"#;
    let whole = format!(
        "{{\"choices\":[{{\"message\":{{\"reasoning\":\"ab\",\"content\":\"cde\",\"tool_calls\":[{call}]}}}}]}}"
    );
    let deltas = [
        r#"{"reasoning_content":"ab"}"#,
        r#"{"content":"cde"}"#,
        r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}"#,
    ];
    let events = deltas.map(|delta| format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n"));
    let stream = [&events.concat(), "data: [DONE]\n\n"].concat();
    let message = r#"{"type":"message","content":[{"type":"thinking","thinking":"ab"},{"type":"text","text":"cde"},{"type":"tool_use","id":"c","name":"f","input":{}}]}"#;
    for (dialect, body) in [(chat, &*whole), (chat, &*stream), (messages, message)] {
        let (decoder, read) = decode(dialect, body);
        assert_eq!(read.outcome, Outcome::Completed, "{body}");
        let content = decoder.content();
        assert_eq!((content.text, content.reasoning, content.tool_calls), (3, 2, 3), "{body}");
        assert_eq!(content.total(), 8);
        // `crc32(b"abcdef{}")` by Python's zlib, for a stream and a whole response.
        assert_eq!(content.digest, 0x2545_93e6, "{body}");
    }
    let (decoder, _) = decode(Dialect::Http, "any bytes");
    assert_eq!(decoder.content().text, 9);
}
