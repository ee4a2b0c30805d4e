//! Expected messages to tool servers and agents, byte by byte.

use std::sync::Arc;

use plimsoll_protocol::rpc::a2a::{self, Version};
use plimsoll_protocol::rpc::mcp::{self, Ask, List, Revision};
use plimsoll_protocol::rpc::{Call, Request};
use plimsoll_protocol::{
    Dialect, Encoder, EncoderOptions, HttpContent, ProtocolError, RequestContent, Text, Turn,
};

fn turn(request: &Request) -> Turn<'_> {
    Turn { content: RequestContent::Rpc(request), stream: false, max_tokens: None }
}

fn encoder(dialect: Dialect) -> Encoder {
    Encoder::new(dialect, &EncoderOptions::default()).unwrap()
}

fn tool_server(revision: Revision, ask: Ask) -> Request {
    let known = |text: &str| revision.has_sessions().then(|| Arc::from(text));
    let (version, session) = (known("2025-06-18"), known("s-1"));
    let call = mcp::Call { revision, version, session, ask };
    Request { path: Arc::default(), id: 7, call: Call::Mcp(call) }
}

fn agent(version: Version, ask: a2a::Ask) -> Request {
    Request { path: Arc::default(), id: 7, call: Call::A2a(a2a::Call { version, ask }) }
}

/// HTTP method, headers and body.
fn written(request: &Request) -> (String, Vec<String>, String) {
    let encoder = encoder(request.dialect());
    let turn = turn(request);
    let mut body = Vec::new();
    encoder.encode_body(&turn, &mut body).unwrap();
    let headers = turn.own_headers().iter().map(|(n, v)| format!("{n}: {v}")).collect();
    (encoder.method(&turn).to_owned(), headers, String::from_utf8(body).unwrap())
}

const JSON: &str = "content-type: application/json";
const BOTH: &str = "accept: application/json, text/event-stream";
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn a_session_is_written_like_this() {
    let old = |ask| written(&tool_server(Revision::V20251125, ask));
    let session = ["mcp-session-id: s-1", "mcp-protocol-version: 2025-06-18"];
    let post = [&[JSON, BOTH][..], &session].concat();
    let first = Request {
        call: Call::Mcp(mcp::Call {
            revision: Revision::V20251125,
            version: None,
            session: None,
            ask: Ask::Initialize,
        }),
        ..tool_server(Revision::V20251125, Ask::Ping)
    };
    assert_eq!(
        written(&first),
        (
            "POST".to_owned(),
            vec![JSON.to_owned(), BOTH.to_owned()],
            format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"plimsoll","version":"{VERSION}"}}}}}}"#
            )
        )
    );
    let echo = Ask::Tool {
        name: "echo".into(),
        arguments: r#"{"text":"é\n"}"#.to_owned(),
        progress: true,
    };
    let list =
        |cursor: Option<&str>| Ask::List { list: List::Tools, cursor: cursor.map(str::to_owned) };
    for (ask, body) in [
        (Ask::Initialized, r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}"#),
        (Ask::Ping, r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}"#),
        (list(None), r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}"#),
        (
            list(Some("a\"b")),
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":"a\"b"}}"#,
        ),
        (
            echo,
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"é\n"},"_meta":{"progressToken":7}}}"#,
        ),
        (
            Ask::Resource { uri: "mock://notes".into() },
            r#"{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"mock://notes"}}"#,
        ),
        (
            Ask::Cancelled { request: 5 },
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,"reason":"The client no longer waits"}}"#,
        ),
    ] {
        let (method, headers, found) = old(ask);
        assert_eq!((method.as_str(), found.as_str()), ("POST", body));
        assert_eq!(headers, post, "{body}");
    }
    let (method, headers, body) = old(Ask::EndSession);
    assert_eq!((method.as_str(), body.as_str()), ("DELETE", ""));
    assert_eq!(headers, session);
}

#[test]
fn a_stateless_request_describes_itself() {
    let prompt = Ask::Prompt { name: "grüße".into(), arguments: "{}".to_owned() };
    let (_, headers, body) = written(&tool_server(Revision::V20260728, prompt));
    let meta = format!(
        r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"plimsoll","version":"{VERSION}"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}"#
    );
    assert_eq!(
        headers,
        [
            JSON,
            BOTH,
            "mcp-protocol-version: 2026-07-28",
            "mcp-method: prompts/get",
            // Encoded with coreutils' base64.
            "mcp-name: =?base64?Z3LDvMOfZQ==?=",
        ]
    );
    assert_eq!(
        body,
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{{"name":"grüße","arguments":{{}},{meta}}}}}"#
        )
    );
    let (_, headers, body) = written(&tool_server(Revision::V20260728, Ask::Discover));
    assert_eq!(headers[3], "mcp-method: server/discover");
    assert_eq!(headers.len(), 4);
    assert_eq!(
        body,
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"server/discover","params":{{{meta}}}}}"#)
    );
}

