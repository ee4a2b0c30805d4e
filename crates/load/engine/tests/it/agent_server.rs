//! A server of models, tools and approvals, small enough to be read at once. It keeps a log.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Behaviour of the server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Rounds of tool calls of each task; else by [`AgentServer::rounds`].
    pub rounds: Option<usize>,
    /// Time before each answer.
    pub latency: Duration,
    /// Answers MCP as an event stream.
    pub events: bool,
    /// Answers to this path: a status line, or the body of a 200.
    pub fails: Option<(&'static str, &'static str)>,
}

/// A request as the server received it.
#[derive(Clone, Debug)]
pub struct Logged {
    pub path: String,
    /// The header `x-request-id`.
    pub id: String,
    pub body: String,
    /// The result of a tool.
    pub answer: String,
    /// Whether that says `isError`.
    pub is_error: bool,
}

impl Logged {
    pub fn is_chat(&self) -> bool {
        ["/chat/completions", "/responses", "/messages"].iter().any(|end| self.path.ends_with(end))
    }

    pub fn is_tool(&self) -> bool {
        self.path.ends_with("/mcp") || self.path.ends_with("/tools/call")
    }
}

pub struct AgentServer {
    address: SocketAddr,
    log: Arc<Mutex<Vec<Logged>>>,
}

impl AgentServer {
    pub fn start(options: Options) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let of_thread = Arc::clone(&log);
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let (log, options) = (Arc::clone(&of_thread), options.clone());
                thread::spawn(move || serve(connection, &log, &options));
            }
        });
        Self { address, log }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, in the order in which they came.
    pub fn log(&self) -> Vec<Logged> {
        self.log.lock().unwrap().clone()
    }

    /// Rounds of tool calls of a conversation: 0 to 3, by the first digit of its id.
    pub fn rounds(conversation: &str) -> usize {
        conversation.chars().next().and_then(|digit| digit.to_digit(16)).unwrap_or(0) as usize % 4
    }
}

/// Answers the requests of one connection.
fn serve(connection: TcpStream, log: &Mutex<Vec<Logged>>, options: &Options) {
    connection.set_nodelay(true).unwrap();
    let mut writer = connection.try_clone().unwrap();
    let mut reader = BufReader::new(connection);
    while let Some((mut request, headers)) = read(&mut reader) {
        let (content_type, body) = answer(&mut request, &headers, options);
        log.lock().unwrap().push(request.clone());
        thread::sleep(options.latency);
        let failure = options.fails.filter(|(path, _)| *path == request.path);
        let (status, body) = match failure {
            Some((_, line)) if line.starts_with("HTTP/") => (line, "{}".to_owned()),
            Some((_, body)) => ("HTTP/1.1 200 OK", body.to_owned()),
            None => ("HTTP/1.1 200 OK", body),
        };
        let length = body.len();
        let head =
            format!("{status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n");
        if writer.write_all(format!("{head}{body}").as_bytes()).is_err() {
            return;
        }
    }
}

/// A request and the text of its head; none at the end of the connection.
fn read(reader: &mut BufReader<TcpStream>) -> Option<(Logged, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let header = |name: &str| {
        let line = head.lines().find(|line| line.to_lowercase().starts_with(name))?;
        Some(line[name.len()..].trim().to_owned())
    };
    let length = header("content-length:").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let request = Logged {
        path: head.split(' ').nth(1)?.to_owned(),
        id: header("x-request-id:").unwrap_or_default(),
        body: String::from_utf8(body).unwrap(),
        answer: String::new(),
        is_error: false,
    };
    Some((request, head))
}

