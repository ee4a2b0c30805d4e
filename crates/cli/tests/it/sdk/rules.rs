//! Dialogues with calls of tools, through a proxy that holds every request against its provider's
//! rules of messages.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use plimsoll_mock::{Mock, MockConfig};

use super::*;

/// Calls in every second answer, so that dialogues have calls, texts, and both in turn; and two
/// calls at once, of tools of their own.
const MODELS: &str = "
models:
  half: {tool_call_share: 0.5, output: {uniform: {min: 1, max: 30}}}
  pairs: {tool_loop: {steps: 2, tools: [look, find], parallel: 2, arguments: {a: [1, null], b: \"\\u00e9\\n\"}}}
";

const PROFILE: &str = "
stages: 32:9m
turns: 6
content: {mode: sized, approx_input_tokens: 20}
tool_result: 'the tool says \"so\"'
parameters: {tools: TOOLS}
max_tokens: 40
scenarios:
  - {name: half, model: half}
  - {name: pairs, model: pairs}
  - {name: system, model: half, system: {text: Be brief.}}
  - {name: thoughtless, model: pairs, content: {mode: pool, prompts: [a, \"\\u00fc\\\"\\\\\"]}}
";

/// Requests of each case: conversations have six turns.
const REQUESTS: u64 = 15_800;

const SCHEMA: &str = "{type: object, properties: {text: {type: string}}}";

/// The tools, as a dialect has them.
fn tools(protocol: &str) -> String {
    let tools = ["look", "find"].map(|name| match protocol {
        "openai-chat" => {
            format!("{{type: function, function: {{name: {name}, parameters: {SCHEMA}}}}}")
        }
        _ => format!("{{name: {name}, input_schema: {SCHEMA}}}"),
    });
    format!("[{}]", tools.join(", "))
}

/// A result without its call, in an otherwise correct dialogue: the proxy must find it.
fn send_a_violation(port: u16, protocol: &str) {
    let (path, result) = match protocol {
        "openai-chat" => {
            ("/v1/chat/completions", r#"{"role":"tool","tool_call_id":"gone","content":"x"}"#)
        }
        _ => (
            "/v1/messages",
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"gone","content":"x"}]}"#,
        ),
    };
    let body = format!(r#"{{"model":"half","max_tokens":5,"stream":false,"messages":[{result}]}}"#);
    let mut tcp = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let length = body.len();
    write!(tcp, "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    tcp.read_to_end(&mut Vec::new()).unwrap();
}

#[test]
#[ignore = "installs the official SDKs from the package registries"]
fn ten_thousand_conversations_keep_the_rules_of_their_providers() {
    let config = MockConfig::from_yaml(MODELS).unwrap();
    let mock = Mock::spawn(&config, ([127, 0, 0, 1], 0).into()).unwrap();
    let target = format!("http://{}", mock.addr());
    let mut finished = 0;
    for (protocol, word) in [("openai-chat", "openai"), ("anthropic-messages", "anthropic")] {
        for stream in ["true", "false"] {
            let fixture = fixture();
            let proxy = SdkServer::start(&fixture, ("llm", "message_rules.py"), &[&target]);
            send_a_violation(proxy.port, protocol);
            let profile = PROFILE.replace("TOOLS", &tools(protocol));
            let profile = format!(
                "{profile}protocol: {protocol}\nstream: {stream}\nmax_requests: {REQUESTS}\n"
            );
            let url = format!("http://127.0.0.1:{}", proxy.port);
            let summary = load_with(&fixture, &profile, &url);
            let counts = proxy.counts();
            let case = format!("{protocol}, stream {stream}");
            let violations = counts.keys().filter(|line| line.contains("violation"));
            let (planted, violations): (Vec<_>, Vec<_>) =
                violations.partition(|line| line.contains("gone"));
            assert_eq!(planted.len(), 1, "{case}: the proxy finds what is wrong");
            assert!(violations.is_empty(), "{case}: {:#?}", violations.iter().take(3));
            let (plain, with_tools) = (
                count(&counts, &format!("{word} ok")),
                count(&counts, &format!("{word} ok tools")),
            );
            assert!(plain + with_tools >= REQUESTS, "{case}: {counts:?}");
            assert!(with_tools > REQUESTS / 2, "{case}: dialogues have calls: {counts:?}");
            let total = &summary.results.total.counters;
            assert_eq!(
                total.completed,
                total.scheduled - total.never_sent,
                "{case}: {:?}",
                summary.results.total.errors
            );
            let conversations = summary.health.conversations.map_or(0, |all| all.finished);
            finished += conversations;
            println!(
                "{case}: {plain} requests without calls and {with_tools} with them keep the rules, in {conversations} conversations"
            );
        }
    }
    assert!(finished > 10_000, "{finished} conversations");
}
