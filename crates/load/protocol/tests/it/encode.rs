//! Expected requests, byte by byte.

use plimsoll_protocol::{
    Dialect, Encoder, EncoderOptions, HttpContent, Message, ProtocolError, RecordedRequest,
    RequestContent, Role, Text, TokenLimit, Turn,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn encoder(dialect: Dialect) -> Encoder {
    let options = EncoderOptions { model: "m-1".to_owned(), ..EncoderOptions::default() };
    Encoder::new(dialect, &options).unwrap()
}

fn text(pieces: &[&str]) -> Text {
    let mut text = Text::new();
    for &piece in pieces {
        text.share(piece.into());
    }
    text
}

fn dialogue() -> (Text, Vec<Message>) {
    let say = |role, pieces: &[&str]| Message::new(role, text(pieces));
    let messages = vec![
        say(Role::User, &["id-1 ", "Say \"ahoy\"\nplease"]),
        say(Role::Assistant, &["Ahoy! 🚢"]),
        say(Role::User, &["Again"]),
    ];
    (text(&["Be ", "brief."]), messages)
}

fn body(encoder: &Encoder, turn: &Turn<'_>) -> String {
    let mut out = b"kept:".to_vec();
    encoder.encode_body(turn, &mut out).unwrap();
    String::from_utf8(out).unwrap().strip_prefix("kept:").unwrap().to_owned()
}

fn check(encoder: &Encoder, turn: &Turn<'_>, bytes: &str, meaning: &Value) {
    let body = body(encoder, turn);
    assert_eq!(body, bytes);
    assert_eq!(&serde_json::from_str::<Value>(&body).unwrap(), meaning);
}

#[test]
fn chat_puts_the_system_prompt_first_and_requests_usage_with_a_stream() {
    let (system, messages) = dialogue();
    let content = RequestContent::Chat { system: Some(&system), messages: &messages };
    check(
        &encoder(Dialect::OpenaiChat),
        &Turn { content, stream: true, max_tokens: Some(64) },
        concat!(
            r#"{"model":"m-1","messages":[{"role":"system","content":"Be brief."},"#,
            r#"{"role":"user","content":"id-1 Say \"ahoy\"\nplease"},"#,
            r#"{"role":"assistant","content":"Ahoy! 🚢"},{"role":"user","content":"Again"}],"#,
            r#""max_tokens":64,"stream":true,"stream_options":{"include_usage":true}}"#,
        ),
        &json!({
            "model": "m-1",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "id-1 Say \"ahoy\"\nplease"},
                {"role": "assistant", "content": "Ahoy! 🚢"},
                {"role": "user", "content": "Again"},
            ],
            "max_tokens": 64,
            "stream": true,
            "stream_options": {"include_usage": true},
        }),
    );
}