/// Content type and body of the answer.
fn answer(request: &mut Logged, head: &str, options: &Options) -> (&'static str, String) {
    const JSON: &str = "application/json";
    let path = request.path.clone();
    if request.is_chat() {
        return chat(request, options);
    }
    if path == "/v1/hitl" {
        return (JSON, r#"{"id":"h","state":"pending"}"#.to_owned());
    }
    if let Some(word) = path.strip_prefix("/v1/hitl/h/") {
        let state = if word == "approve" { "approved" } else { "rejected" };
        return (JSON, format!(r#"{{"id":"h","state":"{state}"}}"#));
    }
    // One in four turns, if it is the call of a tool; the first call of each task is among them.
    let turn: usize = request.id.rsplit('-').next().unwrap().parse().unwrap();
    request.is_error = turn % 4 == 1;
    request.answer = format!("result of {}", request.id);
    let result = format!(
        r#"{{"content":[{{"type":"text","text":"{}"}}],"isError":{}}}"#,
        request.answer, request.is_error
    );
    if path.ends_with("/tools/call") {
        return (JSON, format!(r#"{{"name":"x","server":"s","result":{result}}}"#));
    }
    mcp(request, head, &result, options)
}

/// A model that calls two tools in each round.
fn chat(request: &Logged, options: &Options) -> (&'static str, String) {
    let rounds = options.rounds.unwrap_or_else(|| AgentServer::rounds(&request.id));
    let calls = |names: [&str; 2], one: &dyn Fn(&str) -> String| names.map(one).join(",");
    let names = ["first", "second"];
    let body = &request.body;
    let stream = body.contains(r#""stream":true"#);
    match request.path.rsplit('/').next().unwrap() {
        "completions" => {
            let is_over = body.matches(r#""role":"assistant""#).count() >= rounds;
            let kind = if stream { "delta" } else { "message" };
            let content = if is_over {
                r#""content":"done""#.to_owned()
            } else {
                format!(
                    r#""content":null,"tool_calls":[{}]"#,
                    calls(names, &|name: &str| {
                        let index = usize::from(name == "second");
                        format!(
                            r#"{{"index":{index},"id":"{name}","type":"function","function":{{"name":"{name}","arguments":"{{\"n\":1}}"}}}}"#
                        )
                    })
                )
            };
            let reason = if is_over { "stop" } else { "tool_calls" };
            let choice = format!(
                r#"{{"choices":[{{"index":0,"{kind}":{{"role":"assistant",{content}}},"finish_reason":"{reason}"}}]}}"#
            );
            if stream {
                ("text/event-stream", format!("data: {choice}\n\ndata: [DONE]\n\n"))
            } else {
                ("application/json", choice)
            }
        }
        "responses" => {
            let is_over = body.matches(r#""type":"function_call","#).count() / 2 >= rounds;
            let text = r#"{"type":"message","content":[{"type":"output_text","text":"done"}]}"#;
            let output = if is_over {
                text.to_owned()
            } else {
                calls(names, &|name: &str| {
                    format!(
                        r#"{{"type":"function_call","call_id":"{name}","name":"{name}","arguments":"{{}}"}}"#
                    )
                })
            };
            ("application/json", format!(r#"{{"status":"completed","output":[{output}]}}"#))
        }
        _ => {
            let is_over = body.matches(r#""type":"tool_use""#).count() / 2 >= rounds;
            let text = r#"{"type":"text","text":"done"}"#;
            let content = if is_over {
                text.to_owned()
            } else {
                calls(names, &|name: &str| {
                    format!(r#"{{"type":"tool_use","id":"{name}","name":"{name}","input":{{}}}}"#)
                })
            };
            ("application/json", format!(r#"{{"type":"message","content":[{content}]}}"#))
        }
    }
}

/// `tools/call`, whose head must say what its body says.
fn mcp(request: &Logged, head: &str, result: &str, options: &Options) -> (&'static str, String) {
    let head = head.to_lowercase();
    let is_named = ["first", "second"].iter().any(|name| {
        request.body.contains(&format!(r#""name":"{name}","arguments""#))
            && head.contains(&format!("mcp-name: {name}\r\n"))
    });
    for part in ["mcp-protocol-version: 2026-07-28\r\n", "mcp-method: tools/call\r\n"] {
        assert!(head.contains(part), "{head}");
    }
    assert!(is_named, "{head}{}", request.body);
    let id = request.body.split(r#""id":"#).nth(1).unwrap().split(',').next().unwrap();
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    if !options.events {
        return ("application/json", answer);
    }
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
    ("text/event-stream", format!("data: {progress}\n\ndata: {answer}\n\n"))
}
