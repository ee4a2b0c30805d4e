//! The Mooncake traces: JSON lines with `timestamp` (ms), `input_length`, `output_length` and,
//! where prompts share text, `hash_ids`. Other members are ignored. `AIPerf`'s files have the
//! prompt itself, `text_input`, in place of its length; the Qwen-Bailian traces have seconds.

use std::sync::Arc;

use serde::Deserialize;

use super::{TraceRecord, check_tokens};
use crate::error::TraceFault;

#[derive(Deserialize)]
struct Line {
    timestamp: f64,
    #[serde(default)]
    input_length: Option<f64>,
    #[serde(default)]
    text_input: Option<String>,
    output_length: f64,
    #[serde(default)]
    hash_ids: Option<Vec<u64>>,
}

/// The unit of `timestamp`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    Milliseconds,
    Seconds,
}

pub(crate) fn parse_record(
    text: &str,
    unit: Unit,
    ids: &mut Vec<u64>,
) -> Result<TraceRecord, TraceFault> {
    let line: Line = serde_json::from_str(text).map_err(|error| TraceFault::Json(cause(&error)))?;
    let at = nanos(line.timestamp, unit)
        .ok_or_else(|| TraceFault::Json(format!("timestamp {} is no time", line.timestamp)))?;
    let (input, output) = (line.input_tokens()?, line.output_length);
    let input_tokens = check_tokens("input_length", &input.to_string(), rounded(input))?;
    let output_tokens = check_tokens("output_length", &output.to_string(), rounded(output))?;
    let start = ids.len();
    // A text says itself what it shares.
    ids.extend(line.hash_ids.into_iter().flatten().filter(|_| line.text_input.is_none()));
    let (hash_ids, text) = (start..ids.len(), line.text_input.map(Arc::from));
    Ok(TraceRecord { at, input_tokens, output_tokens, hash_ids, text })
}

impl Line {
    /// The length of the prompt; of a text about four bytes are a token.
    fn input_tokens(&self) -> Result<f64, TraceFault> {
        let of_text = self.text_input.as_ref().map(|text| (text.len() as f64 / 4.0).ceil());
        of_text
            .or(self.input_length)
            .ok_or_else(|| TraceFault::Json("neither `input_length` nor `text_input`".to_owned()))
    }
}

/// A time in nanoseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
fn nanos(time: f64, unit: Unit) -> Option<u64> {
    let size = match unit {
        Unit::Milliseconds => 1e6,
        Unit::Seconds => 1e9,
    };
    let nanos = (time * size).round();
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
