//! `OpenAI`'s embeddings.

use super::json_reader::{FirstElement, Raw, from_object};
use super::response_state::{DecodeError, DecodeResult, ResponseState, parse};
use super::usage::UsageReport;

#[derive(Default)]
struct Embeddings<'a> {
    data: Option<FirstElement<Raw<'a>>>,
    usage: Option<UsageReport<'a>>,
    error: Option<Raw<'a>>,
}
from_object!(Embeddings<'a> { data, usage, error });

/// Reads a non-streamed response.
pub(super) fn read_whole(state: &mut ResponseState, body: &str) -> DecodeResult {
    let embeddings: Embeddings<'_> = parse(body)?;
    DecodeError::check_member(embeddings.error)?;
    if !matches!(embeddings.data, Some(FirstElement(Some(_)))) {
        return Err(DecodeError::missing("data", body));
    }
    if let Some(usage) = embeddings.usage {
        state.add_usage(&usage);
    }
    Ok(())
}
