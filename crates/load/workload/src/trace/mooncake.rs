//! The Mooncake traces: JSON lines with `timestamp` (ms), `input_length`, `output_length` and,
//! where prompts share text, `hash_ids`. Other members are ignored.

use serde::Deserialize;

use super::record::{TraceRecord, check_tokens};
use crate::error::TraceFault;

#[derive(Deserialize)]
struct Line {
    timestamp: f64,
    input_length: f64,
    output_length: f64,
    #[serde(default)]
    hash_ids: Option<Vec<u64>>,
}

pub(crate) fn parse_record(text: &str, ids: &mut Vec<u64>) -> Result<TraceRecord, TraceFault> {
    let line: Line = serde_json::from_str(text).map_err(|error| TraceFault::Json(cause(&error)))?;
    let at = nanos(line.timestamp)
        .ok_or_else(|| TraceFault::Json(format!("timestamp {} is no time", line.timestamp)))?;
    let (input, output) = (line.input_length, line.output_length);
    let input_tokens = check_tokens("input_length", &input.to_string(), rounded(input))?;
    let output_tokens = check_tokens("output_length", &output.to_string(), rounded(output))?;
    let start = ids.len();
    ids.extend(line.hash_ids.into_iter().flatten());
    Ok(TraceRecord { at, input_tokens, output_tokens, hash_ids: start..ids.len() })
}

/// Milliseconds in nanoseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
fn nanos(millis: f64) -> Option<u64> {
    let nanos = (millis * 1e6).round();
    (nanos.is_finite() && (0.0..1.8e19).contains(&nanos)).then_some(nanos as u64)
}

/// Some tools write averages: a half token is no reason to refuse a trace.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
fn rounded(count: f64) -> Option<u64> {
    let count = count.round();
    (0.0..1e15).contains(&count).then_some(count as u64)
}

/// The parser's message with the column only: it sees every line as line 1.
fn cause(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    format!("{message} at column {}", error.column())
}
