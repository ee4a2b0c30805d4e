//! The Mooncake traces: JSON lines with `timestamp` (ms), `input_length`, `output_length`,
//! `hash_ids`.

use serde::Deserialize;

use super::record::{TraceRecord, check_tokens};
use crate::error::TraceFault;
use crate::synthetic_text::CACHE_BLOCK;

#[derive(Deserialize)]
struct Line {
    timestamp: u64,
    input_length: u64,
    output_length: u64,
    hash_ids: Vec<u64>,
}

pub(crate) fn parse_record(text: &str, ids: &mut Vec<u64>) -> Result<TraceRecord, TraceFault> {
    let line: Line = serde_json::from_str(text).map_err(|error| TraceFault::Json(cause(&error)))?;
    let count = |column, count: u64| check_tokens(column, &count.to_string(), Some(count));
    let input = count("input_length", line.input_length)?;
    let output = count("output_length", line.output_length)?;
    let found = line.hash_ids.len();
    if found != (input as usize).div_ceil(CACHE_BLOCK) {
        return Err(TraceFault::Blocks { found, input });
    }
    let start = ids.len();
    ids.extend(line.hash_ids);
    Ok(TraceRecord {
        at: line.timestamp.saturating_mul(1_000_000),
        input_tokens: input,
        output_tokens: output,
        hash_ids: start..ids.len(),
    })
}

/// The parser's message with the column only: it sees every line as line 1.
fn cause(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    format!("{message} at column {}", error.column())
}
