//! `plimsoll llm`: load on an LLM endpoint in one line.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;

use plimsoll_metrics::RunEnd;

use crate::plain_server::PlainServer;
use crate::support::Fixture;

const LOAD: [&str; 8] = ["-d", "500ms", "--warmup", "0", "-q", "--allow-invalid", "--osl", "7"];

#[test]
fn the_model_is_the_first_that_the_endpoint_lists() {
    let fixture = Fixture::with("{log: memory, models: {one: {ttft: 1ms}, two: {ttft: 1ms}}}");
    let bare = fixture.target().replace("http://", "");
    fixture.plimsoll(&[&["llm", &bare, "-c", "1"], &LOAD[..]].concat()).expect(0);
    let log = fixture.mock.take_log();
    let models: Vec<_> = log.iter().filter_map(|record| record.model.as_deref()).collect();
    assert!(models.len() > 1 && models.iter().all(|model| *model == "one"), "{models:?}");
    let none = Fixture::with("{log: memory, other_models: {ttft: 1ms}}");
    let refused = none.plimsoll(&["llm", &none.target(), "-c", "1"]).expect(2);
    assert!(refused.stderr.contains("/v1/models lists none"), "{}", refused.stderr);
    assert!(none.runs().is_empty());
    // A target that refuses the list has failed, and no user.
    let server = PlainServer::spawn();
    for status in [403, 429, 503] {
        let url = server.url(&format!("/{status}"));
        let refused = none.plimsoll(&["llm", &url, "-c", "1"]).expect(1);
        let expected = format!("FAIL: GET {url}/v1/models returned {status}");
        assert!(refused.stderr.starts_with(&expected), "{}", refused.stderr);
    }
}

#[test]
fn answer_lengths_and_parameters_are_sent() {
    let fixture = Fixture::with("{log: memory}");
    let target = fixture.target();
    let own = ["--max-tokens", "3", "--temperature", "0.5", "--ignore-eos", "--system", "Be kind."];
    let more = ["--extra-body", r#"{"top_k": 5, "stop": ["x"]}"#];
    for command in [
        &["llm", &target, "-m", "m"][..],
        &["run", "minimal", "--target", &target, "-m", "m", "--key", "k", "-y"],
    ] {
        let once = ["-c", "1", "-d", "300ms", "--warmup", "0", "--allow-invalid"];
        let output = fixture.plimsoll(&[command, &own[..], &more[..], &once[..]].concat());
        assert!(matches!(output.code, Some(0 | 1 | 3)), "{}", output.stderr);
        let plan = fs::read_to_string(fixture.runs().pop().unwrap().join("plan.json")).unwrap();
        for part in ["\"temperature\"", "\"ignore_eos\"", "\"top_k\"", "Be kind."] {
            assert!(plan.contains(part), "{command:?}: {part}");
        }
        let tokens = fixture.mock.take_log().last().unwrap().planned_tokens;
        assert_eq!(tokens, 3, "{command:?}");
    }
}

#[test]
fn levels_of_two_models_are_sent_as_the_mock_received_them() {
    let fixture = Fixture::with("log: memory");
    let url = fixture.target();
    let args = ["llm", &url, "-m", "one,two", "-c", "1,3", "--goodput", "ttft:100"];
    let output = fixture.plimsoll(&[&args[..], &LOAD[..]].concat()).expect(0);
    output.expect_screen();
    let words: Vec<_> = output.stdout.split_whitespace().collect();
    for part in ["1 user", "3 users", "by scenario", "model one, two", "Goodput"] {
        assert!(words.join(" ").contains(part), "{part}: {}", output.stdout);
    }
    let summary = fixture.summary();
    let log = fixture.mock.take_log();
    let mut received: BTreeMap<String, u64> = BTreeMap::new();
    for record in &log {
        *received.entry(record.model.clone().unwrap_or_default()).or_default() += 1;
    }
    // Each model was probed once.
    for group in &summary.results.by_scenario {
        let name = group.scenario.clone().unwrap();
        assert_eq!(group.counters.scheduled + 1, received[&name], "{name}");
    }
    // Recomputed from the rows.
    let rows = fs::read_to_string(fixture.only_run().join("results.jsonl")).unwrap();
    let rows = rows.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let good = rows.filter(|row| {
        row["outcome"] == "completed" && row["ttft_ms"].as_f64().is_some_and(|ms| ms < 100.0)
    });
    let counted = summary.results.total.counters;
    assert_eq!((counted.good, counted.goodput_judged), (good.count() as u64, counted.scheduled));
}

#[test]
fn a_threshold_is_shown_with_what_was_measured_and_every_level_has_its_figures() {
    let fixture = Fixture::with("other_models: {ttft: 40ms}");
    let url = fixture.target();
    let args = ["llm", &url, "-m", "m", "-c", "1,30", "--threshold", "response_time: p(50)>10s"];
    let output = fixture.plimsoll(&[&args[..], &LOAD[..]].concat()).expect(1);
    let lines: Vec<_> = output.stdout.lines().collect();
    // A busy host can only make it longer.
    let head = "FAIL  response_time p(50)>10s: measured ";
    let judged = lines.iter().find_map(|line| line.strip_prefix(head));
    let measured: f64 = judged.and_then(|text| text.split("ms").next()?.parse().ok()).unwrap();
    // Lower limit: the delay of the mock.
    assert!((40.0..1_000.0).contains(&measured), "{}", output.stdout);
    // One user gets at most 12 answers of 40 ms in 500 ms: its medians have an interval.
    let rows: Vec<_> = lines.iter().filter(|line| line.starts_with("1 user")).collect();
    assert!(!rows.is_empty() && rows.iter().all(|row| !row.contains(" - ")), "{}", output.stdout);
    assert!(rows.iter().any(|row| row.contains('[') || row.contains('(')), "{}", output.stdout);
    let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, rest) = text.split_once("p50 of 1 user is based on few responses: ").unwrap();
    let n: f64 = rest.split(';').next().unwrap().parse().unwrap();
    // 20 / n times as long, in whole seconds.
    let needed = format!("fix: measure {}s per stage", (0.5 * 20.0 / n).ceil());
    assert!(rest.contains(&needed), "{needed}: {rest}");
}

