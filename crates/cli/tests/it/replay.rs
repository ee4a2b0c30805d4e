//! Recorded traffic is sent as the file has it: members, order and times.
#![expect(clippy::disallowed_methods, reason = "a server of the test, by its own clock")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{FAST, Fixture};

/// How long each answer takes.
const ANSWER: Duration = Duration::from_millis(50);
/// The machine is shared: late starts are tolerated up to here, and early ones as far as the first
/// arrival, from which times count, may have been late itself.
const LATE: u128 = 1_500;
const EARLY: u128 = 120;

/// Three sessions: one request, a chat of three turns, an agent with two branches.
const FILE: &str = r#"{"plimsoll_traffic": 1, "source": {"format": "hand"}}
{"id": "p1", "session": "single", "dialect": "openai-chat", "model": "alpha-1", "messages": [{"role": "user", "content": "Name a harbour."}], "body": {"temperature": 0.2, "max_tokens": 30}, "out_tokens": 12}
{"id": "c1", "session": "chat", "session_at_ms": 200, "dialect": "openai-chat", "model": "beta-1", "messages": [{"role": "system", "content": "Count."}, {"role": "user", "content": "One."}], "body": {"seed": 3}, "reply": [{"role": "assistant", "content": "Two."}]}
{"id": "c2", "session": "chat", "continues": "c1", "wait_ms": 400, "messages": [{"role": "user", "content": "Three."}], "reply": [{"role": "assistant", "content": "Four."}]}
{"id": "c3", "session": "chat", "continues": "c2", "at_ms": 1200, "body": {"seed": null, "top_p": 1}, "messages": [{"role": "user", "content": [{"type": "text", "text": "Five."}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]}]}
{"id": "a1", "session": "agent", "session_at_ms": 300, "dialect": "openai-chat", "model": "alpha-1", "messages": [{"role": "user", "content": "Tides?"}], "body": {"tools": [{"type": "function", "function": {"name": "tide", "parameters": {"type": "object"}}}]}, "reply": [{"role": "assistant", "content": null, "tool_calls": [{"id": "k1", "type": "function", "function": {"name": "tide", "arguments": "{\"at\": \"east\"}"}}]}]}
{"id": "b1", "session": "agent", "agent": "scout", "after": [{"id": "a1", "wait_ms": 30}], "dialect": "openai-chat", "model": "alpha-2", "messages": [{"role": "user", "content": "West."}]}
{"id": "d1", "session": "agent", "agent": "scout", "after": [{"id": "a1", "wait_ms": 60}], "dialect": "openai-chat", "model": "alpha-2", "messages": [{"role": "user", "content": "East."}]}
{"id": "a2", "session": "agent", "continues": "a1", "after": [{"id": "b1", "wait_ms": 500}, {"id": "d1", "wait_ms": 100}], "messages": [{"role": "tool", "tool_call_id": "k1", "content": "2.1 m"}]}
"#;

/// The arrived requests, with the time since the first arrival.
type Log = Arc<Mutex<Vec<(Instant, Value)>>>;

/// A server that notes every body.
fn server() -> (String, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let log = Log::default();
    let kept = Arc::clone(&log);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let log = Arc::clone(&log);
            thread::spawn(move || serve(stream, &log));
        }
    });
    (url, kept)
}

fn serve(stream: TcpStream, log: &Log) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut length, mut line) = (0, String::new());
        while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        if length == 0 || reader.read_exact(&mut body).is_err() {
            return;
        }
        log.lock().unwrap().push((Instant::now(), serde_json::from_slice(&body).unwrap()));
        thread::sleep(ANSWER);
        let message = json!({"role": "assistant", "content": "live"});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        let usage = json!({"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4});
        let answer = json!({"object": "chat.completion", "choices": [choice], "usage": usage});
        let (answer, kind) = (answer.to_string(), "content-type: application/json");
        let head = format!("HTTP/1.1 200 OK\r\n{kind}\r\ncontent-length: {}\r\n\r\n", answer.len());
        reader.get_mut().write_all((head + &answer).as_bytes()).unwrap();
    }
}

