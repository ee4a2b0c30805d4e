//! The chat at `/ws/chat`: frames by hand, and each turn against its record.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use plimsoll_mock::{Dialect, LogRecord, Mock, RequestEnd, WebSocketEvent, WebSocketRecord};
use serde_json::{Value, json};

use crate::support::{Client, finish, spawn, wait};

const PATH: &str = "/ws/chat";
/// The key of RFC 6455, section 1.3, and its accept.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// One WebSocket.
struct Chat(TcpStream);

impl Chat {
    /// Opens one; `headers` are further lines.
    fn open(mock: &Mock, headers: &str) -> Self {
        let (chat, head) = Self::try_open(mock, headers);
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert!(head.to_lowercase().contains("upgrade: websocket\r\nconnection: upgrade\r\n"));
        assert!(head.contains(ACCEPT), "{head}");
        chat
    }

    fn try_open(mock: &Mock, headers: &str) -> (Self, String) {
        let mut stream = TcpStream::connect(mock.addr()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let request = format!(
            "GET {PATH} HTTP/1.1\r\nhost: mock\r\nx-request-id: id-0\r\nupgrade: websocket\r\n\
             connection: keep-alive, Upgrade\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: {KEY}\r\n{headers}\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        (Self(stream), String::from_utf8(head).unwrap())
    }

    /// Sends a frame with a mask.
    fn send(&mut self, first: u8, payload: &[u8]) {
        self.0.write_all(&frame(first, payload)).unwrap();
    }

    fn ask(&mut self, message: &Value) {
        self.send(0x81, message.to_string().as_bytes());
    }

    /// Reads a frame: first byte and payload; `None` at the end of the connection.
    fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut start = [0; 2];
        self.0.read_exact(&mut start).ok()?;
        let length = match start[1] {
            126 => {
                let mut length = [0; 2];
                self.0.read_exact(&mut length).ok()?;
                usize::from(u16::from_be_bytes(length))
            }
            short => usize::from(short),
        };
        assert!(length < 65_536 && start[1] < 127, "no mask, and nothing so large");
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).ok()?;
        Some((start[0], payload))
    }

    /// Reads a text message.
    fn message(&mut self) -> Value {
        let (first, payload) = self.frame().unwrap();
        assert_eq!(first, 0x81);
        serde_json::from_slice(&payload).unwrap()
    }

    /// Reads an answer to its last message, as far as it comes.
    fn answer(&mut self) -> Vec<Value> {
        let mut messages: Vec<Value> = Vec::new();
        while !messages.last().is_some_and(|last| last["type"] == "done" || last["type"] == "error")
        {
            match self.frame() {
                Some((0x81, payload)) => messages.push(serde_json::from_slice(&payload).unwrap()),
                _ => break,
            }
        }
        messages
    }

    /// Closes with 1000. Returns the code of the answer.
    fn close(mut self) -> Option<(u8, Vec<u8>)> {
        self.send(0x88, &1000u16.to_be_bytes());
        self.frame()
    }
}

fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match u8::try_from(payload.len()) {
        Ok(short) if short < 126 => frame.push(0x80 | short),
        _ => {
            frame.push(0xfe);
            frame.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
        }
    }
    let key = [7, 6, 5, 4];
    frame.extend(key);
    frame.extend(payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
    frame
}

/// The records of an event.
fn rows_of(log: &[LogRecord], event: WebSocketEvent) -> Vec<(&LogRecord, &WebSocketRecord)> {
    let known = log.iter().filter_map(|record| Some((record, record.websocket.as_deref()?)));
    known.filter(|(_, websocket)| websocket.event == event).collect()
}