#[test]
fn a_load_that_is_longer_than_asked_for_says_why() {
    let fixture = Fixture::with("models: {one: {ttft: 300ms}}");
    let url = fixture.target();
    let output = fixture.plimsoll(&[&["llm", &url, "-c", "1"], &LOAD[..]].concat()).expect(0);
    let why = "! the load is longer than planned, for 4 responses of each user";
    assert!(output.stdout.contains(why), "{}", output.stdout);
}

#[test]
fn the_printed_profile_is_the_one_that_is_run_and_has_no_key() {
    let fixture = Fixture::with("log: memory");
    let url = fixture.target();
    let args = ["llm", &url, "-m", "m", "--rate", "20,40", "--key", "hush", "--print-profile"];
    let output = fixture.plimsoll(&[&args[..], &LOAD[..]].concat()).expect(0);
    assert!(
        output.stdout.contains("stages: '@20:500ms,@40:500ms'")
            || output.stdout.contains("stages: \"@20:500ms,@40:500ms\""),
        "{}",
        output.stdout
    );
    assert!(!output.stdout.contains("hush"), "{}", output.stdout);
    assert_eq!(fixture.mock.stats().requests, 0);
    fs::write(fixture.folder.path().join("my.yaml"), &output.stdout).unwrap();
    let again = ["run", "my.yaml", "--key", "k", "-q", "--allow-invalid"];
    fixture.plimsoll(&again).expect(0);
    assert_eq!(fixture.summary().results.accounting().scheduled, 30);
}

#[test]
fn a_file_of_prompts_is_sent_and_a_broken_one_refused() {
    let fixture = Fixture::with("log: memory");
    let url = fixture.target();
    let file = fixture.folder.path().join("chats.jsonl");
    fs::write(&file, "{\"prompt\": \"costs $5\"}\n{\"prompt\": \n").unwrap();
    let args = ["llm", &url, "-m", "m", "-c", "1", "--prompts", "chats.jsonl"];
    let args = [&args[..], &LOAD[..]].concat();
    let output = fixture.plimsoll(&args).expect(2);
    assert!(output.stderr.contains("chats.jsonl: line 2: is not valid JSON"), "{}", output.stderr);
    assert_eq!(fixture.mock.stats().requests, 0);
    fixture.plimsoll(&[&args[..], &["--skip-broken"]].concat()).expect(0);
    assert!(fixture.mock.stats().requests > 1);
}

