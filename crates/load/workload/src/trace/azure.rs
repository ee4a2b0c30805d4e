//! The Azure LLM inference trace of 2023: CSV with `TIMESTAMP,ContextTokens,GeneratedTokens`.

use super::record::{TraceRecord, check_tokens};
use super::timestamp;
use crate::error::TraceFault;

const COLUMNS: [&str; 3] = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"];

pub(crate) fn check_header(text: &str) -> Result<(), TraceFault> {
    if text.split(',').eq(COLUMNS) { Ok(()) } else { Err(TraceFault::Header(shortened(text))) }
}

pub(crate) fn parse_record(text: &str) -> Result<TraceRecord, TraceFault> {
    let columns: Vec<_> = text.split(',').collect();
    let &[time, input, output] = columns.as_slice() else {
        return Err(TraceFault::Columns(columns.len()));
    };
    Ok(TraceRecord {
        at: timestamp::parse(time).ok_or_else(|| TraceFault::Timestamp(shortened(time)))?,
        input_tokens: check_tokens(COLUMNS[1], &shortened(input), digits(input))?,
        output_tokens: check_tokens(COLUMNS[2], &shortened(output), digits(output))?,
        hash_ids: 0..0,
        text: None,
    })
}

/// Only digits: `u64::from_str` would accept a plus sign.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// The start of an invalid text, for an error message.
fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}