#[test]
fn a_completion_has_the_whole_dialogue_as_one_text() {
    let (system, messages) = dialogue();
    let content = RequestContent::Chat { system: Some(&system), messages: &messages };
    check(
        &encoder(Dialect::OpenaiCompletions),
        &Turn { content, stream: true, max_tokens: Some(64) },
        concat!(
            r#"{"model":"m-1","prompt":"Be brief.\nid-1 Say \"ahoy\"\nplease\nAhoy! 🚢\nAgain","#,
            r#""max_tokens":64,"stream":true,"stream_options":{"include_usage":true}}"#,
        ),
        &json!({
            "model": "m-1",
            "prompt": "Be brief.\nid-1 Say \"ahoy\"\nplease\nAhoy! 🚢\nAgain",
            "max_tokens": 64,
            "stream": true,
            "stream_options": {"include_usage": true},
        }),
    );
    let content = RequestContent::Chat { system: None, messages: &messages[2..] };
    let turn = Turn { content, stream: false, max_tokens: None };
    let body = body(&encoder(Dialect::OpenaiCompletions), &turn);
    assert_eq!(body, r#"{"model":"m-1","prompt":"Again"}"#);
}

#[test]
fn chat_omits_stream_and_limit_unless_requested() {
    let (_, messages) = dialogue();
    let content = RequestContent::Chat { system: None, messages: &messages[2..] };
    check(
        &encoder(Dialect::OpenaiChat),
        &Turn { content, stream: false, max_tokens: None },
        r#"{"model":"m-1","messages":[{"role":"user","content":"Again"}]}"#,
        &json!({"model": "m-1", "messages": [{"role": "user", "content": "Again"}]}),
    );
}

#[test]
fn chat_can_use_max_completion_tokens() {
    let options = EncoderOptions {
        token_limit: TokenLimit::MaxCompletionTokens,
        ..EncoderOptions::default()
    };
    let encoder = Encoder::new(Dialect::OpenaiChat, &options).unwrap();
    let content = RequestContent::Chat { system: None, messages: &[] };
    check(
        &encoder,
        &Turn { content, stream: false, max_tokens: Some(7) },
        r#"{"model":"","messages":[],"max_completion_tokens":7}"#,
        &json!({"model": "", "messages": [], "max_completion_tokens": 7}),
    );
}

#[test]
fn responses_have_instructions_and_input_items() {
    let (system, messages) = dialogue();
    let content = RequestContent::Chat { system: Some(&system), messages: &messages[1..] };
    check(
        &encoder(Dialect::OpenaiResponses),
        &Turn { content, stream: true, max_tokens: Some(64) },
        concat!(
            r#"{"model":"m-1","instructions":"Be brief.","input":["#,
            r#"{"type":"message","role":"assistant","content":"Ahoy! 🚢"},"#,
            r#"{"type":"message","role":"user","content":"Again"}],"#,
            r#""max_output_tokens":64,"stream":true}"#,
        ),
        &json!({
            "model": "m-1",
            "instructions": "Be brief.",
            "input": [
                {"type": "message", "role": "assistant", "content": "Ahoy! 🚢"},
                {"type": "message", "role": "user", "content": "Again"},
            ],
            "max_output_tokens": 64,
            "stream": true,
        }),
    );
}

#[test]
fn anthropic_has_a_top_level_system_prompt_and_always_a_limit() {
    let (system, messages) = dialogue();
    let content = RequestContent::Chat { system: Some(&system), messages: &messages[2..] };
    check(
        &encoder(Dialect::AnthropicMessages),
        &Turn { content, stream: true, max_tokens: None },
        concat!(
            r#"{"model":"m-1","system":"Be brief.","messages":[{"role":"user","content":"Again"}],"#,
            r#""max_tokens":1024,"stream":true}"#,
        ),
        &json!({
            "model": "m-1",
            "system": "Be brief.",
            "messages": [{"role": "user", "content": "Again"}],
            "max_tokens": 1024,
            "stream": true,
        }),
    );
}

#[test]
fn an_empty_system_prompt_is_left_out() {
    let (_, messages) = dialogue();
    for dialect in [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::AnthropicMessages] {
        let say = |system| {
            let content = RequestContent::Chat { system, messages: &messages };
            body(&encoder(dialect), &Turn { content, stream: false, max_tokens: None })
        };
        assert_eq!(say(Some(&Text::new())), say(None), "{}", dialect.name());
    }
}

#[test]
fn embeddings_are_requested_as_a_list_and_never_streamed() {
    let inputs = [text(&["one ", "\\"]), text(&["two"])];
    check(
        &encoder(Dialect::OpenaiEmbeddings),
        &Turn {
            content: RequestContent::Embed { inputs: &inputs },
            stream: true,
            max_tokens: Some(5),
        },
        r#"{"model":"m-1","input":["one \\","two"]}"#,
        &json!({"model": "m-1", "input": ["one \\", "two"]}),
    );
}

#[test]
fn plain_http_sends_its_body_unchanged() {
    let content = HttpContent { body: vec![0, 255, b'x'], ..HttpContent::default() };
    let turn = Turn { content: RequestContent::Http(&content), stream: false, max_tokens: None };
    let mut out = Vec::new();
    encoder(Dialect::Http).encode_body(&turn, &mut out).unwrap();
    assert_eq!(out, [0, 255, b'x']);
}

#[test]
fn parameters_are_members_of_the_json_object() {
    let Value::Object(parameters) =
        json!({"temperature": 0.5, "stop": ["\n", "\""], "metadata": {"a\"b": null}})
    else {
        panic!("an object")
    };
    for dialect in [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::AnthropicMessages] {
        let options = EncoderOptions {
            model: "a \"model\"".to_owned(),
            parameters: parameters.clone(),
            ..EncoderOptions::default()
        };
        let encoder = Encoder::new(dialect, &options).unwrap();
        let content = RequestContent::Chat { system: None, messages: &[] };
        let body = body(&encoder, &Turn { content, stream: true, max_tokens: Some(1) });
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["model"], "a \"model\"");
        for (name, value) in &parameters {
            assert_eq!(&body[name], value, "{} {name}", dialect.name());
        }
    }
}

