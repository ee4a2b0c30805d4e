//! A scripted provider of both dialects, which records the requests it receives.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// A request as it was received.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A provider. Its threads end with the process.
pub(crate) struct Provider {
    pub(crate) addr: SocketAddr,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Provider {
    pub(crate) fn start(
        script: impl Fn(&ReceivedRequest, &mut ResponseWriter) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<ReceivedRequest>>>::default();
        let (script, received) = (Arc::new(script), Arc::clone(&seen));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, received) = (Arc::clone(&script), Arc::clone(&received));
                thread::spawn(move || talk(stream, &*script, &received));
            }
        });
        Self { addr, seen }
    }

    /// A provider whose every answer is this text, in pieces.
    pub(crate) fn with_text(pieces: &[&str]) -> Self {
        let pieces: Vec<String> = pieces.iter().map(|piece| (*piece).to_owned()).collect();
        Self::start(move |seen, wire| answer(seen, wire, &pieces))
    }

    pub(crate) fn seen(&self) -> Vec<ReceivedRequest> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

fn talk(
    stream: TcpStream,
    script: &dyn Fn(&ReceivedRequest, &mut ResponseWriter) -> io::Result<()>,
    received: &Mutex<Vec<ReceivedRequest>>,
) {
    stream.set_nodelay(true).unwrap();
    let mut wire = ResponseWriter(stream.try_clone().unwrap());
    let mut reader = BufReader::new(stream);
    while let Some(seen) = read(&mut reader) {
        received.lock().unwrap().push(seen.clone());
        if script(&seen, &mut wire).is_err() {
            let _ = wire.0.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<ReceivedRequest> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|size| *size > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let (mut headers, mut length) = (Vec::new(), 0);
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(ReceivedRequest { path, headers, body: String::from_utf8(body).ok()? })
}

/// Writes responses to the gateway.
pub(crate) struct ResponseWriter(TcpStream);

impl ResponseWriter {
    pub(crate) fn whole(&mut self, status: u16, kind: &str, body: &str) -> io::Result<()> {
        self.with(status, kind, "", body)
    }

    /// With further lines of the head.
    pub(crate) fn with(
        &mut self,
        status: u16,
        kind: &str,
        lines: &str,
        body: &str,
    ) -> io::Result<()> {
        let length = match status {
            204 | 304 => String::new(),
            _ => format!("content-length: {}\r\n", body.len()),
        };
        let head = format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n{lines}{length}\r\n");
        self.0.write_all(format!("{head}{body}").as_bytes())
    }

    /// A body of any bytes, with `transfer-encoding: chunked`, one chunk for each piece.
    pub(crate) fn pieces(&mut self, lines: &str, pieces: &[&[u8]]) -> io::Result<()> {
        self.begin(lines, &[])?;
        for piece in pieces {
            self.go_on(piece)?;
        }
        self.end()
    }

    /// The head of such a response, and its first piece.
    pub(crate) fn begin(&mut self, lines: &str, first: &[u8]) -> io::Result<()> {
        let head = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n{lines}\r\n");
        self.0.write_all(head.as_bytes())?;
        if first.is_empty() { Ok(()) } else { self.go_on(first) }
    }

    /// A further piece.
    pub(crate) fn go_on(&mut self, piece: &[u8]) -> io::Result<()> {
        let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        self.0.write_all(&chunk)
    }

    pub(crate) fn json(&mut self, status: u16, body: &Value) -> io::Result<()> {
        self.whole(status, "application/json", &body.to_string())
    }

    pub(crate) fn stream(&mut self) -> io::Result<()> {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        self.0.write_all(head.as_bytes())
    }

    pub(crate) fn frame(&mut self, frame: &str) -> io::Result<()> {
        self.0.write_all(format!("{:x}\r\n{frame}\r\n", frame.len()).as_bytes())
    }

    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.0.write_all(b"0\r\n\r\n")
    }
}

/// Kind of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    Text,
    ToolCall,
    /// A text that is cut off at the limit of tokens.
    CutShort,
}

impl AnswerKind {
    /// The kind that the texts of a request ask for.
    fn asked_by(seen: &ReceivedRequest) -> Self {
        if seen.body.contains("be cut short") {
            return Self::CutShort;
        }
        if seen.body.contains("use the tool") { Self::ToolCall } else { Self::Text }
    }

