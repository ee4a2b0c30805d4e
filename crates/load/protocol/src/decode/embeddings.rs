//! `OpenAI`'s embeddings.

use plimsoll_measure::ErrorClass;

use super::answer::{Answer, Fault, Reading, Sink};
use super::json::{First, Raw, from_object, from_str};
use super::usage::ChatUsage;

#[derive(Default)]
struct Embeddings<'a> {
    data: Option<First<Raw<'a>>>,
    usage: Option<ChatUsage>,
    error: Option<Raw<'a>>,
}
from_object!(Embeddings<'a> { data, usage, error });

pub(super) fn read_whole(answer: &mut Answer, body: &str, sink: Sink<'_>) -> Reading {
    let embeddings: Embeddings<'_> = from_str(body)?;
    if let Some(error) = embeddings.error {
        return Err(Fault::reported(error));
    }
    if !matches!(embeddings.data, Some(First(Some(_)))) {
        return Err(Fault::found(ErrorClass::MalformedBody, "there are no vectors in `data`"));
    }
    if let Some(usage) = embeddings.usage {
        answer.report(usage.into(), sink);
    }
    Ok(())
}
