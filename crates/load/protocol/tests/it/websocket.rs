//! The messages of a chat over a WebSocket.

use plimsoll_measure::{ErrorClass, Outcome, TokenSource};
use plimsoll_protocol::{
    Decoder, DeltaKind, Dialect, Encoder, EncoderOptions, Message, RequestContent, Role, Turn,
};
use serde_json::json;

use crate::support::{decoder, usage};

/// The deltas of a response, its outcome, and the message of its failure.
fn read(decoder: &mut Decoder, messages: &[&str]) -> (Vec<String>, Outcome, Option<String>) {
    let mut deltas = Vec::new();
    decoder.head(101, None);
    for message in messages {
        decoder.message(Some(message), &mut |delta| {
            let kind = if delta.kind == DeltaKind::Text { "" } else { "~" };
            deltas.push(format!("{kind}{}", delta.text));
        });
    }
    let outcome = decoder.finish();
    (deltas, outcome, decoder.error_detail().map(|detail| detail.message.clone()))
}

#[test]
fn an_answer_is_its_deltas_up_to_done() {
    let mut decoder = decoder(Dialect::Websocket, true);
    let messages = [
        r#"{"type":"reasoning","text":"Hm"}"#,
        r#"{"type":"delta","text":""}"#,
        r#"{"type":"delta","text":"Ahoy, \"friend\""}"#,
        r#"{"type":"ping"}"#,
        r#" {"text":" \ud83d\udea2","type":"delta","n":1} "#,
        r#"{"type":"done","usage":{"prompt_tokens":9,"completion_tokens":3}}"#,
        r#"{"type":"delta","text":"too late"}"#,
    ];
    let (deltas, outcome, detail) = read(&mut decoder, &messages);
    assert_eq!(deltas, ["~Hm", "Ahoy, \"friend\"", " \u{1f6a2}"]);
    assert_eq!((outcome, detail), (Outcome::Completed, None));
    assert_eq!(decoder.text(), "Ahoy, \"friend\" \u{1f6a2}");
    assert_eq!(usage(decoder.usage()), "9 in, 3 out, 0 cached, 0 reasoning");
    assert!(decoder.is_stream() && decoder.is_over() && !decoder.gives_finish_reasons());
    // The next response on the same connection.
    let next = [r#"{"type":"delta","text":"a"}"#, r#"{"type":"done"}"#];
    assert_eq!(read(&mut decoder, &next).0, ["a"]);
    assert_eq!(decoder.usage().completion.source, TokenSource::Estimated);
}

#[test]
fn answers_that_end_wrongly_have_their_class() {
    let delta = r#"{"type":"delta","text":"a"}"#;
    for (messages, class, message) in [
        (&[][..], ErrorClass::StreamTruncated, "the stream ended without `done`"),
        (&[delta], ErrorClass::StreamTruncated, "the stream ended without `done`"),
        (
            &[delta, r#"{"type":"error","error":{"type":"server_error","message":"no"}}"#],
            ErrorClass::StreamError,
            "no",
        ),
        (&[r#"{"type":"error","message":"plain"}"#], ErrorClass::StreamError, "plain"),
        (
            &[r#"{"text":"a"}"#],
            ErrorClass::MalformedBody,
            "there is no `type` in `{\"text\":\"a\"}`",
        ),
        (
            &["hello"],
            ErrorClass::MalformedBody,
            "the body does not match the protocol: expected an object at byte 0 of `hello`",
        ),
    ] {
        let (_, outcome, detail) = read(&mut decoder(Dialect::Websocket, true), messages);
        assert_eq!(outcome, Outcome::Failed(class), "{messages:?}");
        assert_eq!(detail.as_deref(), Some(message), "{messages:?}");
    }
}

#[test]
fn binary_messages_and_endless_answers_are_refused() {
    let mut decoder = decoder(Dialect::Websocket, true);
    decoder.head(101, None);
    decoder.message(None, &mut |_| panic!("no delta"));
    assert_eq!(decoder.finish(), Outcome::Failed(ErrorClass::MalformedBody));
    decoder.head(101, None);
    let mut events = 0;
    while decoder.failure().is_none() {
        decoder.message(Some(r#"{"type":"delta","text":"0123456789"}"#), &mut |_| events += 1);
    }
    assert_eq!(decoder.finish(), Outcome::Failed(ErrorClass::BodyTooLarge));
    assert_eq!(events, 20_000 / 36);
}

#[test]
fn what_refuses_the_handshake_is_read_like_any_refusal() {
    for (status, body, expected) in [
        (401, r#"{"error":{"message":"no key"}}"#, Outcome::Rejected(401)),
        (429, "", Outcome::Rejected(429)),
        (200, "hello", Outcome::Failed(ErrorClass::WebsocketHandshake)),
        (302, "", Outcome::Failed(ErrorClass::Redirect)),
        (503, "", Outcome::Failed(ErrorClass::ServerError)),
    ] {
        let mut decoder = decoder(Dialect::Websocket, true);
        decoder.head(status, Some(b"application/json"));
        decoder.feed(body.as_bytes(), &mut |_| panic!("no delta"));
        assert_eq!(decoder.finish(), expected);
        assert!(!decoder.is_stream());
    }
}

#[test]
fn a_turn_is_the_newest_message_with_the_parameters() {
    let options = EncoderOptions {
        model: "not sent".to_owned(),
        parameters: json!({"room": 7}).as_object().unwrap().clone(),
        ..EncoderOptions::default()
    };
    let encoder = Encoder::new(Dialect::Websocket, &options).unwrap();
    let messages = [
        Message::new(Role::User, "first".into()),
        Message::new(Role::Assistant, "reply".into()),
        Message::new(Role::User, "say \"hi\"".into()),
    ];
    let turn = Turn {
        content: RequestContent::Chat { system: None, messages: &messages },
        stream: true,
        max_tokens: Some(8),
    };
    let mut out = Vec::new();
    encoder.encode_body(&turn, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), r#"{"room":7,"message":"say \"hi\""}"#);
    assert_eq!((encoder.method(&turn), &*encoder.path("/v1", &turn)), ("GET", "/ws/chat"));
    let headers = encoder.static_headers(true, Some("k"));
    assert_eq!(headers, [("authorization".to_owned(), "Bearer k".to_owned())]);
}
