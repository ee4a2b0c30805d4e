//! `OpenAI`'s embeddings.

use plimsoll_measure::ErrorClass;

use super::json_reader::{FirstElement, Raw, from_object, from_str};
use super::response_state::{DecodeError, DecodeResult, ResponseState};
use super::usage::ChatUsage;

#[derive(Default)]
struct Embeddings<'a> {
    data: Option<FirstElement<Raw<'a>>>,
    usage: Option<ChatUsage<'a>>,
    error: Option<Raw<'a>>,
}
from_object!(Embeddings<'a> { data, usage, error });

/// Reads a response that is not streamed.
pub(super) fn read_whole(state: &mut ResponseState, body: &str) -> DecodeResult {
    let embeddings: Embeddings<'_> = from_str(body)?;
    if let Some(error) = embeddings.error {
        return Err(DecodeError::from_error_member(error));
    }
    if !matches!(embeddings.data, Some(FirstElement(Some(_)))) {
        return Err(DecodeError::new(ErrorClass::MalformedBody, "there are no vectors in `data`"));
    }
    if let Some(usage) = embeddings.usage {
        state.set_usage(|_, refused| usage.read(refused));
    }
    Ok(())
}
