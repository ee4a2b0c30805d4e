//! Translates whole responses.

use serde_json::{Value, json};

use super::request_to_anthropic::tool_use;
use super::{finish_reason, missing_id};
use crate::error::DialectError;
use crate::error_body::ErrorBody;
use crate::usage::Usage;
use crate::wire::{Content, CowStr, RawJson, anthropic, openai, parse_response};

/// Translates a response in messages to a chat completion.
pub(super) fn to_openai(body: &[u8], created: u64) -> Result<Vec<u8>, DialectError> {
    let response: anthropic::Answer<'_> = parse_response(body)?;
    fail_on(response.error.as_ref())?;
    let is_message = &*response.kind == "message" || response.kind.is_empty();
    if !is_message || response.kind.is_empty() && response.content.is_empty() {
        return Err(DialectError::InvalidResponse(format!("its type is {:?}", &*response.kind)));
    }
    let message = completion(response.content)?;
    let has_calls = message.tool_calls.is_some();
    let reason = response.stop_reason;
    let finish_reason = reason.map(|reason| finish_reason::to_openai(&reason, has_calls));
    Ok(encode(&json!({
        "id": response.id,
        "object": "chat.completion",
        "created": created,
        "model": response.model,
        "choices": [{
            "index": 0,
            "message": message,
            "logprobs": null,
            "finish_reason": finish_reason,
        }],
        "usage": Usage::from(response.usage).to_openai(),
    })))
}

/// Fails on an answer with status 200 that reports an error.
fn fail_on(error: Option<&RawJson<'_>>) -> Result<(), DialectError> {
    match error {
        None => Ok(()),
        Some(error) => Err(DialectError::Reported(ErrorBody::from_json(error, 500).message)),
    }
}

fn completion(
    blocks: Vec<anthropic::AnswerBlock<'_>>,
) -> Result<openai::Message<'_>, DialectError> {
    let mut text: Option<CowStr<'_>> = None;
    let mut calls = Vec::new();
    for block in blocks {
        match (&*block.kind, block.text.is_some()) {
            ("text", true) => match &mut text {
                None => text = block.text,
                Some(text) => text.0.to_mut().push_str(&block.text.unwrap_or_default()),
            },
            ("tool_use", _) => calls.push(function_call(block, calls.len())?),
            // Thinking, and blocks of tools run by the provider.
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

fn function_call(
    block: anthropic::AnswerBlock<'_>,
    at: usize,
) -> Result<openai::ToolCall<'_>, DialectError> {
    let name = block.name.filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| nameless(at))?;
    let arguments = block.input.filter(|input| !input.trim().is_empty());
    Ok(openai::ToolCall {
        id: block.id.unwrap_or_else(|| missing_id(at).into()),
        kind: "function".into(),
        function: openai::FunctionCall {
            name,
            arguments: arguments.unwrap_or_else(|| "{}".into()),
        },
    })
}

/// Translates a chat completion to a response in messages.
pub(super) fn to_anthropic(body: &[u8]) -> Result<Vec<u8>, DialectError> {
    let response: openai::Answer<'_> = parse_response(body)?;
    fail_on(response.error.as_ref())?;
    if let Some(message) = response.message.filter(|_| &*response.object == "error") {
        return Err(DialectError::Reported(message.0.into_owned()));
    }
    let choice = response.choices.into_iter().next();
    let choice =
        choice.ok_or_else(|| DialectError::InvalidResponse("it has no choices".to_owned()))?;
    let has_calls = !choice.message.tool_calls.is_empty();
    let reason = choice.finish_reason;
    Ok(encode(&json!({
        "id": response.id,
        "type": "message",
        "role": "assistant",
        "model": response.model,
        "content": blocks(choice.message)?,
        "stop_reason": reason.map(|reason| finish_reason::to_anthropic(&reason, has_calls)),
        "stop_sequence": null,
        "usage": Usage::from(response.usage.unwrap_or_default()).to_anthropic(),
    })))
}

fn blocks(message: openai::Delta<'_>) -> Result<Vec<anthropic::ContentBlock<'_>>, DialectError> {
    let texts = message.content.into_iter().chain(message.refusal);
    let texts = texts.filter(|text| !text.is_empty());
    let mut blocks: Vec<_> = texts.map(anthropic::ContentBlock::text).collect();
    for (at, call) in message.tool_calls.into_iter().enumerate() {
        let id = call.id().map_or_else(|| missing_id(at), str::to_owned);
        let name = call.function.name.filter(|name| !name.is_empty());
        let call = openai::ToolCall {
            id: id.into(),
            kind: "function".into(),
            function: openai::FunctionCall {
                name: name.ok_or_else(|| nameless(at))?,
                arguments: call.function.arguments.unwrap_or_default(),
            },
        };
        let block = tool_use(call, || "tool_calls".to_owned());
        blocks.push(block.map_err(|error| DialectError::InvalidResponse(error.to_string()))?);
    }
    Ok(blocks)
}

fn nameless(at: usize) -> DialectError {
    DialectError::InvalidResponse(format!("its tool call {at} has no name"))
}

fn encode(response: &Value) -> Vec<u8> {
    response.to_string().into_bytes()
}
