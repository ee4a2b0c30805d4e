//! Changing the texts of a whole answer, as the scrubbing of personal data does.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dialect::Endpoint;
use crate::error::DialectError;
use crate::splice::{self, Patch, range_in};
use crate::wire::{Str, read_answer};

/// The answer with its texts changed; None where no text changed. Every other byte stays. Looked at are
/// the messages of all choices, text blocks, and output texts of the Responses API; tool calls are not.
///
/// # Errors
/// The body is not an answer of that endpoint; status 502.
pub fn rewrite_answer(
    endpoint: Endpoint,
    body: &[u8],
    mut change: impl FnMut(&str) -> Cow<'_, str>,
) -> Result<Option<Vec<u8>>, DialectError> {
    let mut patches: Vec<Patch> = Vec::new();
    for raw in texts(endpoint, body)? {
        // A content that is not a string has no text of its own.
        let Ok(text) = serde_json::from_str::<Str<'_>>(raw.get()) else { continue };
        let changed = change(&text);
        if changed != *text {
            patches.push((range_in(body, raw.get()), changed.into_owned()));
        }
    }
    if patches.is_empty() {
        return Ok(None);
    }
    patches.sort_unstable_by_key(|(at, _)| at.start);
    let mut out = Vec::with_capacity(body.len());
    splice::write(body, &patches, &mut out)?;
    Ok(Some(out))
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
    #[serde(borrow, default)]
    content: Vec<Block<'a>>,
    #[serde(borrow, default)]
    output: Vec<Item<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, default)]
    content: Vec<Block<'a>>,
}

fn texts(endpoint: Endpoint, body: &[u8]) -> Result<Vec<&RawValue>, DialectError> {
    let answer: Answer<'_> = read_answer(body)?;
    Ok(match endpoint {
        Endpoint::Chat => {
            let messages = answer.choices.into_iter().filter_map(|choice| choice.message);
            messages.filter_map(|message| message.content).collect()
        }
        Endpoint::Messages => answer.content.into_iter().filter_map(|block| block.text).collect(),
        Endpoint::Responses => {
            let blocks = answer.output.into_iter().flat_map(|item| item.content);
            blocks.filter_map(|block| block.text).collect()
        }
        Endpoint::Embeddings => Vec::new(),
    })
}
