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

/// Reads a response that is not streamed.
pub(super) fn read_whole(state: &mut ResponseState, body: &str) -> DecodeResult {
    let embeddings: Embeddings<'_> = parse(body)?;
    if let Some(error) = embeddings.error.and_then(DecodeError::reported) {
        return Err(error);
    }
    if !matches!(embeddings.data, Some(FirstElement(Some(_)))) {
        let error = DecodeError::in_place_of_answer(body);
        return Err(error.unwrap_or_else(|| DecodeError::without_member("data", body)));
    }
    if let Some(usage) = embeddings.usage {
        state.add_usage(&usage);
    }
    Ok(())
}
