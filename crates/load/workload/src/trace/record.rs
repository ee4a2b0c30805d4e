//! One request of a trace, as recorded and as played.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{MAX_TOKENS, TraceFault};

/// One row of a trace file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceRecord {
    /// Recorded time in nanoseconds, on the file's own axis.
    pub(crate) at: u64,
    pub(crate) input_tokens: u32,
    pub(crate) output_tokens: u32,
    /// The positions of its ids in the list of all ids.
    pub(crate) hash_ids: Range<usize>,
    /// The prompt, where the file has it.
    pub(crate) text: Option<Arc<str>>,
}

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRow<'a> {
    /// Tokens of the prompt; of a text about as many.
    pub input_tokens: u32,
    /// Tokens of the model's answer.
    pub output_tokens: u32,
    /// One id for every block of the prompt; equal ids stand for equal text. Empty if the trace
    /// has none.
    pub hash_ids: &'a [u64],
    /// Tokens of such a block, at most 512.
    pub block_tokens: u32,
    /// The prompt, where the trace has it.
    pub text: Option<&'a Arc<str>>,
}

/// Checks a number of tokens; `text` is what the file has in `column`.
pub(crate) fn check_tokens(
    column: &'static str,
    text: &str,
    count: Option<u64>,
) -> Result<u32, TraceFault> {
    let count = count.and_then(|count| u32::try_from(count).ok());
    count
        .filter(|count| *count <= MAX_TOKENS)
        .ok_or_else(|| TraceFault::Tokens { column, text: text.to_owned() })
}
