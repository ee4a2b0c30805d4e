//! `OpenAI`'s chat completions, and what compatible servers make of them.

use plimsoll_measure::ErrorClass;
use serde::Deserialize;
use serde_json::Value;

use super::DeltaKind;
use super::answer::{Answer, Fault, Reading, Sink};
use super::json::{First, Str};
use super::usage::ChatUsage;
use crate::sse::Event;

/// One event of a stream. One choice is asked for, so only the first is read.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Option<First<Choice<'a>>>,
    usage: Option<ChatUsage>,
    error: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<Message<'a>>,
    finish_reason: Str<'a>,
}

/// A whole answer.
#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(borrow)]
    choices: Option<First<WholeChoice<'a>>>,
    usage: Option<ChatUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct WholeChoice<'a> {
    #[serde(borrow)]
    message: Message<'a>,
    #[serde(default)]
    finish_reason: Str<'a>,
}

/// A message or a part of one.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    content: Str<'a>,
    refusal: Str<'a>,
    reasoning_content: Str<'a>,
    reasoning: Str<'a>,
    tool_calls: Option<Vec<ToolCall<'a>>>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Function<'a> {
    #[serde(borrow)]
    name: Str<'a>,
    arguments: Str<'a>,
}

pub(super) fn read_event(answer: &mut Answer, event: &Event<'_>, sink: Sink<'_>) -> Reading {
    let chunk: Chunk<'_> = serde_json::from_str(event.data)?;
    if let Some(error) = &chunk.error {
        return Err(Fault::reported(error));
    }
    // Some servers send the usage alone; an event without either is not of this dialect.
    if chunk.choices.is_none() && chunk.usage.is_none() {
        return Err(no_choices());
    }
    if let Some(First(Some(choice))) = chunk.choices {
        if let Some(delta) = choice.delta {
            read_delta(answer, delta, sink);
        }
        answer.stop(&choice.finish_reason, sink);
    }
    if let Some(usage) = chunk.usage {
        answer.report(usage.into(), sink);
    }
    Ok(())
}

fn read_delta(answer: &mut Answer, delta: Message<'_>, sink: Sink<'_>) {
    // Servers that write both members write the same reasoning into both.
    answer.delta(DeltaKind::Reasoning, &delta.reasoning_content.or(delta.reasoning), sink);
    answer.delta(DeltaKind::Text, &delta.content, sink);
    answer.delta(DeltaKind::Text, &delta.refusal, sink);
    let calls = delta.tool_calls.into_iter().flatten().filter_map(|call| call.function);
    for Function { name, arguments } in calls {
        answer.delta(DeltaKind::ToolCall, &arguments.or(name), sink);
    }
}

pub(super) fn read_whole(answer: &mut Answer, body: &str, sink: Sink<'_>) -> Reading {
    let completion: Completion<'_> = serde_json::from_str(body)?;
    if let Some(error) = &completion.error {
        return Err(Fault::reported(error));
    }
    let Some(First(Some(choice))) = completion.choices else { return Err(no_choices()) };
    // Content is null where the model calls a tool instead.
    answer.write(&choice.message.content);
    answer.write(&choice.message.refusal);
    answer.stop(&choice.finish_reason, sink);
    if let Some(usage) = completion.usage {
        answer.report(usage.into(), sink);
    }
    Ok(())
}

fn no_choices() -> Fault {
    Fault::found(ErrorClass::MalformedBody, "there are no `choices`")
}
