//! `plimsoll import`: its summary, its file and its exit codes.

use std::fs;

use crate::support::{FAST, Fixture};

const BATCH: &str = r#"{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Count."}],"temperature":0.2}}
{"custom_id":"b","method":"POST","url":"/v1/chat/completions","priority":1,"body":{"model":"m","messages":[{"role":"user","content":"Go on."}]}}
"#;

#[test]
fn the_summary_names_what_is_not_used_and_the_file_has_the_requests() {
    let fixture = Fixture::with(FAST);
    let at = |name: &str| fixture.folder.path().join(name);
    fs::write(at("batch.jsonl"), BATCH).unwrap();
    let args = ["import", "batch.jsonl", "-o", "batch.plimsoll.jsonl"];
    let screen = fixture.plimsoll(&args).expect(0).stdout;
    for row in [
        "format         openai-batch (OpenAI batch file): 100 % of the first rows have custom_id, body",
        "sessions       2",
        "requests       2 (at most 1 in a session)",
        "not used             1 priority",
    ] {
        assert!(screen.lines().any(|line| line == row), "{row}:\n{screen}");
    }
    let written = fs::read_to_string(at("batch.plimsoll.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> =
        written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3, "{written}");
    assert_eq!(lines[1]["body"]["temperature"], 0.2);
    assert_eq!(lines[1]["messages"][0]["content"], "Be brief.");
}

#[test]
fn input_at_fault_is_wrong_usage_and_leaves_no_file() {
    let fixture = Fixture::with(FAST);
    let at = |name: &str| fixture.folder.path().join(name);
    fs::write(at("broken.jsonl"), format!("{BATCH}{{\"custom_id\": 1,\n")).unwrap();
    fs::write(at("empty.jsonl"), "").unwrap();
    for (file, why) in [
        ("broken.jsonl", "line 3: is not valid JSON"),
        ("empty.jsonl", "has no request to send"),
        ("missing.jsonl", "cannot read missing.jsonl"),
    ] {
        let output = fixture.plimsoll(&["import", file, "-o", "out.jsonl"]).expect(2);
        assert!(output.stderr.contains(why), "{file}: {}", output.stderr);
        assert!(!at("out.jsonl").exists(), "{file}");
    }
    let args = ["import", "broken.jsonl", "--skip-broken", "-o", "out.jsonl"];
    let screen = fixture.plimsoll(&args).expect(0).stdout;
    assert!(screen.contains("broken         1 skipped: line 3: "), "{screen}");
    fixture.plimsoll(&["import", "broken.jsonl", "--as", "none"]).expect(2);
    fs::create_dir(at("folder")).unwrap();
    fixture.plimsoll(&["import", "broken.jsonl", "--skip-broken", "-o", "folder"]).expect(3);
}

#[test]
fn each_protocol_of_a_recording_is_answered_as_a_scenario() {
    let fixture = Fixture::with(FAST);
    let at = |name: &str| fixture.folder.path().join(name);
    let embed = r#"{"custom_id":"c","method":"POST","url":"/v1/embeddings","body":{"model":"e","input":"pier"}}"#;
    fs::write(at("mixed.jsonl"), format!("{BATCH}{embed}\n")).unwrap();
    let target = fixture.target();
    let args = ["run", "mixed.jsonl", "--target", &target, "--smoke"];
    let screen = fixture.plimsoll(&args).expect(0).stdout;
    for row in ["scenario-1 ", "scenario-1/openai-embeddings "] {
        assert!(screen.lines().any(|line| line.starts_with(row)), "{row}:\n{screen}");
    }
    let args = ["llm", &target, "--prompts", "mixed.jsonl", "--model", "m"];
    let args = [&args[..], &["--protocol", "anthropic-messages"]].concat();
    let refused = fixture.plimsoll(&args).expect(2).stderr;
    assert!(refused.contains("but none for anthropic-messages"), "{refused}");
}

#[test]
fn the_load_of_k6_is_played_and_has_no_counts_of_requests() {
    let fixture = Fixture::with(FAST);
    let options = r#"{"stages": [{"duration": "400ms", "target": 2}]}"#;
    fs::write(fixture.folder.path().join("k6.json"), options).unwrap();
    let args = ["run", "k6.json", "--target", &fixture.target(), "--allow-invalid"];
    let screen = fixture.plimsoll(&args).expect(0).stderr;
    assert!(screen.contains("stages         1..2:400ms; the requests are `GET /`"), "{screen}");
    assert!(!screen.contains("sessions") && !screen.contains("no times"), "{screen}");
}

#[test]
fn a_json_file_with_the_keys_of_a_profile_is_one() {
    let fixture = Fixture::with(FAST);
    let profile = serde_json::json!({
        "target": fixture.target(), "model": "m", "stages": "1:1s",
        "content": { "mode": "pool", "prompts": ["Hi."] },
    });
    fs::write(fixture.folder.path().join("chat.json"), profile.to_string()).unwrap();
    fixture.plimsoll(&["run", "chat.json", "--smoke"]).expect(0);
}