#[test]
fn a_parameter_that_the_encoder_sets_is_rejected() {
    for (dialect, name) in [
        (Dialect::OpenaiChat, "stream"),
        (Dialect::OpenaiChat, "max_completion_tokens"),
        (Dialect::OpenaiResponses, "input"),
        (Dialect::OpenaiEmbeddings, "model"),
        (Dialect::AnthropicMessages, "system"),
    ] {
        let mut options = EncoderOptions::default();
        options.parameters.insert("temperature".to_owned(), json!(1));
        options.parameters.insert(name.to_owned(), json!(1));
        let refused = Encoder::new(dialect, &options).map(|_| ());
        let name = name.to_owned();
        assert_eq!(refused, Err(ProtocolError::ReservedParameter { name, dialect }));
    }
}

#[test]
fn stream_options_can_be_replaced_and_left_out() {
    let (system, messages) = dialogue();
    let content = RequestContent::Chat { system: Some(&system), messages: &messages };
    let turn = Turn { content, stream: true, max_tokens: None };
    for (own, sent) in [
        (None, Some(json!({"include_usage": true}))),
        (
            Some(json!({"include_usage": true, "x": 1})),
            Some(json!({"include_usage": true, "x": 1})),
        ),
        (Some(json!(null)), None),
    ] {
        let mut options = EncoderOptions { model: "m".to_owned(), ..EncoderOptions::default() };
        options.parameters.extend(own.map(|own| ("stream_options".to_owned(), own)));
        let encoder = Encoder::new(Dialect::OpenaiChat, &options).unwrap();
        let text = body(&encoder, &turn);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value.get("stream_options"), sent.as_ref(), "{text}");
        assert_eq!(value["stream"], json!(true));
        assert_eq!(text.matches("stream_options").count(), usize::from(sent.is_some()));
    }
}

/// The members that the encoder writes must be the reserved ones, except the one that parameters
/// can replace.
#[test]
fn every_member_that_the_encoder_writes_is_reserved() {
    let (system, messages) = dialogue();
    let inputs = [text(&["x"])];
    for dialect in Dialect::ALL {
        let content = match dialect {
            Dialect::OpenaiEmbeddings => RequestContent::Embed { inputs: &inputs },
            Dialect::Mcp | Dialect::A2a | Dialect::Http => continue,
            _ => RequestContent::Chat { system: Some(&system), messages: &messages },
        };
        let turn = Turn { content, stream: true, max_tokens: Some(1) };
        let body: Value = serde_json::from_str(&body(&encoder(dialect), &turn)).unwrap();
        for name in body.as_object().unwrap().keys().filter(|name| *name != "stream_options") {
            assert!(dialect.reserved().contains(&name.as_str()), "{} {name}", dialect.name());
        }
    }
}

#[test]
fn plain_http_takes_no_parameters() {
    let mut options = EncoderOptions::default();
    options.parameters.insert("temperature".to_owned(), json!(1));
    let refused = Encoder::new(Dialect::Http, &options).map(|_| ());
    assert_eq!(refused, Err(ProtocolError::ParametersOfHttp));
}

#[test]
fn unsupported_content_is_an_error_and_writes_nothing() {
    let http = HttpContent::default();
    let (chat, embed, http) = (
        RequestContent::Chat { system: None, messages: &[] },
        RequestContent::Embed { inputs: &[] },
        RequestContent::Http(&http),
    );
    for (dialect, content) in [
        (Dialect::OpenaiChat, embed),
        (Dialect::OpenaiResponses, http),
        (Dialect::OpenaiEmbeddings, chat),
        (Dialect::AnthropicMessages, embed),
        (Dialect::Http, chat),
    ] {
        let mut out = Vec::new();
        let turn = Turn { content, stream: false, max_tokens: None };
        let refused = encoder(dialect).encode_body(&turn, &mut out);
        assert!(
            matches!(refused, Err(ProtocolError::UnsupportedContent { .. })),
            "{}",
            dialect.name()
        );
        assert!(out.is_empty());
    }
}

#[test]
fn each_dialect_has_its_own_headers() {
    let json = ("content-type", "application/json");
    let accept = ("accept", "application/json");
    let events = ("accept", "text/event-stream");
    let bearer = ("authorization", "Bearer k");
    let version = ("anthropic-version", "2023-06-01");
    for (dialect, stream, key, expected) in [
        (Dialect::OpenaiChat, true, Some("k"), vec![json, events, bearer]),
        (Dialect::OpenaiResponses, false, Some("k"), vec![json, accept, bearer]),
        (Dialect::OpenaiEmbeddings, true, None, vec![json, accept]),
        (
            Dialect::AnthropicMessages,
            true,
            Some("k"),
            vec![json, events, version, ("x-api-key", "k")],
        ),
        (Dialect::Http, true, Some("k"), vec![bearer]),
        (Dialect::Http, false, None, vec![]),
    ] {
        let headers = encoder(dialect).static_headers(stream, key);
        let headers: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(headers, expected, "{}", dialect.name());
    }
}