#[test]
fn the_parts_of_a_prompt_that_are_not_sent_are_named_and_refused_if_strict() {
    let fixture = Fixture::with("{log: memory, log_text: true}");
    let url = fixture.target();
    let rows = r#"{"prompt": "0 a", "priority": 1}
{"prompt": "1 b", "priority": 2, "origin": "x"}
{"prompt": "2 c", "output_tokens": 9}"#;
    fs::write(fixture.folder.path().join("m.jsonl"), rows).unwrap();
    let args = ["llm", &url, "-m", "m", "-c", "1", "-d", "1m", "--warmup", "0", "--in-order"];
    let more = ["--prompts", "m.jsonl", "--set", "cache_mode=allow", "--no-probe"];
    let args = [&args[..], &more].concat();
    let output = fixture.plimsoll(&args).expect(0);
    let named = "origin (1), priority (2) of m.jsonl";
    let screen = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(screen.contains(named), "{}", output.stdout);
    // The end of the file ended the load, and not the time.
    let advice = "extend the input, which ended the load, to 20 requests per stage";
    assert!(screen.contains(advice) && !screen.contains("(-d"), "{}", output.stdout);
    assert!(output.stdout.lines().any(|line| line.starts_with("1, whole input ")), "{screen}");
    for row in
        ["sessions       3", "not used             1 origin", "                     2 priority"]
    {
        assert!(output.stderr.lines().any(|line| line == row), "{row}:\n{}", output.stderr);
    }
    assert_eq!(sent(&fixture), [0, 1, 2]);
    let output = fixture.plimsoll(&[&args[..], &["--strict"]].concat()).expect(2);
    assert!(
        output.stderr.contains("not sent: origin (1), priority (2); remove them"),
        "{}",
        output.stderr
    );
    assert!(sent(&fixture).is_empty());
}

/// The prompts that the mock was sent, of this file: each begins with its number.
fn sent(fixture: &Fixture) -> Vec<u64> {
    let records = fixture.mock.take_log().into_iter();
    let mut numbers: Vec<u64> = records
        .map(|record| record.prompt_head.unwrap().split(' ').next().unwrap().parse().unwrap())
        .collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn prompts_in_order_are_sent_each_once_whoever_sends_them() {
    let fixture =
        Fixture::with("{log: memory, log_text: true, other_models: {ttft: 1ms, gap: 0s}}");
    let url = fixture.target();
    let prompts: Vec<_> = (0..300).map(|number| format!("{number} is a prompt")).collect();
    fs::write(fixture.folder.path().join("p.txt"), prompts.join("\n")).unwrap();
    let own = ["--in-order", "--prompts", "p.txt", "--set", "cache_mode=allow", "--no-probe"];
    let args =
        [&["llm", &url, "-m", "m", "--osl", "2", "-q", "--allow-invalid"][..], &own].concat();
    // A warm-up uses none of the requests, and two processes share them equally.
    for load in [
        &["-c", "7", "-d", "1m", "--warmup", "0"][..],
        &["-c", "3", "-d", "1m", "--warmup", "0", "--set", "workers=2"],
        &["--rate", "600", "-d", "1m", "--warmup", "0"],
        &["-c", "4", "-d", "1m", "--warmup", "0", "--processes", "2"],
    ] {
        fixture.plimsoll(&[&args[..], load].concat()).expect(0);
        assert_eq!(sent(&fixture), (0..300).collect::<Vec<_>>(), "{load:?}");
    }
    fixture
        .plimsoll(&[&args[..], &["-c", "4", "-d", "1m", "--warmup", "200ms"]].concat())
        .expect(0);
    let with_warmup = sent(&fixture);
    let missing = (0..300).find(|number| with_warmup.binary_search(number).is_err());
    assert_eq!(missing, None, "{with_warmup:?}");
    let several = ["--set", "turns=2", "-d", "1s"];
    let output = fixture.plimsoll(&[&args[..], &several].concat()).expect(2);
    assert!(output.stderr.contains("`order: file` is for a single scenario"), "{}", output.stderr);
}

#[test]
fn a_sweep_is_one_result_with_small_json() {
    let fixture = Fixture::with("other_models: {ttft: 40ms, gap: 2ms}");
    let url = fixture.target();
    let args = ["llm", &url, "-m", "m", "-c", "1,2,4", "--goodput", "ttft:500", "--isl", "60"];
    let output = fixture.plimsoll(&[&args[..], &LOAD[..]].concat()).expect(0);
    let run = fixture.only_run();
    let found = fs::read_to_string(run.join("levels.json")).unwrap();
    assert!(found.len() < 3 * 3_000, "{}", found.len());
    let json: serde_json::Value = serde_json::from_str(&found).unwrap();
    assert_eq!((&json["isl_asked"], &json["osl_asked"]), (&60.0.into(), &7.0.into()));
    let levels = json["levels"].as_array().unwrap();
    let names: Vec<_> = levels.iter().map(|level| level["level"].as_str().unwrap()).collect();
    assert_eq!(names, ["1 user", "2 users", "4 users"]);
    let rows = fs::read_to_string(run.join("results.jsonl")).unwrap();
    let rows: Vec<serde_json::Value> =
        rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (level, stage) in levels.iter().zip(["1:500ms", "2:500ms", "4:500ms"]) {
        let own: Vec<_> = rows.iter().filter(|row| row["stage"] == stage).collect();
        assert_eq!(level["requests"], own.len());
        assert_eq!(level["osl"], 7.0, "as the mock answers");
        let ttft = level["times"]["ttft_ms"]["p50"].as_f64().unwrap();
        let mut times: Vec<_> = own.iter().filter_map(|row| row["ttft_ms"].as_f64()).collect();
        times.sort_by(f64::total_cmp);
        let median = times[(times.len() - 1) / 2];
        assert!((ttft / median - 1.0).abs() < 0.005, "{ttft} {median}");
        assert!(
            level["goodput_per_s"]["value"].as_f64() > Some(0.0) && level["pareto"].is_boolean()
        );
    }
    // The stored result is shown as the command did.
    let shown = fixture.plimsoll(&["report"]).expect(0);
    assert_eq!(shown.stdout, output.stdout);
    let again =
        fixture.plimsoll(&["report", run.to_str().unwrap(), "--format", "levels"]).expect(0);
    assert_eq!(again.stdout, found);
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("id=\"levels\"") && !page.contains("id=\"rates\""));
    let printed = fixture.plimsoll(&[&args[..], &LOAD[..], &["--json"]].concat()).expect(0);
    let printed: serde_json::Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!(printed["levels"].as_array().unwrap().len(), 3);
}

