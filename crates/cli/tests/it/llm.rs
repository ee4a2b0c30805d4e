//! `plimsoll llm`: load on an LLM endpoint in one line.

use std::collections::BTreeMap;
use std::fs;

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
    for part in ["1 user", "3 users", "by model", "Goodput"] {
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
fn a_threshold_is_shown_with_what_was_measured_and_dashes_have_a_reason() {
    let fixture = Fixture::with("other_models: {ttft: 40ms}");
    let url = fixture.target();
    let args = ["llm", &url, "-m", "m", "-c", "1,30", "--threshold", "ttft: p(50)<1ms"];
    let output = fixture.plimsoll(&[&args[..], &LOAD[..]].concat()).expect(1);
    let lines: Vec<_> = output.stdout.lines().collect();
    let judged = lines.iter().find_map(|line| line.strip_prefix("FAIL  ttft p(50)<1ms: measured "));
    let measured: f64 = judged.and_then(|text| text.split("ms").next()?.parse().ok()).unwrap();
    // What the mock waits, at least.
    assert!((40.0..1_000.0).contains(&measured), "{}", output.stdout);
    // One user gets at most 12 answers of 40 ms in 500 ms.
    let row = lines.iter().find(|line| line.starts_with("1 user ")).unwrap();
    assert!(row.contains(" - "), "{}", output.stdout);
    assert!(output.stdout.contains("a median needs 20 answers: 1 user has "), "{}", output.stdout);
    assert!(!output.stdout.contains("30 users has"), "{}", output.stdout);
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
    assert!(
        output.stderr.contains("1 of 2 entries have no prompt for openai-chat (line 2)"),
        "{}",
        output.stderr
    );
    assert_eq!(fixture.mock.stats().requests, 0);
    fixture.plimsoll(&[&args[..], &["--skip-broken"]].concat()).expect(0);
    assert!(fixture.mock.stats().requests > 1);
}

#[test]
fn the_parts_of_a_prompt_that_are_not_sent_are_named_and_refused_if_strict() {
    let fixture = Fixture::with("{log: memory, log_text: true}");
    let url = fixture.target();
    let rows = r#"[{"role": "user", "content": "0 a"}, {"role": "assistant", "content": "A0"}]
[{"role": "system", "content": "S"}, {"role": "user", "content": [{"type": "text", "text": "1 b"}, {"type": "image_url"}]}]
{"prompt": "2 c", "output_length": 9}"#;
    fs::write(fixture.folder.path().join("m.jsonl"), rows).unwrap();
    let args = ["llm", &url, "-m", "m", "-c", "1", "-d", "1m", "--warmup", "0", "--in-order"];
    let more = ["--prompts", "m.jsonl", "--set", "cache_mode=allow", "--no-probe"];
    let args = [&args[..], &more].concat();
    let output = fixture.plimsoll(&args).expect(0);
    let named = "image_url (1), messages after the first user turn (1), output_length (1), \
                 system (1) of m.jsonl";
    let screen = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(screen.contains(named), "{}", output.stdout);
    assert!(output.stderr.contains(named), "{}", output.stderr);
    assert_eq!(sent(&fixture), [0, 1, 2]);
    let output = fixture.plimsoll(&[&args[..], &["--strict"]].concat()).expect(2);
    assert!(
        output.stderr.contains("output_length (1), system (1); remove them"),
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
    // A warm-up takes none of them, and two processes have a half each.
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
