//! A gateway that changes answers is named before any time.

use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

use crate::policy_server::read_request;
use crate::support::{ProcessOutput, command};

/// An event of the stream as a gateway passes it on; `None`: it drops it.
type Gateway = fn(usize, &str) -> Option<String>;

/// The deltas of the answer, each in an event of its own.
const DELTAS: [&str; 7] = [
    r#"{"reasoning_content":"Let me"}"#,
    r#"{"reasoning_content":" think."}"#,
    r#"{"content":"The"}"#,
    r#"{"content":" files"}"#,
    r#"{"content":" are here."}"#,
    r#"{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"list","arguments":""}}]}"#,
    r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":\"/\"}"}}]}"#,
];
const END: &str = r#"{"model":"small-2025-01-31","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21}}"#;

fn spawn(gateway: Gateway) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // The thread ends with the process.
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream, gateway));
        }
    });
    address
}

fn serve(stream: TcpStream, gateway: Gateway) {
    stream.set_nodelay(true).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    while read_request(&mut reader).is_some() {
        let event = |delta| {
            format!(r#"{{"model":"small-2025-01-31","choices":[{{"index":0,"delta":{delta}}}]}}"#)
        };
        let events = DELTAS.map(event).into_iter().chain([END.to_owned()]).enumerate();
        let passed = events.filter_map(|(index, event)| gateway(index, &event));
        let mut body = String::new();
        for event in passed.chain(["[DONE]".to_owned()]) {
            body.extend(["data: ", &event, "\n\n"]);
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ";
        if writer.write_all(format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes()).is_err() {
            return;
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a gateway")]
fn pass(_: usize, event: &str) -> Option<String> {
    Some(event.to_owned())
}

fn unless(is_dropped: bool, event: &str) -> Option<String> {
    (!is_dropped).then(|| event.to_owned())
}

/// Compares a gateway with its upstream: the first statement above the table, and `versus.json`.
fn compare(gateway: Gateway) -> (String, Value) {
    let folder = TempDir::new().unwrap();
    let direct = format!("http://{}", spawn(pass));
    let target = format!("g=http://{}", spawn(gateway));
    let load = ["--model", "small", "--key", "x", "--rate", "10", "--for", "4s", "--allow-invalid"];
    let out = folder.path().join("out");
    let more = ["--set", "versus.alone=0s", "-q", "--out", out.to_str().unwrap()];
    let args = [&["versus", "--direct", &direct, "--target", &target][..], &load, &more].concat();
    let output = ProcessOutput::from(command(folder.path(), &args).output().unwrap());
    output.expect_screen();
    // The title of a debug build may take a second line.
    let above = output.stdout.split(" [95 %").next().unwrap_or_default();
    let mut lines = above.lines().filter(|line| line.starts_with("PL"));
    let run = std::fs::read_dir(out).unwrap().next().unwrap().unwrap();
    let versus = std::fs::read(run.path().join("versus.json")).unwrap();
    (lines.next().unwrap_or_default().to_owned(), serde_json::from_slice(&versus).unwrap())
}

#[test]
fn a_gateway_that_drops_or_changes_a_part_is_named_first() {
    let cases: [(Gateway, &str); 7] = [
        (|_, event| unless(event.contains("reasoning_content"), event), "reasoning in 0%"),
        (|_, event| unless(event.contains("\"tool_calls\":["), event), "tool calls in 0%"),
        (
            |_, event| {
                Some(event.replace("\"finish_reason\":\"tool_calls\"", "\"finish_reason\":null"))
            },
            "finish reason `tool_calls` in 0%",
        ),
        (|index, event| unless(index == 3 || index == 4, event), "content bytes instead of"),
        (
            |_, event| Some(event.replace("small-2025-01-31", "tiny")),
            "the same `model` as direct in 0%",
        ),
        (|_, event| Some(event.replace(",\"usage\"", ",\"x\"")), "token counts in 0%"),
        // Changes only the name of the model.
        (|_, event| Some(event.replace("small-2025-01-31", "openai/small")), ""),
    ];
    let compared: Vec<_> = cases
        .map(|(gateway, named)| (thread::spawn(move || compare(gateway)), named))
        .into_iter()
        .map(|(run, named)| (run.join().unwrap(), named))
        .collect();
    for ((first, versus), named) in compared {
        let finding = &versus["findings"][0];
        if named.is_empty() {
            assert!(!first.contains("PL401") && finding["code"] != 401, "{first}: {versus}");
            continue;
        }
        assert!(
            first.starts_with("PL401  g returns other answers than direct: "),
            "{named}: {first}"
        );
        let what = finding["values"]["what"].as_str().unwrap();
        assert!(finding["code"] == 401 && what.contains(named), "{named}: {what}");
    }
}