/// A server that answers one request at a time, each after 25 ms: two users get no more than one.
#[test]
#[expect(clippy::excessive_nesting, reason = "a server of a few lines")]
fn a_sweep_of_doubling_users_ends_by_itself_in_one_folder() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let turn = std::sync::Arc::new(std::sync::Mutex::new(()));
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            let (mut out, turn) = (tcp.unwrap(), std::sync::Arc::clone(&turn));
            std::thread::spawn(move || {
                let mut reader = std::io::BufReader::new(out.try_clone().unwrap());
                while crate::plain_server::read(&mut reader).is_some() {
                    let _turn = turn.lock().unwrap();
                    std::thread::park_timeout(std::time::Duration::from_millis(25));
                    let body = r#"{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":7}}"#;
                    let head = format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                        body.len()
                    );
                    if out
                        .write_all(head.as_bytes())
                        .and_then(|()| out.write_all(body.as_bytes()))
                        .is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
    let fixture = Fixture::with("{}");
    let args = ["llm", &url, "-m", "m", "--sweep", "-d", "3s", "--warmup", "0", "--no-stream"];
    let more = ["--osl", "7", "-q", "--allow-invalid", "--no-probe"];
    let output = fixture.plimsoll(&[&args[..], &more].concat()).expect(0);
    let summary = fixture.summary();
    assert_eq!(summary.metadata.run.ended, RunEnd::Decided);
    assert!(output.stdout.contains("throughput stopped growing"), "{}", output.stdout);
    // The level that began before the decision is no warm-up.
    assert!(!output.stdout.contains("(warm-up"), "{}", output.stdout);
    let levels = fs::read_to_string(fixture.only_run().join("levels.json")).unwrap();
    let levels: serde_json::Value = serde_json::from_str(&levels).unwrap();
    let users: Vec<_> = levels["levels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|level| level["users"].as_f64().unwrap())
        .collect();
    // On a busy host noise may allow for some more.
    assert!(users.starts_with(&[1.0, 2.0]) && users.len() < 6, "{users:?}");
    // Every request of the last level was answered, though it ended early.
    assert_eq!(summary.results.total.counters.ok(), summary.results.total.counters.scheduled);
}

#[test]
fn the_json_of_http_is_small_and_has_the_figures_of_its_files() {
    let fixture = Fixture::with("{}");
    let url = format!("{}/health", fixture.target());
    let args = ["http", &url, "-n", "40", "-c", "2", "-q", "--allow-invalid", "--json"];
    let output = fixture.plimsoll(&args).expect(0);
    assert!(output.stdout.len() < 3_000, "{}", output.stdout);
    let json: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let level = &json["levels"][0];
    assert_eq!(
        (&level["requests"], &level["times"]["service_time_ms"]["n"]),
        (&40.into(), &40.into())
    );
    let two = fixture.plimsoll(&[&args[..], &[&url]].concat()).expect(0);
    let two: serde_json::Value = serde_json::from_str(&two.stdout).unwrap();
    assert_eq!(two.as_array().unwrap().len(), 2);
}
