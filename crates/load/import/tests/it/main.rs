//! Imports of files in every format, with counts from the files' own descriptions.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use plimsoll_import::{ImportError, Options, Summary, export, import, schema};
use serde_json::{Value, json};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name)
}

fn import_with(path: &Path, options: &Options) -> Result<(Summary, Vec<Value>), ImportError> {
    let mut out = Vec::new();
    let summary = import(path, options, &mut out)?;
    let lines = String::from_utf8(out).unwrap();
    let mut lines: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let schema = jsonschema::validator_for(&schema()).unwrap();
    for line in &lines {
        assert!(schema.is_valid(line), "{}: {line}", path.display());
    }
    assert_eq!(lines.remove(0)["plimsoll_traffic"], 1);
    Ok((summary, lines))
}

fn import_file(path: &Path) -> (Summary, Vec<Value>) {
    import_with(path, &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn import_text(text: &[u8], skip_broken: bool) -> Result<(Summary, Vec<Value>), ImportError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text).unwrap();
    import_with(file.path(), &Options { skip_broken, ..Options::default() })
}

/// File, format, sessions, requests, stated input and output tokens, some of what is not used.
type Row = (&'static str, &'static str, u64, u64, u64, u64, &'static [(&'static str, u64)]);

const ROWS: [Row; 41] = [
    ("canonical.jsonl", "plimsoll", 5, 9, 1224, 86, &[]),
    ("sharegpt.json", "sharegpt", 3, 4, 0, 0, &[("conversations (without a user's turn)", 1)]),
    ("sharegpt_variants.jsonl", "sharegpt", 5, 7, 0, 0, &[]),
    ("messages_openai.jsonl", "messages", 5, 5, 0, 0, &[]),
    ("messages_anthropic.jsonl", "messages", 3, 3, 0, 0, &[]),
    ("evalscope_multi_turn.jsonl", "dialogue", 5, 7, 0, 0, &[]),
    ("openai_batch_chat.jsonl", "openai-batch", 4, 4, 0, 0, &[]),
    ("openai_batch_embeddings.jsonl", "openai-batch", 3, 3, 0, 0, &[]),
    ("openai_batch_responses.jsonl", "openai-batch", 3, 3, 0, 0, &[]),
    ("anthropic_batch.json", "anthropic-batch", 3, 3, 0, 0, &[]),
    ("aiperf_single_turn.jsonl", "aiperf-single-turn", 4, 5, 0, 30, &[]),
    ("aiperf_multi_turn.jsonl", "aiperf-multi-turn", 3, 6, 0, 12, &[]),
    ("aiperf_inputs.json", "aiperf-inputs", 2, 3, 0, 0, &[]),
    ("vllm_custom.jsonl", "prompt", 3, 3, 0, 170, &[]),
    ("columns.csv", "prompt", 2, 2, 0, 0, &[("other", 2)]),
    ("plain.txt", "plain", 3, 3, 0, 0, &[]),
    ("mooncake.jsonl", "mooncake", 5, 5, 5912, 266, &[]),
    ("azure2023.csv", "azure", 4, 4, 1731, 160, &[]),
    ("burstgpt.csv", "burstgpt", 3, 4, 2800, 258, &[("Log Type", 4)]),
    ("bailian.jsonl", "bailian", 3, 5, 269, 50, &[("type", 5), ("turn", 5)]),
    (
        "litellm_spend_logs.json",
        "litellm",
        5,
        6,
        1037,
        80,
        &[
            ("api_key (secret)", 6),
            ("prompts (truncated by the log: only their lengths are kept)", 1),
        ],
    ),
    ("litellm_spend_logs.csv", "litellm", 3, 4, 82, 19, &[("api_key (secret)", 4)]),
    (
        "langfuse_trace.json",
        "langfuse",
        1,
        2,
        100,
        17,
        &[("rows whose type is `TOOL` (not requests)", 1), ("level", 2)],
    ),
    ("langfuse_blob.jsonl", "langfuse", 1, 2, 100, 17, &[("parent_observation_id", 2)]),
    ("otel_genai_spans.jsonl", "otel", 1, 4, 214, 44, &[("attributes.gen_ai.provider.name", 4)]),
    ("helicone.jsonl", "helicone", 2, 3, 113, 18, &[("provider", 3)]),
    (
        "browser.har",
        "har",
        1,
        4,
        0,
        0,
        &[
            ("header authorization (secret)", 1),
            ("header cookie (secret)", 1),
            ("header :method (written anew for each request)", 1),
        ],
    ),
    // A POST without its body cannot be sent, and TLS bytes are no request.
    (
        "nginx_combined.log",
        "combined",
        2,
        2,
        0,
        0,
        &[("requests (a POST without a recorded body)", 1), ("lines (not an HTTP request)", 1)],
    ),
    ("envoy.log", "envoy", 1, 1, 0, 0, &[("requests (a POST without a recorded body)", 1)]),
    ("nginx_json.log", "nginx-json", 2, 2, 0, 0, &[("http_x_request_id", 1)]),
    ("vegeta.jsonl", "vegeta", 2, 2, 0, 0, &[]),
    ("vllm_custom_image.jsonl", "prompt", 2, 2, 0, 0, &[]),
    ("aiperf_dag.jsonl", "aiperf-multi-turn", 1, 5, 0, 0, &[]),
    ("weka_trace.json", "weka", 1, 4, 724, 166, &[("models (beside requests)", 2)]),
    ("copilot2026.jsonl", "copilot", 1, 2, 10400, 300, &[("tool_batches (beside llm_calls)", 1)]),
    ("dynamo_agentic_mooncake.jsonl", "dynamo", 1, 3, 394, 42, &[]),
    ("dynamo_agentic_mooncake_v1.jsonl", "dynamo-v1", 1, 2, 260, 14, &[("prefix_reset", 1)]),
    ("mlcommons_agentic.jsonl", "mlcommons", 2, 4, 0, 0, &[]),
    // A turn's input has 10 + 200, 40, 8 + 90 + 210, 9 + 300 and 11 + 300 tokens.
    ("claude_code.jsonl", "claude-code", 1, 5, 1178, 94, &[("cwd", 13), ("version", 13)]),
    // Rows of other types are no messages, and do not make it a file of payloads.
    (
        "codex.jsonl",
        "codex",
        1,
        2,
        1060,
        49,
        &[("payload.effort", 1), ("rows whose type is `world_state` (not requests)", 1)],
    ),
    ("vegeta.http", "vegeta-http", 2, 2, 0, 0, &[("body_file", 1)]),
];