#[test]
fn each_turn_is_answered_and_recorded_and_so_are_handshake_and_end() {
    let mock = spawn("{log: memory, models: {m: {gap: 2ms, reasoning_share: 0.5}}}");
    let mut chat = Chat::open(&mock, "sec-websocket-protocol: one, two\r\n");
    let question = json!({"message": "12345678", "model": "m", "max_tokens": 4});
    chat.ask(&question);
    let answer = chat.answer();
    let kinds: Vec<_> = answer.iter().map(|message| message["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["reasoning", "reasoning", "delta", "delta", "done"]);
    assert!(answer[..4].iter().all(|message| message["text"].as_str().unwrap().len() == 4));
    assert_eq!(answer[4]["finish_reason"], "stop");
    let usage = &answer[4]["usage"];
    assert_eq!((&usage["prompt_tokens"], &usage["completion_tokens"]), (&json!(2), &json!(4)));
    chat.ask(&json!({"message": "second"}));
    assert_eq!(chat.answer().len(), 65, "64 tokens by default");
    assert_eq!(chat.close(), Some((0x88, vec![0x03, 0xe8])));
    wait(|| mock.stats().connections_open == 0);
    let stats = mock.stats();
    let log = finish(mock);

    let [(handshake, _)] = rows_of(&log, WebSocketEvent::Handshake)[..] else { panic!("{log:?}") };
    assert_eq!((handshake.status, handshake.path.as_str()), (101, PATH));
    assert_eq!(handshake.request_id.as_deref(), Some("id-0"));
    let [(first, one), (second, two)] = rows_of(&log, WebSocketEvent::Turn)[..] else {
        panic!("{log:?}")
    };
    assert_eq!((first.request_id.as_deref(), one.turn), (Some("id-0/0"), 0));
    assert_eq!((second.request_id.as_deref(), two.turn), (Some("id-0/1"), 1));
    assert_eq!(
        (first.dialect, first.status, first.planned_tokens),
        (Some(Dialect::Websocket), 101, 4)
    );
    assert_eq!((first.prompt_tokens, first.model.as_deref()), (2, Some("m")));
    assert_eq!(one.message_bytes, question.to_string().len() as u64);
    let tokens: Vec<u32> = first.chunks.iter().map(|chunk| chunk.tokens).collect();
    assert_eq!(tokens, [1, 1, 1, 1, 0][..tokens.len()].to_vec());
    assert!(first.arrived <= first.received && first.received <= first.body_complete);
    assert!(first.chunks.iter().all(|chunk| chunk.written >= chunk.due));
    // The kernel may hand a message on before the mock looks at the clock again.
    assert!(second.arrived >= first.chunks.last().unwrap().due);
    let [(end, how)] = rows_of(&log, WebSocketEvent::End)[..] else { panic!("{log:?}") };
    assert_eq!((how.turn, how.code, how.by_client), (2, Some(1000), true));
    assert!(end.finished >= second.finished && end.connection == first.connection);
    assert!(log.iter().all(|record| record.end == Some(RequestEnd::Completed)));
    assert_eq!((stats.requests, stats.completed, stats.streams), (3, 3, 2));
    assert_eq!((stats.tokens_out, stats.by_status[&101]), (68, 3));
}

#[test]
fn pings_are_answered_within_an_answer_and_messages_wait_for_it() {
    let mock = spawn("{log: memory, other_models: {ttft: 100ms, default_output: 1}}");
    let mut chat = Chat::open(&mock, "");
    // One message in two fragments with a ping between, and a second message behind it.
    let text = json!({"message": "first"}).to_string();
    let (start, rest) = text.as_bytes().split_at(5);
    let second = json!({"message": "second"}).to_string();
    let bytes = [
        frame(0x01, start),
        frame(0x89, b"a"),
        frame(0x80, rest),
        frame(0x81, second.as_bytes()),
        frame(0x89, b"b"),
    ];
    chat.0.write_all(&bytes.concat()).unwrap();
    assert_eq!(chat.frame(), Some((0x8a, b"a".to_vec())));
    assert_eq!(chat.frame(), Some((0x8a, b"b".to_vec())));
    assert_eq!((chat.answer().len(), chat.answer().len()), (2, 2));
    drop(chat);
    wait(|| mock.stats().connections_open == 0);
    let log = finish(mock);
    assert_eq!(rows_of(&log, WebSocketEvent::Turn).len(), 2);
    let [(_, how)] = rows_of(&log, WebSocketEvent::End)[..] else { panic!("{log:?}") };
    assert_eq!((how.turn, how.code, how.by_client), (2, None, true));
}

#[test]
fn faults_come_in_the_turn_and_are_recorded() {
    for (fault, messages, end, code) in [
        ("cut@2", 2, RequestEnd::Aborted, None),
        ("reset@2", 2, RequestEnd::Aborted, None),
        ("reset", 0, RequestEnd::Aborted, None),
        ("truncate@2", 2, RequestEnd::Completed, Some(1000)),
    ] {
        let mock = spawn("{log: memory, other_models: {gap: 20ms, default_output: 4}}");
        let mut chat = Chat::open(&mock, &format!("x-mock-fault: {fault}\r\n"));
        chat.ask(&json!({"message": "hello"}));
        for _ in 0..messages {
            assert_eq!(chat.message()["type"], "delta", "{fault}");
        }
        let close = code.map(|code: u16| (0x88, code.to_be_bytes().to_vec()));
        assert_eq!(chat.frame(), close, "{fault}");
        drop(chat);
        wait(|| mock.stats().connections_open == 0);
        let log = finish(mock);
        let [(turn, _)] = rows_of(&log, WebSocketEvent::Turn)[..] else { panic!("{log:?}") };
        assert_eq!((turn.end, turn.fault.as_deref()), (Some(end), Some(fault)));
        let [(_, how)] = rows_of(&log, WebSocketEvent::End)[..] else { panic!("{log:?}") };
        assert_eq!((how.code, how.by_client), (code, false), "{fault}");
    }
    // These leave the connection open.
    for (model, answer, status) in [
        ("faults: [{fault: error@2, share: 1}]", 3, 101),
        ("faults: [{fault: '503', share: 1}]", 1, 503),
        ("faults: [{fault: 'stall@2:30ms', share: 1}]", 5, 101),
    ] {
        let mock = spawn(&format!("{{log: memory, other_models: {{default_output: 4, {model}}}}}"));
        let mut chat = Chat::open(&mock, "");
        for _ in 0..2 {
            chat.ask(&json!({"message": "hello"}));
            assert_eq!(chat.answer().len(), answer, "{model}");
        }
        assert!(chat.close().is_some());
        let log = finish(mock);
        let statuses: Vec<u16> =
            rows_of(&log, WebSocketEvent::Turn).iter().map(|(turn, _)| turn.status).collect();
        assert_eq!(statuses, [status; 2], "{model}");
    }
    let mock = spawn("{log: memory, other_models: {faults: [{fault: hang, share: 1}]}}");
    let mut chat = Chat::open(&mock, "");
    chat.ask(&json!({"message": "hello"}));
    chat.send(0x89, b"alive");
    assert_eq!(chat.frame(), Some((0x8a, b"alive".to_vec())));
    assert!(chat.close().is_some());
    wait(|| mock.stats().connections_open == 0);
    let log = finish(mock);
    assert_eq!(rows_of(&log, WebSocketEvent::Turn)[0].0.end, Some(RequestEnd::Aborted));
}

#[test]
fn what_is_no_chat_is_refused_with_its_code() {
    let mock = spawn("{log: memory, other_models: {default_output: 1}}");
    for (text, problem) in [
        ("hello", "A message must be an object"),
        (r#"{"text":"x"}"#, "missing field `message`"),
        (r#"{"message":7}"#, "invalid type"),
    ] {
        let mut chat = Chat::open(&mock, "");
        chat.send(0x81, text.as_bytes());
        let error = chat.message();
        assert_eq!(error["type"], "error");
        assert!(error["error"]["message"].as_str().unwrap().contains(problem), "{error}");
        chat.ask(&json!({"message": "the connection is open"}));
        assert_eq!(chat.answer().len(), 2);
    }
    for (bytes, code) in [
        (b"\x81\x02hi".to_vec(), 1002),
        (frame(0xc1, b"x"), 1002),
        (frame(0x82, b"x"), 1003),
        (frame(0x81, b"\xff"), 1007),
        ([&b"\x81\xff\0\0\0\0\0\x20\0\0"[..], &[0; 4]].concat(), 1009),
    ] {
        let mut chat = Chat::open(&mock, "");
        chat.0.write_all(&bytes).unwrap();
        assert_eq!(chat.frame(), Some((0x88, u16::to_be_bytes(code).to_vec())), "{bytes:x?}");
    }
    wait(|| mock.stats().connections_open == 0);
    let log = finish(mock);
    let turns = rows_of(&log, WebSocketEvent::Turn);
    assert_eq!((turns.len(), turns.iter().filter(|(turn, _)| turn.status == 400).count()), (6, 3));
    let ends = rows_of(&log, WebSocketEvent::End);
    assert_eq!(ends.iter().filter(|(_, end)| !end.by_client).count(), 5);
}

#[test]
fn handshakes_that_are_none_get_a_status() {
    let mock = spawn("{log: memory, api_key: k}");
    let key = "authorization: Bearer k\r\n";
    let status = |headers: &str| Chat::try_open(&mock, headers).1[9..12].to_owned();
    assert_eq!(status(""), "401");
    assert_eq!(status(key), "101");
    assert_eq!(status(&format!("{key}x-mock-status: 429\r\n")), "429");
    let mut client = Client::connect(&mock);
    for (headers, method, expected) in [
        ("", "GET", 426),
        ("upgrade: websocket\r\nconnection: upgrade\r\n", "GET", 426),
        ("upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 8\r\n", "GET", 426),
        ("upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n", "GET", 400),
        (
            "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: short\r\n",
            "GET",
            400,
        ),
        ("content-length: 0\r\n", "POST", 405),
    ] {
        client.send(&format!("{method} {PATH} HTTP/1.1\r\nhost: mock\r\n{key}{headers}\r\n"));
        let response = client.response();
        assert_eq!(response.status, expected, "{headers}");
        if expected == 426 {
            assert_eq!(response.header("sec-websocket-version"), Some("13"));
        }
    }
    // The connection of a refused handshake carries further requests.
    assert_eq!(client.get("/health").status, 200);
}

/// The crate `tungstenite` as a client.
#[test]
fn a_widely_used_client_understands_us_and_we_it() {
    let mock = spawn("{log: memory, other_models: {tokens_per_event: 40, gap: 1ms}}");
    let url = format!("ws://{}{PATH}", mock.addr());
    let stream = TcpStream::connect(mock.addr()).unwrap();
    let (mut socket, response) = tungstenite::client(url, stream).unwrap();
    assert_eq!(response.status(), 101);
    for words in [1, 30, 20_000] {
        let message = json!({"message": "sun ".repeat(words), "max_tokens": 100});
        socket.send(tungstenite::Message::text(message.to_string())).unwrap();
        socket.send(tungstenite::Message::Ping(b"p".to_vec().into())).unwrap();
        let (mut text, mut usage) = (String::new(), Value::Null);
        while usage.is_null() {
            let message = match socket.read().unwrap() {
                tungstenite::Message::Text(message) => message,
                tungstenite::Message::Pong(_) => continue,
                other => panic!("{other:?}"),
            };
            let message: Value = serde_json::from_str(message.as_str()).unwrap();
            text.push_str(message["text"].as_str().unwrap_or_default());
            usage = message["usage"].clone();
        }
        assert_eq!((&usage["prompt_tokens"], text.len()), (&json!(words), 400));
    }
    socket.close(None).unwrap();
    while socket.read().is_ok() {}
    wait(|| mock.stats().connections_open == 0);
    let log = finish(mock);
    assert_eq!(rows_of(&log, WebSocketEvent::Turn).len(), 3);
    assert!(rows_of(&log, WebSocketEvent::End)[0].1.by_client);
}
