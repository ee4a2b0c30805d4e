//! Compares our decoder with the official SDKs of OpenAI, Anthropic and Mistral on the same bytes:
//! the corpus of responses, and the mock's responses in each of its modes. Needs Python, Node.js
//! and package registries.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use plimsoll_measure::TokenSource;
use plimsoll_mock::{Mock, MockConfig};
use plimsoll_protocol::{Decoder, DecoderOptions, Dialect};
use serde::Deserialize;
use serde_json::Value;

const MODELS: &str = "
models:
  plain: {}
  threes: {tokens_per_event: 3, output: 10}
  thinks: {reasoning_share: 0.5}
  calls: {tool_call_share: 1}
  loops: {tool_loop: {steps: 1, tools: [look, find], parallel: 2, arguments: 100}}
  silent: {usage: false}
  short: {output: 1}
";

/// A response as read by an SDK.
#[derive(Debug, Deserialize)]
struct Line {
    file: String,
    sdk: String,
    error: Option<String>,
    #[serde(default)]
    text: String,
    /// Name and arguments of each call.
    #[serde(default)]
    tools: Vec<String>,
    finish: Option<String>,
    /// Input and output tokens.
    usage: Option<(Option<f64>, Option<f64>)>,
}

/// The same as read by our decoder.
#[derive(Debug)]
struct Ours {
    text: String,
    tools: Vec<String>,
    finish: Option<String>,
    usage: (Option<f64>, Option<f64>),
    failed: bool,
}

fn dialect_of(file: &str) -> Dialect {
    match file {
        _ if file.starts_with("a_") || file.contains("-anthropic") => Dialect::AnthropicMessages,
        _ if file.starts_with("t_") || file.contains("-completions") => Dialect::OpenaiCompletions,
        _ if file.starts_with("resp") || file.contains("-responses") => Dialect::OpenaiResponses,
        _ => Dialect::OpenaiChat,
    }
}

fn decoded(folder: &Path, file: &str) -> Ours {
    let stream = Path::new(file).extension().is_some_and(|extension| extension == "sse");
    let options = DecoderOptions { keep_text: true, ..DecoderOptions::default() };
    let mut decoder = Decoder::new(dialect_of(file), stream, options);
    decoder.head(200, Some(if stream { b"text/event-stream" } else { b"application/json" }));
    decoder.feed(&fs::read(folder.join(file)).unwrap(), &mut |_| {});
    let outcome = decoder.finish();
    let calls = decoder.tool_calls().iter().map(|call| format!("{}{}", call.name, call.arguments));
    let usage = decoder.usage();
    let count = |tokens: plimsoll_measure::TokenCount| {
        (tokens.source == TokenSource::Reported).then_some(f64::from(tokens.count))
    };
    Ours {
        text: decoder.text().to_owned(),
        tools: calls.collect(),
        finish: decoder.finish_reason().map(str::to_owned),
        usage: (count(usage.prompt), count(usage.completion)),
        failed: outcome != plimsoll_measure::Outcome::Completed,
    }
}

/// Normalizes the JSON of a call's arguments.
fn normal(call: &str) -> String {
    let (name, arguments) = call.split_at(call.find('{').unwrap_or(call.len()));
    let parsed: Option<Value> = serde_json::from_str(arguments).ok();
    let arguments = parsed.map_or_else(|| arguments.to_owned(), |value| value.to_string());
    format!("{name}{arguments}")
}

/// Differences between an SDK and our decoder, ignoring values that either does not report.
fn differences(line: &Line, ours: &Ours) -> Vec<String> {
    let mut found = Vec::new();
    if line.text != ours.text {
        found.push(format!("text {:?} {:?}", line.text, ours.text));
    }
    let [theirs, own] = [&line.tools, &ours.tools]
        .map(|calls: &Vec<String>| calls.iter().map(|call| normal(call)).collect::<Vec<_>>());
    if theirs != own {
        found.push(format!("tools {theirs:?} {own:?}"));
    }
    if line.finish != ours.finish {
        found.push(format!("finish {:?} {:?}", line.finish, ours.finish));
    }
    let (input, output) = line.usage.unwrap_or_default();
    for (name, theirs, own) in [("input", input, ours.usage.0), ("output", output, ours.usage.1)] {
        if theirs.is_some() && theirs != own {
            found.push(format!("{name} {theirs:?} {own:?}"));
        }
    }
    found
}

