//! `OpenAI`'s chat completions, and the variants that compatible servers send.

use plimsoll_measure::ErrorClass;

use super::delta::{DeltaKind, OnDelta};
use super::json_reader::{
    FirstElement, FreeValue, Raw, Str, Tag, free_values, from_object, from_str,
};
use super::response_state::{DecodeError, DecodeResult, ResponseState};
use super::usage::ChatUsage;
use crate::sse::Event;

/// One event of a stream. Requests ask for one choice, so only the first is read.
#[derive(Default)]
struct Chunk<'a> {
    choices: Option<FirstElement<Choice<'a>>>,
    usage: Option<ChatUsage<'a>>,
    error: Option<Raw<'a>>,
    /// The dialect has none; events of gateways have.
    kind: Tag<'a>,
}
from_object!(Chunk<'a> { choices, usage, error, kind = "type" });

#[derive(Default)]
struct Choice<'a> {
    delta: Option<Message<'a>>,
    finish_reason: Str<'a>,
}
from_object!(Choice<'a> { delta, finish_reason });

/// A response that is not streamed.
#[derive(Default)]
struct Completion<'a> {
    choices: Option<FirstElement<WholeChoice<'a>>>,
    usage: Option<ChatUsage<'a>>,
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
    /// What `tool_calls` replaced.
    function_call: Option<Function<'a>>,
}
from_object!(Message<'a> {
    content,
    refusal,
    reasoning_content,
    reasoning,
    tool_calls,
    function_call
});

#[derive(Default)]
struct ToolCall<'a> {
    /// Of any kind: no response is malformed because of what is not needed to measure it.
    index: Option<Raw<'a>>,
    id: Option<Raw<'a>>,
    function: Option<Function<'a>>,
}
from_object!(ToolCall<'a> { index, id, function });

#[derive(Default)]
struct Function<'a> {
    name: Str<'a>,
    arguments: Str<'a>,
}
from_object!(Function<'a> { name, arguments });

/// The values of an event that do not decide how the rest of it is read.
pub(super) fn free_values_of_event(data: &str) -> Option<Vec<FreeValue>> {
    free_values::<Chunk<'_>>(data)
}

/// The same of a response that is not streamed.
pub(super) fn free_values_of_whole(body: &str) -> Option<Vec<FreeValue>> {
    free_values::<Completion<'_>>(body)
}

/// Reads one event of a stream.
pub(super) fn read_event(
    state: &mut ResponseState,
    event: &Event<'_>,
    on_delta: OnDelta<'_>,
) -> DecodeResult {
    let chunk: Chunk<'_> = from_str(event.data)?;
    if let Some(error) = chunk.error {
        return Err(DecodeError::from_error_member(error));
    }
    // Some servers send the usage in an event without choices. One with neither is malformed,
    // unless it says itself that it is of another kind, by its name or by a `type`: a ping of the
    // gateway, for instance.
    if chunk.choices.is_none() && chunk.usage.is_none() {
        let is_other = !event.name.is_empty() || !chunk.kind.is_empty();
        return if is_other { Ok(()) } else { Err(no_choices()) };
    }
    if let Some(FirstElement(Some(choice))) = chunk.choices {
        if let Some(delta) = choice.delta {
            read_delta(state, delta, on_delta);
        }
        state.set_finish_reason(&choice.finish_reason);
    }
    if let Some(usage) = chunk.usage {
        state.set_usage(|_, refused| usage.read(refused));
    }
    Ok(())
}

fn read_delta(state: &mut ResponseState, delta: Message<'_>, on_delta: OnDelta<'_>) {
    // Servers that send both members repeat the same reasoning in both.
    state.push_delta(DeltaKind::Reasoning, &delta.reasoning_content.or(delta.reasoning), on_delta);
    state.push_delta(DeltaKind::Text, &delta.content, on_delta);
    state.push_delta(DeltaKind::Text, &delta.refusal, on_delta);
    for ToolCall { index, id, function } in delta.tool_calls.into_iter().flatten() {
        let Function { name, arguments } = function.unwrap_or_default();
        let (index, id) = (index.and_then(|index| index.0.parse().ok()), id.map(Raw::text));
        state.push_tool_call(index, [&id.unwrap_or_default(), &name, &arguments]);
        state.push_delta(DeltaKind::ToolCall, &arguments.or(name), on_delta);
    }
    if let Some(Function { name, arguments }) = delta.function_call {
        state.push_delta(DeltaKind::ToolCall, &arguments.or(name), on_delta);
    }
}

/// Reads a response that is not streamed.
pub(super) fn read_whole(state: &mut ResponseState, body: &str) -> DecodeResult {
    let completion: Completion<'_> = from_str(body)?;
    if let Some(error) = completion.error {
        return Err(DecodeError::from_error_member(error));
    }
    let Some(FirstElement(Some(choice))) = completion.choices else { return Err(no_choices()) };
    let Some(message) = choice.message else {
        return Err(DecodeError::new(ErrorClass::MalformedBody, "the choice has no `message`"));
    };
    // Content is null where the model calls a tool.
    state.push_text(&message.content);
    state.push_text(&message.refusal);
    for call in message.tool_calls.into_iter().flatten() {
        let function = call.function.unwrap_or_default();
        let id = call.id.map(Raw::text).unwrap_or_default();
        state.begin_tool_call([&id, &function.name, &function.arguments]);
    }
    state.set_finish_reason(&choice.finish_reason);
    if let Some(usage) = completion.usage {
        state.set_usage(|_, refused| usage.read(refused));
    }
    Ok(())
}

fn no_choices() -> DecodeError {
    DecodeError::new(ErrorClass::MalformedBody, "there are no `choices`")
}