    /// Why the answer ended, in the words of a dialect.
    const fn reason<'a>(self, text: &'a str, tool_call: &'a str, cut_short: &'a str) -> &'a str {
        match self {
            Self::Text => text,
            Self::ToolCall => tool_call,
            Self::CutShort => cut_short,
        }
    }
}

/// Writes an answer: 7 prompt tokens, 5 completion tokens.
pub(crate) fn answer(
    seen: &ReceivedRequest,
    wire: &mut ResponseWriter,
    pieces: &[String],
) -> io::Result<()> {
    let ask = seen.json();
    let kind = AnswerKind::asked_by(seen);
    if ask["stream"] == true {
        wire.stream()?;
        for frame in frames(seen, pieces, kind) {
            wire.frame(&frame)?;
        }
        return wire.end();
    }
    wire.json(200, &whole(&seen.path, &pieces.concat(), kind))
}

fn whole(path: &str, text: &str, kind: AnswerKind) -> Value {
    if path == "/v1/messages" {
        let content = if kind == AnswerKind::ToolCall {
            json!({"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Oslo"}})
        } else {
            json!({"type": "text", "text": text})
        };
        let stop = kind.reason("end_turn", "tool_use", "max_tokens");
        return json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": [content], "stop_reason": stop, "stop_sequence": null,
            "usage": {"input_tokens": 7, "output_tokens": 5}});
    }
    let message = if kind == AnswerKind::ToolCall {
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_1",
            "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Oslo\"}"}}]})
    } else {
        json!({"role": "assistant", "content": text})
    };
    let stop = kind.reason("stop", "tool_calls", "length");
    json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": stop}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}})
}

/// The frames of a streamed answer.
pub(crate) fn frames(seen: &ReceivedRequest, pieces: &[String], kind: AnswerKind) -> Vec<String> {
    if seen.path == "/v1/messages" {
        return anthropic(pieces, kind);
    }
    let usage = seen.json()["stream_options"]["include_usage"] == true;
    openai(pieces, kind, usage)
}

fn anthropic(pieces: &[String], kind: AnswerKind) -> Vec<String> {
    let start = if kind == AnswerKind::ToolCall {
        json!({"type": "tool_use", "id": "call_1", "name": "weather", "input": {}})
    } else {
        json!({"type": "text", "text": ""})
    };
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message",
            "role": "assistant", "model": "m", "content": [], "stop_reason": null,
            "stop_sequence": null, "usage": {"input_tokens": 7, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": start}),
    ];
    let deltas: Vec<Value> = if kind == AnswerKind::ToolCall {
        let parts = ["{\"city\":", "\"Oslo\"}"];
        parts.map(|part| json!({"type": "input_json_delta", "partial_json": part})).into()
    } else {
        pieces.iter().map(|text| json!({"type": "text_delta", "text": text})).collect()
    };
    events.extend(
        deltas
            .into_iter()
            .map(|delta| json!({"type": "content_block_delta", "index": 0, "delta": delta})),
    );
    let stop = kind.reason("end_turn", "tool_use", "max_tokens");
    events.push(json!({"type": "content_block_stop", "index": 0}));
    events.push(json!({"type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 5}}));
    events.push(json!({"type": "message_stop"}));
    let frame =
        |event: Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.into_iter().map(frame).collect()
}

fn openai(pieces: &[String], kind: AnswerKind, usage: bool) -> Vec<String> {
    let chunk = |delta: Value, stop: Value| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]})
    };
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    if kind == AnswerKind::ToolCall {
        let call = |call: Value| chunk(json!({"tool_calls": [call]}), Value::Null);
        events.push(call(json!({"index": 0, "id": "call_1", "type": "function",
            "function": {"name": "weather", "arguments": ""}})));
        for part in ["{\"city\":", "\"Oslo\"}"] {
            events.push(call(json!({"index": 0, "function": {"arguments": part}})));
        }
    } else {
        events.extend(pieces.iter().map(|text| chunk(json!({"content": text}), Value::Null)));
    }
    let stop = kind.reason("stop", "tool_calls", "length");
    events.push(chunk(json!({}), json!(stop)));
    if usage {
        events.push(json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
            "model": "m", "choices": [],
            "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}}));
    }
    events
        .into_iter()
        .map(|event: Value| format!("data: {event}\n\n"))
        .chain(["data: [DONE]\n\n".to_owned()])
        .collect()
}