#[test]
fn every_format_is_recognised_and_counted() {
    for (file, format, sessions, requests, input, output, unused) in ROWS {
        let (summary, lines) = import_file(&sample(file));
        assert!(summary.format.starts_with(&format!("{format} (")), "{file}: {}", summary.format);
        assert_eq!((summary.sessions, summary.requests), (sessions, requests), "{file}");
        assert_eq!(lines.len() as u64, requests, "{file}");
        let tokens = (summary.in_tokens.stated, summary.out_tokens.stated);
        assert_eq!(tokens, (input, output), "{file}");
        for (name, count) in unused {
            assert_eq!(summary.unused.get(*name), Some(count), "{file}: {:?}", summary.unused);
        }
        if unused.is_empty() {
            let unused: Vec<_> = summary.unused.keys().filter(|name| !name.contains('(')).collect();
            assert!(unused.is_empty(), "{file}: {unused:?}");
        }
    }
}

/// The body as it would be sent.
fn body_of(line: &Value, messages: &str) -> Value {
    let mut body = line["body"].as_object().cloned().unwrap_or_default();
    for (name, member) in [("model", "model"), (messages, "messages")] {
        if let Some(value) = line.get(member) {
            body.insert(name.to_owned(), value.clone());
        }
    }
    Value::Object(body)
}

#[test]
fn bodies_arrive_member_by_member() {
    for (file, messages, dialect) in [
        ("openai_batch_chat.jsonl", "messages", "openai-chat"),
        ("openai_batch_embeddings.jsonl", "input", "openai-embeddings"),
        ("openai_batch_responses.jsonl", "input", "openai-responses"),
        ("messages_openai.jsonl", "messages", "openai-chat"),
    ] {
        let text = fs::read_to_string(sample(file)).unwrap();
        let (_, lines) = import_file(&sample(file));
        for (row, line) in text.lines().zip(&lines) {
            let row: Value = serde_json::from_str(row).unwrap();
            let body = row.get("body").unwrap_or(&row);
            assert_eq!(&body_of(line, messages), body, "{file}");
            assert_eq!(line["dialect"], dialect, "{file}: {line}");
        }
    }
    let (_, lines) = import_file(&sample("messages_anthropic.jsonl"));
    assert!(lines.iter().all(|line| line["dialect"] == "anthropic-messages"), "{lines:?}");
}

#[test]
fn dialogues_become_turns_with_their_replies() {
    let (_, lines) = import_file(&sample("sharegpt.json"));
    let first = json!([{ "role": "user", "content": "Name three kinds of kelp." }]);
    assert_eq!(lines[0]["messages"], first);
    assert_eq!(lines[0]["reply"][0]["content"], "Sugar kelp, bull kelp and oarweed.");
    assert_eq!(lines[1]["continues"], lines[0]["id"]);
    assert_eq!(lines[1]["messages"].as_array().unwrap().len(), 1);
    assert_eq!(lines[2]["messages"][0]["role"], "system");
    let (_, lines) = import_file(&sample("aiperf_multi_turn.jsonl"));
    assert_eq!(lines[0]["messages"].as_array().unwrap().len(), 2, "the system turn comes first");
    assert_eq!((&lines[1]["wait_ms"], &lines[1]["out_tokens"]), (&json!(1000.0), &json!(12)));
}

