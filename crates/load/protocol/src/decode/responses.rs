//! `OpenAI`'s Responses API.

use plimsoll_measure::ErrorClass;

use super::chat::{Arguments, Content};
use super::json_reader::{Raw, Str, Tag, from_object};
use super::response_state::{DecodeError, DecodeResult, ResponseState, parse};
use super::sent::{DeltaKind, OnDelta, Pause};
use super::usage::UsageReport;
use crate::sse::Event;

/// One event of a stream.
#[derive(Default)]
pub(super) struct StreamEvent<'a> {
    kind: Tag<'a>,
    delta: Str<'a>,
    item: Option<NewItem<'a>>,
    response: Option<Response<'a>>,
}
from_object!(StreamEvent<'a> { kind = "type", delta, item, response });

/// A new output item, reduced to the members of a tool call.
#[derive(Default)]
struct NewItem<'a> {
    kind: Tag<'a>,
    call_id: Option<Raw<'a>>,
    name: Option<Raw<'a>>,
}
from_object!(NewItem<'a> { kind = "type", call_id, name });

/// A non-streamed response, and the content of a stream's last event. In the latter the output
/// repeats the deltas and is not parsed.
#[derive(Default)]
struct Response<'a> {
    status: Str<'a>,
    output: Option<Raw<'a>>,
    incomplete_details: Option<IncompleteDetails<'a>>,
    usage: Option<UsageReport<'a>>,
    error: Option<Raw<'a>>,
}
from_object!(Response<'a> { status, output, incomplete_details, usage, error });

#[derive(Default)]
struct IncompleteDetails<'a> {
    reason: Str<'a>,
}
from_object!(IncompleteDetails<'a> { reason });

/// An output item: a message, reasoning or a tool call.
#[derive(Default)]
struct OutputItem<'a> {
    kind: Tag<'a>,
    content: Content<'a>,
    /// Any type, because other items may have members of the same names.
    call_id: Option<Raw<'a>>,
    name: Option<Raw<'a>>,
    arguments: Arguments<'a>,
}
from_object!(OutputItem<'a> { kind = "type", content, call_id, name, arguments });

/// Reads one event of a stream.
pub(super) fn read_event(
    state: &mut ResponseState,
    event: &Event<'_>,
    on_delta: OnDelta<'_>,
) -> DecodeResult {
    let read: StreamEvent<'_> = parse(event.data)?;
    match &*read.kind.or(event.name) {
        "response.completed" | "response.incomplete" => end_stream(state, read.response),
        "response.failed" => Err(read.response.and_then(|response| response.error).map_or_else(
            || DecodeError::from_error_event(event.data),
            DecodeError::from_error_member,
        )),
        "error" => Err(DecodeError::from_error_event(event.data)),
        "" => Err(DecodeError::missing("type", event.data)),
        "response.output_item.added" => {
            let item = read.item.unwrap_or_default();
            match &*item.kind {
                REASONING => state.sent.pause(Pause::Thinking),
                // Its arguments are empty here, and follow in the deltas.
                FUNCTION_CALL => {
                    let name = text(item.name);
                    state.begin_tool_call([&text(item.call_id), &name, ""]);
                    state.push_delta(DeltaKind::ToolCall, &name, on_delta);
                }
                "custom_tool_call" => {
                    state.push_delta(DeltaKind::ToolCall, &text(item.name), on_delta);
                }
                _ => {}
            }
            Ok(())
        }
        "response.output_item.done" if read.item.is_some_and(|item| &*item.kind == REASONING) => {
            state.keep_item(event.data, "/item");
            Ok(())
        }
        kind if kind.contains("_call.") => {
            state.sent.pause(Pause::ServerTool);
            Ok(())
        }
        kind => {
            let is_arguments = kind == "response.function_call_arguments.delta";
            if let Some(kind) = delta_kind(kind) {
                if is_arguments {
                    state.push_tool_call(None, ["", "", &read.delta]);
                }
                state.push_delta(kind, &read.delta, on_delta);
            }
            Ok(())
        }
    }
}

fn text(member: Option<Raw<'_>>) -> Str<'_> {
    member.map(Raw::text).unwrap_or_default()
}

/// Type of an output item that the next request repeats.
const REASONING: &str = "reasoning";

/// Type of an output item that calls a tool of the client.
const FUNCTION_CALL: &str = "function_call";

/// The kind of content in events of this type; `None` for events without content.
fn delta_kind(kind: &str) -> Option<DeltaKind> {
    match kind.strip_prefix("response.")?.strip_suffix(".delta")? {
        "output_text" | "refusal" | "audio.transcript" => Some(DeltaKind::Text),
        "reasoning_text" | "reasoning_summary_text" => Some(DeltaKind::Reasoning),
        "function_call_arguments"
        | "custom_tool_call_input"
        | "mcp_call_arguments"
        | "code_interpreter_call_code"
        | "shell_call_command" => Some(DeltaKind::ToolCall),
        _ => None,
    }
}

/// Ends a stream with the final state of the response.
fn end_stream(state: &mut ResponseState, response: Option<Response<'_>>) -> DecodeResult {
    let response = response.ok_or_else(|| {
        DecodeError::new(ErrorClass::MalformedBody, "the last event has no `response`")
    })?;
    read_final_state(state, response);
    state.end();
    Ok(())
}

/// Reads a non-streamed response.
pub(super) fn read_whole(state: &mut ResponseState, body: &str) -> DecodeResult {
    let response: Response<'_> = parse(body)?;
    DecodeError::check_member(response.error)?;
    let output: Vec<OutputItem<'_>> =
        parse(response.output.ok_or_else(|| DecodeError::missing("output", body))?.0)?;
    for (place, _) in output.iter().enumerate().filter(|(_, item)| &*item.kind == REASONING) {
        state.keep_item(body, &format!("/output/{place}"));
    }
    for message in output.iter().filter(|item| &*item.kind == "message") {
        state.push_text(&message.content.text);
    }
    for item in output.iter().filter(|item| &*item.kind == FUNCTION_CALL) {
        let (id, name) = (text(item.call_id), text(item.name));
        state.push_whole_tool_call([&id, &name, &item.arguments.0]);
    }
    read_final_state(state, response);
    Ok(())
}

fn read_final_state(state: &mut ResponseState, response: Response<'_>) {
    let reason = response.incomplete_details.unwrap_or_default().reason;
    state.set_finish_reason(&reason.or(response.status));
    if let Some(usage) = response.usage {
        state.add_usage(&usage);
    }
}
