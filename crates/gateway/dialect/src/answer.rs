//! Whether a complete response is a good answer, and how much text it has.

use serde::Deserialize;
use serde_json::Value;

use crate::dialect::Endpoint;
use crate::usage::Usage;

/// The members of all endpoints that belong to an answer.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    error: Value,
    choices: Vec<Choice>,
    #[serde(rename = "type")]
    kind: Value,
    content: Value,
    stop_reason: Value,
    incomplete_details: Value,
    status: Value,
    output: Value,
    data: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Choice {
    finish_reason: Value,
    message: Value,
    error: Value,
}

/// Members of a message that are content.
const CONTENTS: [&str; 7] = [
    "content",
    "tool_calls",
    "function_call",
    "refusal",
    "reasoning_content",
    "reasoning",
    "audio",
];

/// Whether a body is a complete and good answer of the endpoint: of its form, with content and a
/// finish reason, and without an error.
pub fn is_answer(endpoint: Endpoint, body: &[u8]) -> bool {
    let Ok(answer) = serde_json::from_slice::<Answer>(body) else { return false };
    answer.error.is_null()
        && match endpoint {
            Endpoint::Chat => {
                !answer.choices.is_empty() && answer.choices.iter().all(Choice::is_whole)
            }
            Endpoint::Messages => {
                answer.kind == "message" && has(&answer.content) && is_good(&answer.stop_reason)
            }
            Endpoint::Responses => {
                (answer.status == "completed" || answer.status == "incomplete")
                    && has(&answer.output)
                    && (answer.incomplete_details.is_null()
                        || is_good(&answer.incomplete_details["reason"]))
            }
            Endpoint::Embeddings => has(&answer.data),
        }
}

impl Choice {
    fn is_whole(&self) -> bool {
        is_good(&self.finish_reason)
            && self.error.is_null()
            && CONTENTS.iter().any(|name| has(&self.message[*name]))
    }
}

/// Reasons of all dialects for an answer that the model would give again.
const GOOD_REASONS: [&str; 9] = [
    "stop",
    "length",
    "tool_calls",
    "function_call",
    "end_turn",
    "max_tokens",
    "max_output_tokens",
    "stop_sequence",
    "tool_use",
];

/// Whether an answer with this reason is complete. Servers use many reasons for incomplete answers,
/// so unknown reasons count as incomplete.
pub(crate) fn is_good_reason(reason: &[u8]) -> bool {
    GOOD_REASONS.iter().any(|good| good.as_bytes() == reason)
}

fn is_good(reason: &Value) -> bool {
    reason.as_str().is_some_and(|reason| is_good_reason(reason.as_bytes()))
}

/// Whether a value is there and not empty.
fn has(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

/// An estimate of the completion tokens of a whole response: a quarter of the bytes of its texts.
/// Returns 0 without parsing if the reported usage fits the size.
pub fn estimated_tokens(usage: Option<Usage>, body: &[u8]) -> u64 {
    let reported = usage.map_or(0, |usage| usage.completion);
    let plausible = reported < 1 << 30 && reported.saturating_mul(64) >= body.len() as u64;
    if plausible { 0 } else { text_bytes(body) / 4 }
}

/// The bytes of all texts of an answer; all bytes of a body that is not JSON.
fn text_bytes(body: &[u8]) -> u64 {
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return body.len() as u64 };
    let parts = ["choices", "content", "output"].map(|name| count(&value[name]));
    parts.iter().sum()
}

fn count(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_and_good_answers_are_answers() {
        let chat = |choices: &str| format!(r#"{{"id":"x","choices":{choices}}}"#);
        let message =
            r#"{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}"#;
        let rows = [
            (Endpoint::Chat, true, chat(r#"[{"finish_reason":"stop","message":{"content":"hi"}}]"#)),
            (Endpoint::Chat, true, chat(r#"[{"finish_reason":"tool_calls","message":{"content":null,"tool_calls":[{}]}}]"#)),
            (Endpoint::Chat, false, chat(r#"[{"finish_reason":"stop","message":{"content":""}}]"#)),
            (Endpoint::Chat, false, chat(r#"[{"finish_reason":null,"message":{"content":"hi"}}]"#)),
            (Endpoint::Chat, false, chat(r#"[{"finish_reason":"error","message":{"content":"hi"}}]"#)),
            (Endpoint::Chat, false, chat(r#"[{"finish_reason":"content_filter","message":{"content":"hi"}}]"#)),
            (Endpoint::Chat, false, chat(r#"[{"finish_reason":"stop","error":{"code":502},"message":{"content":"hi"}}]"#)),
            (Endpoint::Chat, true, chat(r#"[{"finish_reason":"length","message":{"content":"hi"}}]"#)),
            (Endpoint::Chat, false, chat(r#"[{"finish_reason":"stop","message":{"content":"a"}},{"message":{"content":"b"}}]"#)),
            (Endpoint::Chat, false, chat(r#"[{"finish_reason":"insufficient_system_resource","message":{"content":"hi"}}]"#)),
            (Endpoint::Messages, false, message.replace("end_turn", "refusal")),
            (Endpoint::Messages, false, message.replace("end_turn", "pause_turn")),
            (Endpoint::Messages, true, message.replace("end_turn", "max_tokens")),
            (Endpoint::Responses, true, r#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{}]}"#.to_owned()),
            (Endpoint::Responses, false, r#"{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[{}]}"#.to_owned()),
            (Endpoint::Chat, false, chat("[]")),
            (Endpoint::Chat, false, r#"{"error":{"message":"ill"},"choices":[{"finish_reason":"stop","message":{"content":"hi"}}]}"#.to_owned()),
            (Endpoint::Chat, false, "{}".to_owned()),
            (Endpoint::Chat, false, String::new()),
            (Endpoint::Chat, false, "<html>".to_owned()),
            (Endpoint::Chat, false, message.to_owned()),
            (Endpoint::Messages, true, message.to_owned()),
            (Endpoint::Messages, false, message.replace("end_turn", "")),
            (Endpoint::Responses, true, r#"{"status":"completed","error":null,"output":[{}]}"#.to_owned()),
            (Endpoint::Responses, false, r#"{"status":"queued","output":[{}]}"#.to_owned()),
            (Endpoint::Responses, false, r#"{"status":"failed","output":[{}],"error":{"code":"x"}}"#.to_owned()),
            (Endpoint::Embeddings, true, r#"{"data":[{"embedding":[1]}]}"#.to_owned()),
            (Endpoint::Embeddings, false, r#"{"data":[]}"#.to_owned()),
        ];
        for (endpoint, expected, body) in rows {
            assert_eq!(is_answer(endpoint, body.as_bytes()), expected, "{endpoint:?}: {body}");
        }
    }

    #[test]
    fn texts_are_counted_wherever_they_are() {
        let body =
            r#"{"id":"ignored","choices":[{"message":{"content":"four","parts":[{"t":"2b"}]}}]}"#;
        assert_eq!(text_bytes(body.as_bytes()), 6);
        assert_eq!(text_bytes(b"not json"), 8);
        let usage = |completion| Some(Usage { completion, ..Usage::default() });
        let long = format!(r#"{{"choices":["{}"]}}"#, "x".repeat(4_000));
        for (usage, estimate) in [
            (None, 1_000),
            (usage(0), 1_000),
            (usage(1), 1_000),
            (usage(900), 0),
            (usage(u64::MAX), 1_000),
        ] {
            assert_eq!(estimated_tokens(usage, long.as_bytes()), estimate, "{usage:?}");
        }
    }
}