#[test]
fn times_are_those_of_the_file_whatever_their_form() {
    let (summary, lines) = import_file(&sample("azure2023.csv"));
    assert_eq!(summary.span_ms.map(f64::round), Some(2900.0));
    assert_eq!(lines[1]["session_at_ms"], 2665.432);
    // Two zones: 08:00:00.100+02:00 and 06:00:00.350Z.
    let (_, lines) = import_file(&sample("browser.har"));
    assert_eq!((&lines[0]["session_at_ms"], &lines[1]["at_ms"]), (&json!(0.0), &json!(250.0)));
    // The second starts 3 s after the first has ended: 09:00:01.0 to 09:00:04.0.
    let (_, lines) = import_file(&sample("litellm_spend_logs.json"));
    assert_eq!(lines[1]["at_ms"], 3900.0);
    assert_eq!(
        (&lines[1]["continues"], &lines[1]["wait_ms"]),
        (&json!("chatcmpl-1"), &json!(3000.0))
    );
}

/// The ids and waits of the requests before a line.
fn waits(line: &Value) -> Vec<(&str, Option<f64>)> {
    let after = line["after"].as_array().into_iter().flatten();
    after.map(|one| (one["id"].as_str().unwrap(), one["wait_ms"].as_f64())).collect()
}

#[test]
fn session_files_of_agents_become_their_requests() {
    let (summary, lines) = import_file(&sample("claude_code.jsonl"));
    let ids: Vec<_> = lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
    let [first, side, second, third, edited] = ids.as_slice() else { panic!("{ids:?}") };
    // The three rows of the first reply are one message, and so are the results of its tools.
    let blocks = |line: &Value, member: &str| {
        let blocks = line[member][0]["content"].as_array().unwrap().iter();
        blocks.map(|block| block["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(blocks(&lines[0], "reply"), ["thinking", "tool_use", "tool_use"]);
    assert_eq!(lines[0]["reply"][0]["content"][0]["signature"], "c2ln");
    assert_eq!(blocks(&lines[2], "messages"), ["tool_result", "tool_result"]);
    assert_eq!(
        (&lines[2]["continues"], lines[2]["messages"].as_array().unwrap().len()),
        (&json!(first), 1)
    );
    assert_eq!(lines[2]["cached_tokens"], 210);
    // The subagent begins 100 ms after the call, and its result comes 100 ms after its end.
    assert_eq!(
        (waits(&lines[1]), &lines[1]["continues"]),
        (vec![(*first, Some(100.0))], &Value::Null)
    );
    assert_eq!(waits(&lines[2]), [(*first, None), (*side, Some(100.0))]);
    // The user went back to the second reply and asked something else.
    assert_eq!((&lines[3]["continues"], &lines[4]["continues"]), (&json!(second), &json!(second)));
    assert_eq!(waits(&lines[4]), [(*second, None), (*third, Some(12000.0))]);
    assert_eq!(lines[4]["id"], json!(edited));
    let lacks = "requests (system prompt, reminders and tools are not recorded)";
    assert_eq!(summary.unused.get(lacks), Some(&5));

    let (_, lines) = import_file(&sample("codex.jsonl"));
    assert_eq!(lines[0]["body"]["instructions"], "You fix winches.");
    assert_eq!(
        (&lines[0]["model"], &lines[0]["dialect"]),
        (&json!("gpt-x"), &json!("openai-responses"))
    );
    assert_eq!(lines[0]["messages"].as_array().unwrap().len(), 2);
    assert_eq!(lines[0]["reply"][0]["encrypted_content"], "gAAA");
    assert_eq!(lines[1]["messages"][0]["output"], "winch.txt");
    // From the call, 1.4 s, to its result, 2.0 s.
    assert_eq!((&lines[1]["continues"], &lines[1]["wait_ms"]), (&lines[0]["id"], &json!(600.0)));
}

#[test]
fn rows_that_are_messages_become_turns() {
    let (_, lines) = import_file(&sample("mlcommons_agentic.jsonl"));
    assert_eq!(
        lines[0]["messages"][0],
        json!({ "role": "system", "content": "You are a mechanic." })
    );
    let roles: Vec<_> =
        lines[1]["messages"].as_array().unwrap().iter().map(|one| &one["role"]).collect();
    assert_eq!(json!(roles), json!(["tool", "tool"]));
    assert_eq!(lines[1]["wait_ms"], 800.0);
    assert_eq!(lines[1]["continues"], lines[0]["id"]);
}

#[test]
fn branches_start_and_join_where_the_file_says() {
    let (_, lines) = import_file(&sample("aiperf_dag.jsonl"));
    let at = |text: &str| {
        let found = lines.iter().find(|line| line["messages"].to_string().contains(text));
        found.unwrap_or_else(|| panic!("{text}: {lines:?}"))
    };
    let id = |text: &str| at(text)["id"].as_str().unwrap();
    let (root, deeper, second) = (id("Survey"), id("Deeper"), id("berth 2"));
    assert_eq!(waits(at("berth 1")), [(root, None)]);
    assert_eq!(waits(at("berth 2")), [(root, None)]);
    // `delay` is 300 ms, after the last turns of both branches.
    let joined = [(root, Some(300.0)), (deeper, Some(300.0)), (second, Some(300.0))];
    assert_eq!(waits(at("Sum up")), joined);
    assert!(lines.iter().all(|line| line["session"] == "root"), "{lines:?}");

    let (_, lines) = import_file(&sample("dynamo_agentic_mooncake.jsonl"));
    assert_eq!(waits(&lines[2]), [("r1", Some(520.0)), ("r2", Some(170.0))]);
    assert_eq!((&lines[0]["blocks"]["size"], &lines[1]["agent"]), (&json!(64), &json!("child")));
    let (_, lines) = import_file(&sample("dynamo_agentic_mooncake_v1.jsonl"));
    assert_eq!(waits(&lines[1]), [("a", Some(340.0))]);
    let (_, lines) = import_file(&sample("weka_trace.json"));
    assert_eq!(lines[1]["agent"], "agent_001");
    assert_eq!(lines[1]["at_ms"], 2600.0);
}

#[test]
fn a_branch_joins_at_its_turn_and_a_fork_inherits_only_tools() {
    let turn = |text: &str, extra: Value| {
        let mut turn = json!({ "messages": [{ "role": "user", "content": text }] });
        extra
            .as_object()
            .into_iter()
            .flatten()
            .for_each(|(name, value)| turn[name] = value.clone());
        turn
    };
    let tools = json!([{ "type": "function", "function": { "name": "tide" } }]);
    let first = json!({ "extra": { "temperature": 0.1 }, "max_tokens": 9, "tools": tools,
        "spawns": [{ "children": ["side"], "join_at": 2 }] });
    let lines = [
        json!({ "session_id": "root", "turns": [
            turn("One", first), turn("Two", json!({})), turn("Three", json!({})),
            turn("Four", json!({ "extra": { "seed": 1 }, "forks": ["fork"] })) ] }),
        json!({ "session_id": "side", "turns": [turn("Side", json!({}))] }),
        json!({ "session_id": "fork", "turns": [turn("Five", json!({ "extra": { "seed": 2 } })),
            turn("Six", json!({}))] }),
    ];
    let text = lines.map(|line| line.to_string()).join("\n");
    let (_, lines) = import_text(text.as_bytes(), false).unwrap();
    let at =
        |text: &str| lines.iter().find(|line| line["messages"].to_string().contains(text)).unwrap();
    let id = |text: &str| at(text)["id"].as_str().unwrap();
    assert_eq!(at("Two")["after"], Value::Null);
    assert_eq!(waits(at("Three")), [(id("Two"), None), (id("Side"), None)]);
    // AIPerf 0.13 takes `extra` and `max_tokens` from the turn alone, and the latest tools.
    assert_eq!(sent_body(&lines, "Five"), json!({ "seed": 2, "tools": tools }));
    assert_eq!(sent_body(&lines, "Six"), json!({ "tools": tools }));
}

#[test]
fn a_limit_of_the_response_is_sent_also_with_images_and_in_dialogues() {
    let row = |extra: Value| {
        let mut row = json!({ "text": "Name a harbour.", "output_length": 7 });
        extra.as_object().into_iter().flatten().for_each(|(name, value)| row[name] = value.clone());
        row.to_string()
    };
    let image = "data:image/png;base64,AAAA";
    let rows = [row(json!({ "image": image })), row(json!({ "session_id": "a" })), row(json!({}))];
    let (_, lines) = import_text(rows.join("\n").as_bytes(), false).unwrap();
    let limits: Vec<_> = lines.iter().map(|line| &line["body"]["max_tokens"]).collect();
    assert_eq!(limits, [&json!(7), &json!(7), &json!(7)]);
    assert!(lines.iter().all(|line| line["out_tokens"] == 7));
    let turns = json!({ "session_id": "b", "turns": [
        { "text": "One", "output_length": 5 }, { "text": "Two" }] });
    let (_, lines) = import_text(turns.to_string().as_bytes(), false).unwrap();
    assert_eq!(sent_body(&lines, "One"), json!({ "max_tokens": 5 }));
    assert_eq!(sent_body(&lines, "Two"), json!({}));
    let trace = r#"{"request_id":"a","play_id":"p","session_id":"s","model":"m","input_length":9}"#;
    let (summary, _) = import_text(trace.as_bytes(), false).unwrap();
    let named = "model (of a request without text; the run names one)";
    assert_eq!(summary.unused[named], 1, "{:?}", summary.unused);
}

#[test]
fn spans_are_also_read_as_events_and_in_the_form_of_other_tools() {
    let (summary, lines) = import_file(&sample("otel_genai_events.jsonl"));
    assert!(summary.format.starts_with("otel ("), "{}", summary.format);
    assert_eq!(lines[0]["messages"], json!([{ "role": "user", "content": "Name a quay." }]));
    assert_eq!((&lines[0]["model"], &lines[0]["in_tokens"]), (&json!("alpha-1"), &json!(11)));
    let (_, lines) = import_file(&sample("inference_perf_otel.json"));
    assert_eq!(lines[0]["messages"], json!([{ "role": "user", "content": "Check the mole." }]));
    assert_eq!(lines[0]["body"], json!({ "max_tokens": 100, "temperature": 0.3 }));
    assert_eq!(lines.len(), 3);
}

#[test]
fn members_of_a_wrong_type_are_named() {
    let row = r#"{"conversation_id":"c","turn":1,"role":"tool","tool_results":"done"}"#;
    let error = import_text(row.as_bytes(), false).unwrap_err().to_string();
    assert!(error.contains("line 1: `tool_results` is \"done\", not an object"), "{error}");
    let row = r#"{"request":{"url":"http://a/b","method":"GET","headers":["x"]},
        "startedDateTime":"2026-10-02T06:00:00Z"}"#;
    assert_eq!(import_text(row.replace('\n', "").as_bytes(), false).unwrap().1[0]["path"], "/b");
}

#[test]
fn a_list_of_rows_with_roles_is_not_a_dialogue() {
    let text = fs::read_to_string(sample("mlcommons_agentic.jsonl")).unwrap();
    let list = format!("[{}]", text.lines().collect::<Vec<_>>().join(","));
    let (summary, lines) = import_text(list.as_bytes(), false).unwrap();
    assert!(summary.format.starts_with("mlcommons ("), "{}", summary.format);
    assert_eq!(lines, import_file(&sample("mlcommons_agentic.jsonl")).1);
}

/// The members of the body of a request, with those that it inherits.
fn sent_body(lines: &[Value], text: &str) -> Value {
    let mut body = json!({});
    let found = lines.iter().find(|line| line["messages"].to_string().contains(text));
    let mut chain: Vec<_> = found.into_iter().collect();
    while let Some(id) = chain[chain.len() - 1]["continues"].as_str() {
        chain.extend(lines.iter().find(|line| line["id"] == id));
    }
    for line in chain.iter().rev() {
        for (name, value) in line["body"].as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
    }
    body.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    body
}

#[test]
fn requests_of_a_client_have_the_rates_gaps_and_lengths_of_its_files() {
    let (summary, lines) = import_file(&sample("servegen_trace.csv"));
    assert!(summary.format.starts_with("servegen ("), "{}", summary.format);
    let times: Vec<_> = lines.iter().map(|line| line["session_at_ms"].as_f64().unwrap()).collect();
    let first = times[0];
    // 1.5/s and 0.5/s over 600 s each; the window between has no requests.
    let (early, late): (Vec<f64>, Vec<f64>) =
        times.iter().map(|time| time - first).partition(|time| *time < 700e3);
    assert_eq!((early.len(), late.len()), (899, 299));
    assert!(late.iter().all(|time| (1_100e3..1_800e3).contains(time)));
    // The gaps have a coefficient of variation of 2 (gamma, shape 0.25) and of 1 (exponential).
    for (times, expected) in [(early, 2.0), (late, 1.0)] {
        let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let squares = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>();
        let variation = (squares / gaps.len() as f64).sqrt() / mean;
        assert!((variation / expected - 1.0).abs() < 0.2, "{variation} {expected}");
    }
    let long = lines.iter().filter(|line| line["in_tokens"] == 300).count();
    assert!((500..700).contains(&long), "{long} of 1,198: half");
    assert!(lines.iter().all(|line| line["out_tokens"] == 20));
    assert_eq!(summary.unused["cv (follows from the shape)"], 1198);
    let error = import_with(&sample("servegen_dataset.json"), &Options::default()).unwrap_err();
    assert!(error.to_string().contains("chunk-N-trace.csv"), "{error}");
}

#[test]
fn options_of_k6_become_stages_and_every_other_member_is_named() {
    let stages = |file: &str| {
        let mut out = Vec::new();
        let summary = import(&sample(file), &Options::default(), &mut out).unwrap();
        (summary.stages.unwrap(), summary.unused, String::from_utf8(out).unwrap())
    };
    // k6 starts a ramp of users at 1.
    let (load, unused, written) = stages("k6_inspect.json");
    assert_eq!(load, "1..20:30s,20..20:90s,20..0:10s");
    assert!(written.contains("stages: '1..20:30s,20..20:90s,20..0:10s'"), "{written}");
    let names =
        ["maxVUs", "thresholds", "summaryTrendStats", "stages (the scenarios have their own)"];
    assert!(names.iter().all(|name| unused[*name] == 1), "{unused:?}");
    let (load, unused, _) = stages("k6_scenarios.json");
    assert_eq!(load, "4..4:20s,@0.08333333333333333..10:20s,@10..10:10s");
    let iterations = "scenario iters (a number of iterations, or at the same time)";
    assert_eq!((unused[iterations], unused["preAllocatedVUs"]), (1, 1));
}

#[test]
fn prompts_that_repeat_an_earlier_prompt_and_its_reply_continue_it() {
    let log = |id: &str, start: u32, texts: &[(&str, &str)], reply: &str, extra: Value| {
        let messages: Vec<_> =
            texts.iter().map(|(role, text)| json!({ "role": role, "content": text })).collect();
        let message = json!({ "role": "assistant", "content": reply, "tool_calls": null });
        json!({
            "request_id": id, "call_type": "acompletion", "model_group": "m",
            "startTime": format!("2026-10-02T06:00:{start:02}Z"),
            "endTime": format!("2026-10-02T06:00:{:02}Z", start + 1),
            "proxy_server_request": { "messages": messages, "temperature": extra },
            "response": { "choices": [{ "message": message }] },
        })
    };
    let first = [("user", "One.")];
    let second = [("user", "One."), ("assistant", "Two."), ("user", "Three.")];
    let rewritten = [("user", "One."), ("assistant", "2."), ("user", "Three.")];
    let rows = [
        log("a", 0, &first, "Two.", 0.5.into()),
        log("b", 4, &second, "Four.", Value::Null),
        log("c", 9, &rewritten, "Four.", 0.5.into()),
    ];
    let rows = rows.map(|row| row.to_string()).join("\n");
    let (summary, lines) = import_text(rows.as_bytes(), false).unwrap();
    assert_eq!((summary.sessions, summary.requests), (2, 3));
    assert_eq!((&lines[1]["continues"], &lines[1]["wait_ms"]), (&json!("a"), &json!(3000.0)));
    assert_eq!(lines[1]["messages"], json!([{ "role": "user", "content": "Three." }]));
    assert_eq!(lines[1]["body"]["temperature"], Value::Null);
    assert!(lines[1]["body"].as_object().unwrap().contains_key("temperature"), "removed");
    assert_eq!(lines[2]["continues"], Value::Null);
    assert_eq!(lines[2]["messages"].as_array().unwrap().len(), 3);
}

#[test]
fn a_conversation_goes_on_in_another_trace() {
    let row = |trace: &str, start: &str, input: Value| {
        json!({
            "id": start, "traceId": trace, "type": "GENERATION", "model": "m", "input": input,
            "startTime": format!("2026-10-02T06:00:{start}Z"),
            "output": { "role": "assistant", "content": "Two." },
        })
    };
    let first = json!([{ "role": "user", "content": "One." }]);
    let second = json!([
        { "role": "user", "content": "One." }, { "role": "assistant", "content": "Two." },
        { "role": "user", "content": "Three." },
    ]);
    let rows = [row("t1", "00", first.clone()), row("t2", "05", second), row("t3", "09", first)];
    let (summary, lines) = import_text(json!(rows).to_string().as_bytes(), false).unwrap();
    let sessions: Vec<_> = lines.iter().map(|line| line["session"].as_str().unwrap()).collect();
    assert_eq!((sessions, summary.sessions), (vec!["t1", "t1", "t3"], 2));
    assert_eq!(lines[1]["continues"], "00");
}

#[test]
fn images_are_embedded_where_they_stand() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a.png"), b"PNG").unwrap();
    fs::write(at("b.jpg"), b"JPG").unwrap();
    let turns = json!([{ "from": "human", "value": "See <image> and <image>." }]);
    let row = json!({ "id": "x", "conversations": turns, "image": ["a.png", "b.jpg"] });
    fs::write(at("chat.json"), format!("[{row}]")).unwrap();
    let (_, lines) = import_file(&at("chat.json"));
    let parts = lines[0]["messages"][0]["content"].as_array().unwrap();
    let urls: Vec<_> = parts.iter().filter_map(|part| part["image_url"]["url"].as_str()).collect();
    assert_eq!(urls, ["data:image/png;base64,UE5H", "data:image/jpeg;base64,SlBH"]);
    assert_eq!((&parts[0]["text"], &parts[2]["text"]), (&json!("See "), &json!(" and ")));
    for (name, why) in [("c.png", "cannot be read"), ("/etc/passwd", "is not an image")] {
        let row = json!({ "prompt": "See.", "image_files": [name] });
        fs::write(at("rows.jsonl"), row.to_string()).unwrap();
        let error = import_with(&at("rows.jsonl"), &Options::default()).unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains(why), "{error}");
    }
}

