//! Translates whole responses.

use super::finish_reason;
use super::request_to_anthropic::tool_use;
use super::request_to_openai::tool_call;
use crate::error::DialectError;
use crate::usage::Usage;
use crate::wire::{Content, CowStr, anthropic, openai, parse_response, write_json};

/// Translates a response in messages to a chat completion.
pub(super) fn to_openai(body: &[u8], created: u64) -> Result<Vec<u8>, DialectError> {
    let response: anthropic::Response<'_> = parse_response(body)?;
    if &*response.kind != "message" {
        return Err(DialectError::InvalidResponse(format!("its type is {:?}", &*response.kind)));
    }
    let finish_reason = response.stop_reason.map(|reason| finish_reason::to_openai(&reason).into());
    let usage = Some(Usage::from(response.usage).to_openai());
    let message = completion(response.content)?;
    let translated = openai::Response {
        id: response.id,
        object: "chat.completion".into(),
        created,
        model: response.model,
        choices: vec![openai::Choice { index: 0, message, logprobs: None, finish_reason }],
        usage,
    };
    encode(&translated, body.len())
}

fn completion(
    blocks: Vec<anthropic::ContentBlock<'_>>,
) -> Result<openai::Message<'_>, DialectError> {
    let mut text: Option<CowStr<'_>> = None;
    let mut calls = Vec::new();
    for block in blocks {
        match (&*block.kind, block.text.is_some()) {
            ("text", true) => match &mut text {
                None => text = block.text,
                Some(text) => text.0.to_mut().push_str(&block.text.unwrap_or_default()),
            },
            ("tool_use", _) => {
                let call = tool_call(block, || "content".to_owned());
                calls.push(call.map_err(|error| blame_upstream(&error))?);
            }
            // Thinking, and blocks of tools that ran at the provider.
            _ => {}
        }
    }
    Ok(openai::Message {
        role: "assistant".into(),
        content: text.map(Content::Text),
        tool_calls: (!calls.is_empty()).then_some(calls),
        ..openai::Message::default()
    })
}

/// Translates a chat completion to a response in messages.
pub(super) fn to_anthropic(body: &[u8]) -> Result<Vec<u8>, DialectError> {
    let response: openai::Response<'_> = parse_response(body)?;
    let choice = response.choices.into_iter().next();
    let choice =
        choice.ok_or_else(|| DialectError::InvalidResponse("it has no choices".to_owned()))?;
    let stop_reason =
        choice.finish_reason.map(|reason| finish_reason::to_anthropic(&reason).into());
    let translated = anthropic::Response {
        id: response.id,
        kind: "message".into(),
        role: "assistant".into(),
        model: response.model,
        content: blocks(choice.message)?,
        stop_reason,
        stop_sequence: None,
        usage: Usage::from(response.usage.unwrap_or_default()).to_anthropic(),
    };
    encode(&translated, body.len())
}

fn blocks(message: openai::Message<'_>) -> Result<Vec<anthropic::ContentBlock<'_>>, DialectError> {
    let content = message.content.map(|content| content.into_parts(openai::Part::text));
    let parts = content.into_iter().flatten().filter_map(|part| part.text);
    let texts = parts.chain(message.refusal).filter(|text| !text.is_empty());
    let mut blocks: Vec<_> = texts.map(anthropic::ContentBlock::text).collect();
    for call in message.tool_calls.into_iter().flatten() {
        blocks.push(
            tool_use(call, || "tool_calls".to_owned()).map_err(|error| blame_upstream(&error))?,
        );
    }
    Ok(blocks)
}

/// Turns an error about a request into one about the upstream's response.
fn blame_upstream(error: &DialectError) -> DialectError {
    DialectError::InvalidResponse(error.to_string())
}

fn encode<T: serde::Serialize>(response: &T, size_hint: usize) -> Result<Vec<u8>, DialectError> {
    let mut out = Vec::with_capacity(size_hint + 64);
    write_json(&mut out, response)?;
    Ok(out)
}