#[test]
fn each_dialect_has_its_own_default_path_and_posts_to_it() {
    let turn = Turn {
        content: RequestContent::Chat { system: None, messages: &[] },
        stream: false,
        max_tokens: None,
    };
    for (dialect, path) in [
        (Dialect::OpenaiChat, "/v1/chat/completions"),
        (Dialect::OpenaiResponses, "/v1/responses"),
        (Dialect::OpenaiEmbeddings, "/v1/embeddings"),
        (Dialect::AnthropicMessages, "/v1/messages"),
    ] {
        assert_eq!(encoder(dialect).path("/", &turn), path);
        assert_eq!(encoder(dialect).method(&turn), "POST");
    }
}

#[test]
fn plain_http_has_its_own_path_below_the_targets() {
    for (path, base, expected) in [
        ("/health?full=1", "/base", "/base/health?full=1"),
        ("health", "/base", "/base/health"),
        ("/base/health", "/base", "/base/health"),
        ("", "/base?k=v", "/base?k=v"),
        ("", "", "/"),
    ] {
        let content = HttpContent { path: path.to_owned(), ..HttpContent::default() };
        let turn =
            Turn { content: RequestContent::Http(&content), stream: false, max_tokens: None };
        assert_eq!(encoder(Dialect::Http).path(base, &turn), expected);
        assert_eq!(encoder(Dialect::Http).method(&turn), "GET");
    }
    let content = HttpContent { method: "PUT".to_owned(), ..HttpContent::default() };
    let turn = Turn { content: RequestContent::Http(&content), stream: false, max_tokens: None };
    assert_eq!(encoder(Dialect::Http).method(&turn), "PUT");
}

proptest! {
    #[test]
    fn any_dialogue_round_trips(
        system in proptest::option::of(any::<String>()),
        lines in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<String>(), 0..3)), 0..4),
        max_tokens in any::<Option<u32>>(),
    ) {
        let messages: Vec<_> = lines
            .iter()
            .map(|(user, pieces)| {
                let role = if *user { Role::User } else { Role::Assistant };
                Message::new(role, text(&pieces.iter().map(String::as_str).collect::<Vec<_>>()))
            })
            .collect();
        let system = system.as_deref().map(Text::from);
        let content = RequestContent::Chat { system: system.as_ref(), messages: &messages };
        let turn = Turn { content, stream: false, max_tokens };
        let body: Value = serde_json::from_str(&body(&encoder(Dialect::OpenaiChat), &turn)).unwrap();

        let mut expected = Vec::new();
        if let Some(system) = system.as_ref().filter(|text| !text.is_empty()) {
            expected.push(json!({"role": "system", "content": system.to_string()}));
        }
        for (user, pieces) in &lines {
            let role = if *user { "user" } else { "assistant" };
            expected.push(json!({"role": role, "content": pieces.concat()}));
        }
        prop_assert_eq!(&body["messages"], &Value::Array(expected));
        prop_assert_eq!(body.get("max_tokens").and_then(Value::as_u64), max_tokens.map(u64::from));
    }
}

#[test]
fn a_recorded_request_keeps_its_members_and_gets_what_it_lacks() {
    let options = EncoderOptions {
        parameters: json!({ "top_p": 0.5, "seed": 1 }).as_object().unwrap().clone(),
        ..EncoderOptions::default()
    };
    let encoder = Encoder::new(Dialect::OpenaiChat, &options).unwrap();
    let members = json!({ "seed": 9, "zone": { "of": { "tools": [] } } });
    let mut request = RecordedRequest {
        model: Some("theirs".to_owned()),
        members: members.as_object().unwrap().clone().into(),
        ..RecordedRequest::default()
    };
    let one = r#"{"role":"user","content":"a"},{"role":"tool","content":"b"}"#;
    let messages = [Message::recorded(one.into())];
    for (limit, expected) in [(None, 64), (Some(20), 20)] {
        if let Some(limit) = limit {
            let mut members = members.as_object().unwrap().clone();
            members.insert("max_tokens".to_owned(), limit.into());
            request.members = members.into();
        }
        let content = RequestContent::Recorded { request: &request, messages: &messages };
        let turn = Turn { content, stream: true, max_tokens: Some(64) };
        let sent: Value = serde_json::from_str(&body(&encoder, &turn)).unwrap();
        let whole = json!({
            "model": "theirs", "seed": 9, "zone": { "of": { "tools": [] } }, "top_p": 0.5,
            "messages": [{ "role": "user", "content": "a" }, { "role": "tool", "content": "b" }],
            "max_tokens": expected, "stream": true, "stream_options": { "include_usage": true },
        });
        assert_eq!(sent, whole);
    }
}
