//! Changing the texts of a whole answer, as the scrubbing of personal data does.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dialect::Endpoint;
use crate::error::DialectError;
use crate::scanner::{Scanner, once};
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
    let plain = if endpoint == Endpoint::Chat { plainly(body) } else { None };
    for raw in plain.map_or_else(|| texts(endpoint, body), Ok)? {
        // A content that is not a string has no text of its own.
        let Ok(text) = serde_json::from_str::<Str<'_>>(raw) else { continue };
        let changed = change(&text);
        if changed != *text {
            patches.push((range_in(body, raw), changed.into_owned()));
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

fn texts(endpoint: Endpoint, body: &[u8]) -> Result<Vec<&str>, DialectError> {
    let answer: Answer<'_> = read_answer(body)?;
    let raw: Vec<&RawValue> = match endpoint {
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
    };
    Ok(raw.into_iter().map(RawValue::get).collect())
}

/// The contents of a chat's answer of the usual shape, as they are written; none for any other.
fn plainly(body: &[u8]) -> Option<Vec<&str>> {
    let mut scanner = Scanner::new(str::from_utf8(body).ok()?);
    let (mut contents, mut choices) = (Vec::new(), None);
    scanner.object(|scanner, name| match name {
        "choices" => {
            let count = scanner.array(|scanner| choice(scanner, &mut contents))?;
            once(&mut choices, count)
        }
        // Of other endpoints.
        "content" | "output" => None,
        _ => scanner.value().map(|_| ()),
    })?;
    scanner.end()?;
    Some(contents)
}

fn choice<'a>(scanner: &mut Scanner<'a>, contents: &mut Vec<&'a str>) -> Option<()> {
    let mut messages = None;
    scanner.object(|scanner, name| {
        if name != "message" {
            return scanner.value().map(|_| ());
        }
        let mut content = None;
        scanner.object(|scanner, name| match name {
            "content" => once(&mut content, scanner.value()?),
            _ => scanner.value().map(|_| ()),
        })?;
        contents.extend(content.filter(|content| *content != "null"));
        once(&mut messages, ())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_reading_finds_what_a_thorough_one_finds() {
        let rows = [
            (
                "one choice",
                true,
                r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"a\nb"}}],"usage":{}}"#,
            ),
            (
                "two",
                true,
                r#"{"choices":[{"message":{"content":"a"}},{"message":{"content":null}},{"message":{"content":[]}}]}"#,
            ),
            ("no message", true, r#"{"choices":[{"index":1}],"id":"x"}"#),
            ("no choices", true, r#"{"id":"x"}"#),
            ("message null", false, r#"{"choices":[{"message":null}]}"#),
            ("message twice", false, r#"{"choices":[{"message":{},"message":{}}]}"#),
            ("content twice", false, r#"{"choices":[{"message":{"content":"a","content":"b"}}]}"#),
            ("choices twice", false, r#"{"choices":[],"choices":[]}"#),
            ("choices null", false, r#"{"choices":null}"#),
            ("another dialect's", false, r#"{"content":[{"text":"a"}]}"#),
            ("a choice as an array", false, r#"{"choices":[[{"content":"a"}]]}"#),
        ];
        for (what, plain, body) in rows {
            let quick = plainly(body.as_bytes());
            assert_eq!(quick.is_some(), plain, "{what}");
            if let Some(quick) = quick {
                assert_eq!(Ok(quick), texts(Endpoint::Chat, body.as_bytes()), "{what}");
            }
        }
    }
}