/// Known differences from SDKs, and why our result is right. An SDK that ignores unreadable data
/// proves nothing.
const KNOWN: &[(&str, &[&str], &str)] = &[
    ("a_cut.sse", &["anthropic"], "the count in the first event is a placeholder"),
    ("audio.sse", ALL, "the transcript is the text; SDKs hand it over with the sound, or drop it"),
    ("choiceerror.json", ALL, "the SDKs overlook the error in the choice"),
    ("choiceerror.sse", ALL, "the SDKs overlook the error in the choice"),
    ("choiceobj.sse", &["openai"], "one choice in place of a list, which the SDK iterates in vain"),
    ("contentobj.sse", &["openai", "mistral", "openai-js"], "the SDKs pass an object on unread"),
    ("emptychoices.json", &["openai", "openai-js"], "without an answer there is no usage of one"),
    ("geminitools.sse", ALL, "two calls, by their ids, though both have the same place"),
    ("latin1.json", &["mistral", "openai-js", "mistral-js"], "bytes that are no UTF-8 are refused"),
    ("latin1.sse", &["openai-js", "mistral-js"], "bytes that are no UTF-8 are refused"),
    ("nanlog.sse", &["openai"], "`NaN` is no JSON, though Python reads it"),
    ("orerror.sse", &["mistral", "mistral-js"], "the SDK overlooks the error beside the choice"),
    ("refusal.json", &["mistral", "mistral-js"], "Mistral has no refusals"),
    ("refusal.sse", &["mistral", "mistral-js"], "Mistral has no refusals"),
    (
        "stop_nonl_nodone.sse",
        &["openai", "openai-js", "mistral-js"],
        "the SDKs drop a last event without its blank line",
    ),
    ("toolsnoindex.sse", ALL, "two calls, by their names, though neither has a place"),
    ("usagefloat.sse", &["openai", "mistral", "openai-js"], "a text is not believed as a count"),
    ("usagenegative.sse", ALL, "a count below zero is not believed"),
];
const ALL: &[&str] = &["openai", "mistral", "openai-js", "mistral-js"];

/// Runs a script that reads the responses in a folder, and returns its results.
fn read_by(sdk: &str, script: &str, folder: &Path, more: &[&str]) -> Vec<Line> {
    let log = folder.join(format!("{sdk}.log"));
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/sdk/run"))
        .env("PLIMSOLL_SDKS", concat!(env!("CARGO_TARGET_TMPDIR"), "/sdks"))
        .args([sdk, script])
        .arg(folder)
        .args(more)
        .arg(&log)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = fs::read_to_string(&log).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
#[ignore = "installs the official SDKs from the package registries"]
fn official_sdks_read_the_same_of_every_answer() {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/answers")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let config = MockConfig::from_yaml(MODELS).unwrap();
    let mock = Mock::spawn(&config, SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let models = "plain,threes,thinks,calls,loops,silent,short";
    let provider = format!("http://{}", mock.addr());
    // The first script adds the mock's responses to the folder.
    let mut lines = read_by("llm", "read_answers.py", folder.path(), &[&provider, models]);
    lines.extend(read_by("node", "read_answers.mjs", folder.path(), &[]));
    let (mut compared, mut wrong) = (0, Vec::new());
    for line in lines {
        if line.error.is_some() {
            // Mistral's SDK requires complete calls, and a usage in every response.
            let reads_all = !line.sdk.starts_with("mistral") && !line.file.contains("silent");
            assert!(!(line.file.starts_with("mock-") && reads_all), "{line:?}");
            continue;
        }
        compared += 1;
        let ours = decoded(folder.path(), &line.file);
        let found = differences(&line, &ours);
        let is_known = KNOWN
            .iter()
            .any(|(file, sdks, _)| line.file == *file && sdks.contains(&line.sdk.as_str()));
        if is_known == found.is_empty() {
            wrong.push(format!(
                "{} {} {found:?} (failed here: {})",
                line.file, line.sdk, ours.failed
            ));
        }
    }
    assert!(wrong.is_empty(), "{compared} compared:\n{}", wrong.join("\n"));
    assert!(compared > 250, "{compared}");
}
