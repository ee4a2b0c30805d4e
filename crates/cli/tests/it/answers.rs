//! The mock plays the answers of real services, and a run reads each as the table beside them says.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use crate::support::Fixture;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../load/protocol/tests/answers");

/// Expected values of an answer's row, by the names of its columns.
type Expected<'t> = BTreeMap<&'t str, &'t str>;

fn table(text: &str) -> Vec<Expected<'_>> {
    let mut lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    lines.map(|fields| names.iter().copied().zip(fields).collect()).collect()
}

fn scenario(expected: &Expected<'_>) -> String {
    format!("{}-{}", expected["asked"], expected["file"])
}

fn profile(table: &[Expected<'_>]) -> String {
    let mut profile = "content: {mode: pool, prompts: [Say hello.]}\nmax_tokens: 1000\n\
        stages: '4:60s'\nmax_requests: 3500\nthink_time: 0s\nscenarios:\n"
        .to_owned();
    for expected in table {
        let file = expected["file"];
        let protocol = match file {
            _ if file.starts_with("a_") => "anthropic-messages",
            _ if file.starts_with("t_") => "openai-completions",
            _ if file.starts_with("resp") => "openai-responses",
            _ => "openai-chat",
        };
        writeln!(
            profile,
            "  - {{name: {}, model: {file}, protocol: {protocol}, stream: {}}}",
            scenario(expected),
            expected["asked"] == "stream"
        )
        .unwrap();
    }
    profile
}

/// A count of a row, as the table writes it.
fn count(row: &Value, key: &str) -> String {
    let source = row[format!("{key}_source")].as_str().unwrap_or("unknown");
    match source {
        "reported" => row[key].to_string(),
        "estimated" => format!("~{}", row[key]),
        _ => "?".to_owned(),
    }
}

fn differences(row: &Value, expected: &Expected<'_>) -> Vec<String> {
    let text = |key: &str| row[key].as_str().unwrap_or_default();
    let outcome = if text("outcome") == "failed" { text("error") } else { text("outcome") };
    let tokens: Vec<&str> = expected["usage"].split(' ').collect();
    let (input, output) = (count(row, "prompt_tokens"), count(row, "completion_tokens"));
    // A prompt without a token count is estimated from its length.
    let input_of_table = if tokens[0] == "?" { &input } else { tokens[0] };
    // A row has the words of the dialects, and one for all others.
    let finish = match expected["finish"] {
        "abort" | "error" => "other".to_owned(),
        word => word.to_ascii_lowercase(),
    };
    let mut found: Vec<String> = [
        ("outcome", expected["outcome"], outcome),
        ("finish", &finish, text("finish_reason")),
        ("input", input_of_table, &input),
        ("output", tokens[1], &output),
    ]
    .into_iter()
    .filter(|(_, expected, got)| expected != got)
    .map(|(what, expected, got)| format!("{what} {got:?} for {expected:?}"))
    .collect();
    if !text("error_detail").contains(expected["message"]) {
        found.push(format!("{:?} lacks {:?}", text("error_detail"), expected["message"]));
    }
    found
}

#[test]
fn a_run_reads_every_recorded_answer_that_the_mock_plays() {
    let text = fs::read_to_string(format!("{FOLDER}/expected.tsv")).unwrap();
    let table = table(&text);
    let fixture = Fixture::with(&format!("answers: {FOLDER}"));
    fs::write(fixture.folder.path().join("p.yaml"), profile(&table)).unwrap();
    fixture.run(&["p.yaml", "--no-probe"]).expect(0);
    let rows = fs::read_to_string(fixture.only_run().join("results.jsonl")).unwrap();
    let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    let mut wrong = Vec::new();
    for expected in &table {
        let name = scenario(expected);
        let found: Vec<_> = rows.iter().filter(|row| row["scenario"] == *name).collect();
        assert!(!found.is_empty(), "{name} was not sent");
        let differences = found.iter().flat_map(|row| differences(row, expected));
        wrong.extend(differences.map(|difference| format!("{name}: {difference}")));
    }
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_folder_without_answers_is_refused() {
    let fixture = Fixture::with("{}");
    fs::create_dir(fixture.folder.path().join("empty")).unwrap();
    for (folder, part) in [("empty", "NAME.sse"), ("absent", "absent")] {
        let output = fixture.plimsoll(&["mock", "--answers", folder, "--listen", "127.0.0.1:0"]);
        let output = output.expect(2);
        assert!(output.stderr.contains(part), "{}", output.stderr);
    }
}
