//! `OpenAI`'s embeddings.

use plimsoll_measure::ErrorClass;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::answer::{Answer, Fault, Reading, Sink};
use super::json::First;
use super::usage::ChatUsage;

#[derive(Deserialize)]
struct Embeddings {
    data: Option<First<IgnoredAny>>,
    usage: Option<ChatUsage>,
    error: Option<Value>,
}

pub(super) fn read_whole(answer: &mut Answer, body: &str, sink: Sink<'_>) -> Reading {
    let embeddings: Embeddings = serde_json::from_str(body)?;
    if let Some(error) = &embeddings.error {
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
