//! `OpenAI`'s chat completions, and what compatible servers make of them.

use plimsoll_measure::ErrorClass;

use super::DeltaKind;
use super::answer::{Answer, Fault, Reading, Sink};
use super::json::{First, Raw, Str, from_object, from_str};
use super::usage::ChatUsage;
use crate::sse::Event;

/// One event of a stream. One choice is asked for, so only the first is read.
#[derive(Default)]
struct Chunk<'a> {
    choices: Option<First<Choice<'a>>>,
    usage: Option<ChatUsage>,
    error: Option<Raw<'a>>,
}
from_object!(Chunk<'a> { choices, usage, error });

#[derive(Default)]
struct Choice<'a> {
    delta: Option<Message<'a>>,
    finish_reason: Str<'a>,
}
from_object!(Choice<'a> { delta, finish_reason });

/// A whole answer.
#[derive(Default)]
struct Completion<'a> {
    choices: Option<First<WholeChoice<'a>>>,
    usage: Option<ChatUsage>,
    error: Option<Raw<'a>>,
}
from_object!(Completion<'a> { choices, usage, error });

#[derive(Default)]
struct WholeChoice<'a> {
    message: Option<Message<'a>>,
    finish_reason: Str<'a>,
}
from_object!(WholeChoice<'a> { message, finish_reason });

/// A message or a part of one.
#[derive(Default)]
struct Message<'a> {
    content: Str<'a>,
    refusal: Str<'a>,
    reasoning_content: Str<'a>,
    reasoning: Str<'a>,
    tool_calls: Option<Vec<ToolCall<'a>>>,
}
from_object!(Message<'a> { content, refusal, reasoning_content, reasoning, tool_calls });

#[derive(Default)]
struct ToolCall<'a> {
    function: Option<Function<'a>>,
}
from_object!(ToolCall<'a> { function });

#[derive(Default)]
struct Function<'a> {
    name: Str<'a>,
    arguments: Str<'a>,
}
from_object!(Function<'a> { name, arguments });

pub(super) fn read_event(answer: &mut Answer, event: &Event<'_>, sink: Sink<'_>) -> Reading {
    let chunk: Chunk<'_> = from_str(event.data)?;
    if let Some(error) = chunk.error {
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
    let completion: Completion<'_> = from_str(body)?;
    if let Some(error) = completion.error {
        return Err(Fault::reported(error));
    }
    let Some(First(Some(choice))) = completion.choices else { return Err(no_choices()) };
    let Some(message) = choice.message else {
        return Err(Fault::found(ErrorClass::MalformedBody, "the choice has no `message`"));
    };
    // Content is null where the model calls a tool instead.
    answer.write(&message.content);
    answer.write(&message.refusal);
    answer.stop(&choice.finish_reason, sink);
    if let Some(usage) = completion.usage {
        answer.report(usage.into(), sink);
    }
    Ok(())
}

fn no_choices() -> Fault {
    Fault::found(ErrorClass::MalformedBody, "there are no `choices`")
}