/// Plays the file, and gives the arrivals by the text of their last message.
fn play(args: &[&str]) -> BTreeMap<String, (u128, Value)> {
    let fixture = Fixture::with(FAST);
    let (url, log) = server();
    fs::write(fixture.folder.path().join("hand.plimsoll.jsonl"), FILE).unwrap();
    let fixed = ["run", "hand.plimsoll.jsonl", "--target", &url, "--no-probe", "--allow-invalid"];
    let output = fixture.plimsoll(&[&fixed[..], args].concat()).expect(0);
    assert!(output.stdout.contains("8 requests due in"), "{}", output.stdout);
    let log = log.lock().unwrap();
    assert_eq!(log.len(), 8, "{log:?}");
    let first = log[0].0;
    let arrivals = log.iter().map(|(at, body)| {
        let content = &body["messages"].as_array().unwrap().last().unwrap()["content"];
        let text = content.as_str().or_else(|| content[0]["text"].as_str()).unwrap();
        (text.to_owned(), (at.duration_since(first).as_millis(), body.clone()))
    });
    arrivals.collect()
}

#[test]
fn every_member_arrives_and_every_request_waits_as_recorded() {
    let sent = play(&["--replies", "recorded"]);
    let rows: Vec<Value> = FILE.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let joined = |parts: &[&Value]| -> Value {
        parts.iter().flat_map(|part| part.as_array().unwrap().clone()).collect()
    };
    let [c1, c2, c3] = [2, 3, 4].map(|row| &rows[row]);
    let (a1, a2) = (&rows[5], &rows[8]);
    let agent = joined(&[&a1["messages"], &a1["reply"], &a2["messages"]]);
    let chat = joined(&[&c1["messages"], &c1["reply"], &c2["messages"], &c2["reply"]]);
    let tools = &a1["body"]["tools"];
    for (text, due, body) in [
        (
            "Name a harbour.",
            0,
            json!({"model": "alpha-1", "temperature": 0.2, "max_tokens": 30, "messages": rows[1]["messages"]}),
        ),
        ("One.", 200, json!({"model": "beta-1", "seed": 3, "messages": c1["messages"]})),
        // The first answer took 50 ms.
        (
            "Three.",
            650,
            json!({"model": "beta-1", "seed": 3, "messages": joined(&[&c1["messages"], &c1["reply"], &c2["messages"]])}),
        ),
        (
            "Five.",
            1_400,
            json!({"model": "beta-1", "top_p": 1, "messages": joined(&[&chat, &c3["messages"]])}),
        ),
        ("Tides?", 300, json!({"model": "alpha-1", "tools": tools, "messages": a1["messages"]})),
        ("West.", 380, json!({"model": "alpha-2", "messages": rows[6]["messages"]})),
        ("East.", 410, json!({"model": "alpha-2", "messages": rows[7]["messages"]})),
        // Behind both branches: 380 and the answer and 500.
        ("2.1 m", 930, json!({"model": "alpha-1", "tools": tools, "messages": agent})),
    ] {
        let (at, found) = &sent[text];
        assert_eq!(found, &body, "{text}");
        assert!((due..due + LATE).contains(&(at + EARLY)), "{text}: {at} ms, due at {due}");
    }
}

#[test]
fn live_replies_are_repeated_and_those_with_tool_calls_are_the_recorded_ones() {
    let sent = play(&["--speed", "4", "--model", "other"]);
    let roles = |text: &str| -> Vec<String> {
        let messages = sent[text].1["messages"].as_array().unwrap().iter();
        messages.map(|one| one["content"].to_string()).collect()
    };
    assert_eq!(roles("Three."), ["\"Count.\"", "\"One.\"", "\"live\"", "\"Three.\""]);
    assert_eq!(roles("2.1 m"), ["\"Tides?\"", "null", "\"2.1 m\""]);
    assert!(sent.values().all(|(_, body)| body["model"] == "other"));
    // 200 and 400 ms at four times the speed.
    assert!(sent["Three."].0 + EARLY >= 200, "{}", sent["Three."].0);
}

