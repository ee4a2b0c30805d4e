//! Rewrites the texts of a whole response, for example to redact personal data.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dialect::Endpoint;
use crate::error::DialectError;

use crate::patch::{self, Patch, range_in};
use crate::wire::{CowStr, parse_response};

/// The response with its texts rewritten; None if no text changed. All other bytes stay the same.
/// Covers the messages of all choices, text blocks, and output texts of the Responses API, but not
/// tool calls.
///
/// # Errors
/// The body is not a response of that endpoint; status 502.
pub fn rewrite_response(
    endpoint: Endpoint,
    body: &[u8],
    mut rewrite: impl FnMut(&str) -> Cow<'_, str>,
) -> Result<Option<Vec<u8>>, DialectError> {
    let mut patches: Vec<Patch> = Vec::new();
    for raw in texts(endpoint, body)? {
        // Content that is not a string is left alone.
        let Ok(text) = serde_json::from_str::<CowStr<'_>>(raw.get()) else { continue };
        let rewritten = rewrite(&text);
        if rewritten != *text {
            patches.push((range_in(body, raw.get()), rewritten.into_owned()));
        }
    }
    if patches.is_empty() {
        return Ok(None);
    }
    patches.sort_unstable_by_key(|(range, _)| range.start);
    let mut out = Vec::with_capacity(body.len());
    patch::apply(body, &patches, &mut out)?;
    Ok(Some(out))
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
    #[serde(borrow, default)]
    content: Vec<TextBlock<'a>>,
    #[serde(borrow, default)]
    output: Vec<OutputItem<'a>>,
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
struct TextBlock<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct OutputItem<'a> {
    #[serde(borrow, default)]
    content: Vec<TextBlock<'a>>,
}

fn texts(endpoint: Endpoint, body: &[u8]) -> Result<Vec<&RawValue>, DialectError> {
    let response: Response<'_> = parse_response(body)?;
    Ok(match endpoint {
        Endpoint::Chat => {
            let messages = response.choices.into_iter().filter_map(|choice| choice.message);
            messages.filter_map(|message| message.content).collect()
        }
        Endpoint::Messages => response.content.into_iter().filter_map(|block| block.text).collect(),
        Endpoint::Responses => {
            let blocks = response.output.into_iter().flat_map(|item| item.content);
            blocks.filter_map(|block| block.text).collect()
        }
        Endpoint::Embeddings => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upper(endpoint: Endpoint, body: &str) -> Result<Option<String>, DialectError> {
        let rewritten =
            rewrite_response(endpoint, body.as_bytes(), |text| Cow::Owned(text.to_uppercase()))?;
        Ok(rewritten.map(|body| String::from_utf8(body).unwrap()))
    }

    #[test]
    fn texts_are_rewritten_and_nothing_else() {
        let rows = [
            (
                "one choice",
                Endpoint::Chat,
                r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"a\nb"}}],"usage":{}}"#,
                Some(
                    r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"A\nB"}}],"usage":{}}"#,
                ),
            ),
            (
                "several choices, some without text",
                Endpoint::Chat,
                r#"{"choices":[{"message":{"content":"a"}},{"message":{"content":null}},{"message":{"content":["b"]}},{"message":{"content":"c"}}]}"#,
                Some(
                    r#"{"choices":[{"message":{"content":"A"}},{"message":{"content":null}},{"message":{"content":["b"]}},{"message":{"content":"C"}}]}"#,
                ),
            ),
            ("no message", Endpoint::Chat, r#"{"choices":[{"index":1}],"id":"x"}"#, None),
            ("no choices", Endpoint::Chat, r#"{"id":"x"}"#, None),
            ("message null", Endpoint::Chat, r#"{"choices":[{"message":null}]}"#, None),
            ("another dialect's", Endpoint::Chat, r#"{"content":[{"text":"a"}]}"#, None),
            (
                "text blocks",
                Endpoint::Messages,
                r#"{"content":[{"type":"text","text":"a"},{"type":"tool_use","input":{"text":"b"}}]}"#,
                Some(
                    r#"{"content":[{"type":"text","text":"A"},{"type":"tool_use","input":{"text":"b"}}]}"#,
                ),
            ),
            (
                "output items",
                Endpoint::Responses,
                r#"{"output":[{"content":[{"text":"a"}]},{"type":"function_call","arguments":"b"}]}"#,
                Some(
                    r#"{"output":[{"content":[{"text":"A"}]},{"type":"function_call","arguments":"b"}]}"#,
                ),
            ),
            ("embeddings", Endpoint::Embeddings, r#"{"content":[{"text":"a"}]}"#, None),
        ];
        for (case, endpoint, body, expected) in rows {
            assert_eq!(upper(endpoint, body), Ok(expected.map(str::to_owned)), "{case}");
        }
    }

    #[test]
    fn ambiguous_responses_are_the_upstreams_fault() {
        let rows = [
            ("message twice", r#"{"choices":[{"message":{},"message":{}}]}"#),
            ("content twice", r#"{"choices":[{"message":{"content":"a","content":"b"}}]}"#),
            ("choices twice", r#"{"choices":[],"choices":[]}"#),
            ("choices null", r#"{"choices":null}"#),
        ];
        for (case, body) in rows {
            let status = upper(Endpoint::Chat, body).map_err(|error| error.status());
            assert_eq!(status, Err(502), "{case}");
        }
    }
}