fn message() -> a2a::Message {
    let mut text = Text::from("say ");
    text.share("\"hi\"".into());
    a2a::Message { id: "m-1".to_owned(), text, context: Some("c-1".to_owned()), task: None }
}

#[test]
fn an_agent_is_asked_in_both_versions() {
    let send = |stream, wait| a2a::Ask::Send { message: message(), stream, wait };
    let task = || "t-1".to_owned();
    let new = r#"{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"say \"hi\""}],"contextId":"c-1"}"#;
    let old = r#"{"kind":"message","messageId":"m-1","role":"user","parts":[{"kind":"text","text":"say \"hi\""}],"contextId":"c-1"}"#;
    for (version, ask, method, params) in [
        (Version::V1_0, send(false, true), "SendMessage", format!(r#""message":{new}"#)),
        (
            Version::V1_0,
            send(false, false),
            "SendMessage",
            format!(r#""message":{new},"configuration":{{"returnImmediately":true}}"#),
        ),
        (Version::V1_0, send(true, false), "SendStreamingMessage", format!(r#""message":{new}"#)),
        (Version::V1_0, a2a::Ask::Get { task: task() }, "GetTask", r#""id":"t-1""#.to_owned()),
        (
            Version::V1_0,
            a2a::Ask::Cancel { task: task() },
            "CancelTask",
            r#""id":"t-1""#.to_owned(),
        ),
        (
            Version::V0_3,
            send(false, true),
            "message/send",
            format!(r#""message":{old},"configuration":{{"blocking":true}}"#),
        ),
        (
            Version::V0_3,
            send(true, false),
            "message/stream",
            format!(r#""message":{old},"configuration":{{"blocking":true}}"#),
        ),
        (Version::V0_3, a2a::Ask::Get { task: task() }, "tasks/get", r#""id":"t-1""#.to_owned()),
        (
            Version::V0_3,
            a2a::Ask::Cancel { task: task() },
            "tasks/cancel",
            r#""id":"t-1""#.to_owned(),
        ),
    ] {
        let (http, headers, body) = written(&agent(version, ask));
        let expected =
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}}}}}"#);
        assert_eq!((http.as_str(), body), ("POST", expected));
        assert_eq!(headers.contains(&"a2a-version: 1.0".to_owned()), version == Version::V1_0);
        let stream = headers.contains(&"accept: text/event-stream".to_owned());
        assert_eq!(stream, method.contains("tream"), "{method}");
    }
    let (http, headers, body) = written(&agent(Version::V1_0, a2a::Ask::Card));
    assert_eq!((http.as_str(), body.as_str()), ("GET", ""));
    assert_eq!(headers, ["accept: application/json", "a2a-version: 1.0"]);
}

#[test]
fn the_path_is_the_requests_own_or_the_targets_or_the_protocols() {
    let of = |dialect, base: &str, own: &str| {
        let mut request = match dialect {
            Dialect::Mcp => tool_server(Revision::V20251125, Ask::Ping),
            _ => agent(Version::V1_0, a2a::Ask::Card),
        };
        request.path = own.into();
        encoder(dialect).path(base, &turn(&request)).into_owned()
    };
    for (base, own, path) in [
        ("", "", "/mcp"),
        ("/", "", "/mcp"),
        ("/v1", "", "/mcp"),
        ("/v1/", "", "/mcp"),
        ("/gateway/mcp", "", "/gateway/mcp"),
        ("/gateway/mcp", "/tools", "/tools"),
        ("?k=1", "", "/mcp?k=1"),
        ("/a?k=1", "", "/a?k=1"),
        ("/a?k=1", "/tools", "/tools?k=1"),
    ] {
        assert_eq!(of(Dialect::Mcp, base, own), path, "{base} {own}");
    }
    assert_eq!(of(Dialect::A2a, "/", ""), "/a2a");
}

#[test]
fn what_does_not_fit_is_refused() {
    let ping = tool_server(Revision::V20251125, Ask::Ping);
    let mut out = Vec::new();
    let wrong = encoder(Dialect::A2a).encode_body(&turn(&ping), &mut out);
    assert!(matches!(wrong, Err(ProtocolError::UnsupportedContent { .. })));
    let http = HttpContent::default();
    let plain = Turn { content: RequestContent::Http(&http), stream: false, max_tokens: None };
    assert!(encoder(Dialect::Mcp).encode_body(&plain, &mut out).is_err());
    assert!(encoder(Dialect::OpenaiChat).encode_body(&turn(&ping), &mut out).is_err());
    assert!(out.is_empty());
    let parameters = [("temperature".to_owned(), 1.into())].into_iter().collect();
    let options = EncoderOptions { parameters, ..EncoderOptions::default() };
    let refused = Encoder::new(Dialect::Mcp, &options).unwrap_err();
    assert_eq!(refused, ProtocolError::ParametersOfRpc);
    // The key is sent to tool servers as to models; the other headers belong to each request.
    let headers = encoder(Dialect::Mcp).static_headers(true, Some("k"));
    assert_eq!(headers, [("authorization".to_owned(), "Bearer k".to_owned())]);
}
