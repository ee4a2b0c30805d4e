//! Whole answers.

use super::reason;
use super::request_to_anthropic::tool_use;
use super::request_to_openai::tool_call;
use crate::error::DialectError;
use crate::usage::Usage;
use crate::wire::{Content, Str, anthropic, openai, read_answer, write_json};

/// An answer in messages, said as a chat completion.
pub(super) fn to_openai(body: &[u8], created: u64) -> Result<Vec<u8>, DialectError> {
    let answer: anthropic::Answer<'_> = read_answer(body)?;
    if &*answer.kind != "message" {
        return Err(DialectError::Answer(format!("its type is {:?}", &*answer.kind)));
    }
    let finish_reason = answer.stop_reason.map(|reason| reason::to_openai(&reason).into());
    let usage = Some(Usage::from(answer.usage).openai());
    let message = completion(answer.content)?;
    let translated = openai::Answer {
        id: answer.id,
        object: "chat.completion".into(),
        created,
        model: answer.model,
        choices: vec![openai::Choice { index: 0, message, logprobs: None, finish_reason }],
        usage,
    };
    written(&translated, body.len())
}

fn completion(blocks: Vec<anthropic::Block<'_>>) -> Result<openai::Message<'_>, DialectError> {
    let mut text: Option<Str<'_>> = None;
    let mut calls = Vec::new();
    for block in blocks {
        match (&*block.kind, block.text.is_some()) {
            ("text", true) => match &mut text {
                None => text = block.text,
                Some(text) => text.0.to_mut().push_str(&block.text.unwrap_or_default()),
            },
            ("tool_use", _) => {
                let call = tool_call(block, || "content".to_owned());
                calls.push(call.map_err(|error| upstream(&error))?);
            }
            // Thinking, and what tools of the provider leave behind.
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

/// A chat completion, said as an answer in messages.
pub(super) fn to_anthropic(body: &[u8]) -> Result<Vec<u8>, DialectError> {
    let answer: openai::Answer<'_> = read_answer(body)?;
    let choice = answer.choices.into_iter().next();
    let choice = choice.ok_or_else(|| DialectError::Answer("it has no choices".to_owned()))?;
    let stop_reason = choice.finish_reason.map(|reason| reason::to_anthropic(&reason).into());
    let translated = anthropic::Answer {
        id: answer.id,
        kind: "message".into(),
        role: "assistant".into(),
        model: answer.model,
        content: blocks(choice.message)?,
        stop_reason,
        stop_sequence: None,
        usage: Usage::from(answer.usage.unwrap_or_default()).anthropic(),
    };
    written(&translated, body.len())
}

fn blocks(message: openai::Message<'_>) -> Result<Vec<anthropic::Block<'_>>, DialectError> {
    let content = message.content.map(|content| content.into_parts(openai::Part::text));
    let parts = content.into_iter().flatten().filter_map(|part| part.text);
    let texts = parts.chain(message.refusal).filter(|text| !text.is_empty());
    let mut blocks: Vec<_> = texts.map(anthropic::Block::text).collect();
    for call in message.tool_calls.into_iter().flatten() {
        blocks.push(tool_use(call, || "tool_calls".to_owned()).map_err(|error| upstream(&error))?);
    }
    Ok(blocks)
}

/// Here it is the upstream that is at fault, not the request.
fn upstream(error: &DialectError) -> DialectError {
    DialectError::Answer(error.to_string())
}

fn written<T: serde::Serialize>(answer: &T, about: usize) -> Result<Vec<u8>, DialectError> {
    let mut out = Vec::with_capacity(about + 64);
    write_json(&mut out, answer)?;
    Ok(out)
}