#[test]
fn users_play_each_session_once_and_a_marker_is_sent_only_if_asked_for() {
    let sent = play(&["-c", "2", "--speed", "100"]);
    assert_eq!(sent.len(), 8);
    let fixture = Fixture::with(FAST);
    let (url, log) = server();
    fs::write(fixture.folder.path().join("p.txt"), "Say this.\n").unwrap();
    let args = ["llm", &url, "-m", "m", "-c", "1", "-n", "1", "--warmup", "0", "--no-stream"];
    let more = ["--no-probe", "--allow-invalid", "--prompts", "p.txt", "--bust"];
    let args = [&args[..], &more].concat();
    fixture.plimsoll(&args[..args.len() - 1]).expect(0);
    fixture.plimsoll(&args).expect(0);
    let log = log.lock().unwrap();
    let texts: Vec<_> = log.iter().map(|(_, body)| &body["messages"][0]["content"]).collect();
    assert_eq!(texts[0], "Say this.");
    assert!(texts[1].as_str().unwrap().ends_with("--- Say this."), "{texts:?}");
}

/// No server listens: each session ends with its first request, and the run with the last session.
#[test]
fn what_waits_for_a_failed_request_is_not_sent_and_the_run_ends() {
    let fixture = Fixture::with(FAST);
    fs::write(fixture.folder.path().join("hand.plimsoll.jsonl"), FILE).unwrap();
    let args = ["run", "hand.plimsoll.jsonl", "--target", "http://127.0.0.1:9", "--no-probe"];
    for load in [&[][..], &["-c", "2"]] {
        let output = fixture.plimsoll(&[&args[..], &["--allow-invalid"], load].concat());
        assert!(output.stdout.contains("3 requests due in"), "{}{}", output.stdout, output.stderr);
    }
}

#[test]
fn a_file_that_cannot_be_sent_is_wrong_usage() {
    let fixture = Fixture::with(FAST);
    let nothing = "{\"conversations\": [{\"from\": \"gpt\", \"value\": \"a\"}]}\n";
    let broken =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"model\": \"m\"}\n{\n";
    for (text, why) in [(nothing, "has no request to send"), (broken, "line 2: is not valid JSON")]
    {
        fs::write(fixture.folder.path().join("f.jsonl"), text).unwrap();
        let output = fixture.plimsoll(&["run", "f.jsonl", "--target", &fixture.target()]).expect(2);
        assert!(output.stderr.contains(why), "{}", output.stderr);
    }
    let args = ["run", "f.jsonl", "--target", &fixture.target(), "--skip-broken", "-y"];
    let output = fixture.plimsoll(&[&args[..], &["--allow-invalid"]].concat()).expect(0);
    assert!(output.stderr.contains("broken         1 skipped: line 2"), "{}", output.stderr);
    assert_eq!(fixture.mock.stats().requests, 2, "with the probe");
    fs::create_dir(fixture.folder.path().join("folder.jsonl")).unwrap();
    fs::write(fixture.folder.path().join("noname"), broken).unwrap();
    for (file, flag, value, why) in [
        ("minimal", "--speed", "2", "minimal is a profile"),
        (
            "absent.jsonl",
            "--speed",
            "2",
            "absent.jsonl: cannot be read (no such file or directory)",
        ),
        ("folder.jsonl", "--speed", "2", "folder.jsonl is neither a profile nor"),
        // A format means that the file is no profile.
        ("noname", "--as", "messages", "noname: line 2: is not valid JSON"),
    ] {
        let args = ["run", file, "--target", &fixture.target(), flag, value];
        let output = fixture.plimsoll(&args).expect(2);
        assert!(output.stderr.contains(why), "{}", output.stderr);
    }
}
