//! `OpenAI`'s chat completions, and the variants that compatible servers send.

use plimsoll_measure::ErrorClass;

use super::delta::{DeltaKind, OnDelta};
use super::json_reader::{FirstElement, Raw, Str, from_object, from_str};
use super::response_state::{DecodeError, DecodeResult, ResponseState};
use super::usage::ChatUsage;
use crate::sse::Event;

/// One event of a stream. Requests ask for one choice, so only the first is read.
#[derive(Default)]
struct Chunk<'a> {
    choices: Option<FirstElement<Choice<'a>>>,
    usage: Option<ChatUsage<'a>>,
    error: Option<Raw<'a>>,
}
from_object!(Chunk<'a> { choices, usage, error });

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
    function: Option<Function<'a>>,
}
from_object!(ToolCall<'a> { function });

#[derive(Default)]
struct Function<'a> {
    name: Str<'a>,
    arguments: Str<'a>,
}
from_object!(Function<'a> { name, arguments });

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
    // unless it is of another kind: a ping of the gateway, for instance.
    if chunk.choices.is_none() && chunk.usage.is_none() {
        return if is_other_event(event) { Ok(()) } else { Err(no_choices()) };
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

/// Whether an event without choices says itself that it is none of the completion: by its name, or
/// by a `type`. The dialect has neither.
#[cold]
fn is_other_event(event: &Event<'_>) -> bool {
    #[derive(Default)]
    struct Typed<'a> {
        kind: Str<'a>,
    }
    from_object!(Typed<'a> { kind = "type" });
    !event.name.is_empty()
        || from_str(event.data).is_ok_and(|typed: Typed<'_>| !typed.kind.is_empty())
}

fn read_delta(state: &mut ResponseState, delta: Message<'_>, on_delta: OnDelta<'_>) {
    // Servers that send both members repeat the same reasoning in both.
    state.push_delta(DeltaKind::Reasoning, &delta.reasoning_content.or(delta.reasoning), on_delta);
    state.push_delta(DeltaKind::Text, &delta.content, on_delta);
    state.push_delta(DeltaKind::Text, &delta.refusal, on_delta);
    let calls = delta.tool_calls.into_iter().flatten().filter_map(|call| call.function);
    for Function { name, arguments } in calls.chain(delta.function_call) {
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
    state.set_finish_reason(&choice.finish_reason);
    if let Some(usage) = completion.usage {
        state.set_usage(|_, refused| usage.read(refused));
    }
    Ok(())
}

fn no_choices() -> DecodeError {
    DecodeError::new(ErrorClass::MalformedBody, "there are no `choices`")
}
