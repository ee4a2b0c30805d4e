//! The Azure LLM inference trace of 2023: CSV with `TIMESTAMP,ContextTokens,GeneratedTokens`.

use super::recording::{Record, tokens};
use super::timestamp;
use crate::error::TraceFault;

const COLUMNS: [&str; 3] = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"];

pub(crate) fn header(text: &str) -> Result<(), TraceFault> {
    if text.split(',').eq(COLUMNS) { Ok(()) } else { Err(TraceFault::Header(shortened(text))) }
}

pub(crate) fn record(text: &str) -> Result<Record, TraceFault> {
    let columns: Vec<_> = text.split(',').collect();
    let &[time, input, output] = columns.as_slice() else {
        return Err(TraceFault::Columns(columns.len()));
    };
    let count = |column, text: &str| tokens(column, &shortened(text), digits(text));
    Ok(Record {
        at: timestamp::parse(time).ok_or_else(|| TraceFault::Timestamp(shortened(time)))?,
        input: count(COLUMNS[1], input)?,
        output: count(COLUMNS[2], output)?,
        ids: 0..0,
    })
}

/// Digits alone: `u64::from_str` would accept a plus sign.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// As much of a wrong text as an error message needs.
fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}