#[test]
fn personal_data_is_replaced_on_request() {
    let text = "Mail ann.lee@quay.example or +49 40 1234567 from 10.0.0.7, order 12345.";
    let row = json!({ "messages": [{ "role": "user", "content": text }] }).to_string();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(row.as_bytes()).unwrap();
    let (_, lines) = import_file(file.path());
    assert_eq!(lines[0]["messages"][0]["content"], text);
    let options = Options { scrub: true, ..Options::default() };
    let (summary, lines) = import_with(file.path(), &options).unwrap();
    let scrubbed = "Mail [email] or [phone] from [ip], order 12345.";
    assert_eq!(lines[0]["messages"][0]["content"], scrubbed);
    assert_eq!(summary.unused.get("email (scrubbed)"), Some(&1));
}

#[test]
fn an_import_ends_when_its_output_cannot_be_written() {
    struct Full(u32);
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            self.0 += 1;
            Err(std::io::Error::other("no space"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut output = Full(0);
    let options = Options { skip_broken: true, ..Options::default() };
    let error = import(&sample("messages_openai.jsonl"), &options, &mut output).unwrap_err();
    assert!(matches!(error, ImportError::Write(_)), "{error}");
    assert_eq!(output.0, 1);
}

#[test]
fn spans_become_requests_of_the_chat_api() {
    let (_, lines) = import_file(&sample("otel_genai_spans.jsonl"));
    assert_eq!(lines[0]["body"]["tools"][0]["function"]["name"], "tide_table");
    assert_eq!(lines[0]["messages"][0], json!({ "role": "system", "content": "You plan." }));
    // The first call of the subagent begins 30 ms after the planner's has ended.
    assert_eq!(lines[1]["after"], json!([{ "id": lines[0]["id"], "wait_ms": 30.0 }]));
    assert_eq!((&lines[2]["continues"], &lines[2]["wait_ms"]), (&lines[1]["id"], &json!(500.0)));
    // The planner's second prompt lacks the system prompt, so it is another one.
    assert_eq!(lines[3]["continues"], Value::Null);
    assert_eq!(waits(&lines[3]), [(lines[2]["id"].as_str().unwrap(), Some(100.0))]);
    assert_eq!(lines[3]["messages"][3]["tool_call_id"], "c2");
}

#[test]
fn secrets_are_in_no_output() {
    let row = json!({
        "method": "POST", "url": "http://u:PASS1@h/a?api_key=PASS2&n=1",
        "header": { "Authorization": ["PASS3"], "X-Api-Key": ["PASS4"], "X-Team": ["dock"] },
        "body": "e30=",
    });
    let (summary, lines) = import_text(row.to_string().as_bytes(), false).unwrap();
    let line = lines[0].to_string();
    assert!(!line.contains("PASS") && !format!("{summary:?}").contains("PASS"), "{line}");
    assert_eq!(summary.unused.get("host h (the target is another)"), Some(&1));
    assert_eq!((&lines[0]["path"], &lines[0]["body_text"]), (&json!("/a?n=1"), &json!("{}")));
    assert_eq!(lines[0]["headers"], json!({ "x-team": ["dock"] }));
    let body = json!({ "messages": [{ "role": "user", "content": "a" }], "api_key": "PASS" });
    let (_, lines) = import_text(body.to_string().as_bytes(), false).unwrap();
    assert!(!lines[0].to_string().contains("PASS"));
}

#[test]
fn broken_rows_are_named_or_skipped() {
    let text = b"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n\
        {\"messages\": [\n\
        {\"messages\": [{\"role\": \"user\", \"content\": \"\\ud800\"}]}\n\
        {\"messages\": [{\"role\": \"user\", \"content\": \"b\"}]}\n";
    let error = import_text(text, false).unwrap_err();
    assert!(
        matches!(error, ImportError::Input(_)) && error.to_string().contains("line 2: "),
        "{error}"
    );
    let (summary, lines) = import_text(text, true).unwrap();
    assert_eq!((summary.skipped, lines.len()), (2, 2), "{summary:?}");
    let error =
        import_text(b"{\"input_length\": \"many\", \"timestamp\": 0}\n", false).unwrap_err();
    assert!(error.to_string().contains("`input_length` is \"many\", not a count"), "{error}");
    let error = import_text(b"", false).unwrap_err();
    assert!(
        matches!(error, ImportError::Input(_)) && error.to_string().contains("no request"),
        "{error}"
    );
}

#[test]
fn containers_change_nothing() {
    let plain = fs::read(sample("messages_openai.jsonl")).unwrap();
    let (_, expected) = import_text(&plain, false).unwrap();
    let text = String::from_utf8(plain.clone()).unwrap();
    let list = format!("[{}]", text.trim_end().replace('\n', ",\n"));
    let crlf = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    let two: Vec<_> = text.lines().map(|line| format!("[{line}]")).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    for (container, bytes) in [
        ("a list", list.into()),
        ("BOM and CRLF", crlf.into()),
        ("several lists", two.join("\n \n").into()),
        ("concatenated documents", text.replace('\n', " ").into()),
        ("gzip", gzip.finish().unwrap()),
        ("zstd", zstd::encode_all(&*plain, 1).unwrap()),
    ] {
        let (_, lines) = import_text(&bytes, false).unwrap();
        assert_eq!(lines, expected, "{container}");
    }
}

#[test]
fn other_files_are_refused_and_not_sent_as_prompts() {
    for text in ["10.0.0.1 GET /a \"GET /a HTTP/1.1\" 200\n", "1,20,300\n2,30,400\n"] {
        let error = import_text(text.as_bytes(), false).unwrap_err();
        assert!(error.to_string().contains("looks like a log"), "{text}: {error}");
    }
    let (_, lines) = import_text(b"[INST] a [/INST]\n{{question}} b\n", false).unwrap();
    let contents: Vec<_> = lines.iter().map(|line| &line["messages"][0]["content"]).collect();
    assert_eq!(contents, ["[INST] a [/INST]", "{{question}} b"]);
}

/// The names that `run` redacts are names of credentials for the importer, too.
#[test]
fn headers_with_names_of_credentials_are_dropped() {
    let names = ["X-Csrf-Token", "X-Goog-Iam-Token", "Ocp-Apim-Subscription-Key", "X-Signature"];
    for name in names {
        let row = json!({ "method": "GET", "url": "http://h/a", "header": { name: ["hush"] } });
        let (summary, lines) = import_text(format!("{row}\n").as_bytes(), false).unwrap();
        let dropped = format!("header {} (secret)", name.to_ascii_lowercase());
        assert_eq!(summary.unused.get(&dropped), Some(&1), "{:?}", summary.unused);
        assert!(!lines[0].to_string().contains("hush"), "{}", lines[0]);
    }
    let row = json!({ "method": "GET", "url": "http://h/a", "header": { "X-Keyboard": ["us"] } });
    let (_, lines) = import_text(format!("{row}\n").as_bytes(), false).unwrap();
    assert_eq!(lines[0]["headers"]["x-keyboard"], json!(["us"]));
}

#[test]
fn a_canonical_file_names_only_earlier_lines_and_known_members() {
    let header = r#"{"plimsoll_traffic": 1, "source": {"format": "hand"}}"#;
    for (line, part) in [
        (r#"{"id": "a", "mesages": []}"#, "line 2: unknown field `mesages`"),
        (r#"{"id": "a", "continues": "b"}"#, "names `b`, which is not the id of an earlier line"),
        (r#"{"messages": []}"#, "the id `` is empty or not unique"),
        (r#"{"plimsoll_traffic": 9, "source": {"format": "x"}}"#, "is of version 9"),
    ] {
        let text = format!("{header}\n{line}\n");
        let error = import_text(text.as_bytes(), false).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn the_schema_in_the_reference_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/traffic.schema.json");
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    expect_test::expect_file![path].assert_eq(&text);
    let unknown = json!({ "id": "a", "mesages": [] });
    let schema = jsonschema::validator_for(&schema()).unwrap();
    assert!(!schema.is_valid(&unknown));
}

fn export_sample(name: &str, format: &str) -> (Summary, Vec<Value>) {
    let mut out = Vec::new();
    let summary = export(&sample(name), format, &mut out).unwrap();
    let lines = String::from_utf8(out).unwrap();
    (summary, lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn an_export_gives_the_file_of_the_other_tool_back() {
    // A file of the format that has all its members: what was imported is written again.
    for (file, format) in
        [("dynamo_agentic_mooncake.jsonl", "dynamo-agentic"), ("aiperf_dag.jsonl", "aiperf-dag")]
    {
        let text = fs::read_to_string(sample(file)).unwrap();
        let mut rows: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let (_, mut lines) = export_sample(file, format);
        if format == "dynamo-agentic" {
            assert_eq!(lines[0]["schema"], rows[0]["schema"]);
            rows.remove(0);
            lines.remove(0);
        }
        for (row, line) in rows.iter_mut().zip(&mut lines) {
            // Conversations that a turn spawns belong to its session.
            for one in [&mut *row, &mut *line] {
                let same = one.to_string().replace("root/", "").replace(".0", "");
                *one = serde_json::from_str(&same).unwrap();
            }
            assert_eq!(line, row, "{file}");
        }
        assert_eq!(lines.len(), rows.len(), "{file}");
    }
}

#[test]
fn an_export_writes_whole_prompts_and_names_what_has_no_place() {
    let (summary, lines) = export_sample("canonical.jsonl", "aiperf-mooncake");
    // The canonical sample has nine requests, of which one is plain HTTP.
    assert_eq!(lines.len(), 8);
    assert_eq!(summary.unused["requests without messages or body or in_tokens (not written)"], 1);
    let third = lines.iter().filter(|line| line["session_id"] == "chat").nth(2).unwrap();
    let texts = third["payload"]["messages"].as_array().unwrap();
    assert_eq!(texts.len(), 5, "two questions, their replies, and the third question");
    assert_eq!(texts[1]["content"], "Two.");
    assert!(
        summary.unused.keys().any(|name| name == "reply (not written)"),
        "{:?}",
        summary.unused
    );
    let (summary, lines) = export_sample("canonical.jsonl", "dynamo-agentic");
    assert!(
        lines.len() > 1
            && summary.unused.keys().any(|name| name == "requests without in_tokens (not written)")
    );
}

#[test]
fn spans_of_langfuse_and_openinference_and_logs_of_litellm_and_envoy_are_read() {
    for (file, format, requests, tokens, unused) in [
        ("langfuse_otlp.jsonl", "otel", 4, 18, "max_tokens (no limit)"),
        (
            "openinference_otlp.jsonl",
            "otel",
            4,
            18,
            "attributes.llm.invocation_parameters (a copy of input.value)",
        ),
        ("litellm_callback.jsonl", "litellm-callback", 3, 13, "metadata"),
        ("envoy_json.log", "envoy-json", 4, 0, "requests (a POST without a recorded body)"),
    ] {
        let (summary, lines) = import_file(&sample(file));
        assert!(summary.format.starts_with(&format!("{format} (")), "{file}: {}", summary.format);
        assert_eq!((summary.requests, summary.in_tokens.stated), (requests, tokens), "{file}");
        assert!(summary.unused.contains_key(unused), "{file}: {:?}", summary.unused);
        let embedding = lines.iter().find(|line| line["dialect"] == "openai-embeddings");
        if format != "envoy-json" {
            let line = embedding.unwrap();
            let input = line["body"].get("input").or_else(|| line.get("messages")).unwrap();
            assert_eq!(*input, json!(["one", "two"]), "{file}");
        }
    }
}
