//! `OpenAI`'s Responses API.

use plimsoll_measure::ErrorClass;

use super::DeltaKind;
use super::answer::{Answer, Fault, Reading, Sink};
use super::json::{Raw, Str, from_object, from_str};
use super::usage::ResponsesUsage;
use crate::sse::Event;

/// One event of a stream.
#[derive(Default)]
struct StreamEvent<'a> {
    kind: Str<'a>,
    delta: Str<'a>,
    response: Option<Response<'a>>,
}
from_object!(StreamEvent<'a> { kind = "type", delta, response });

/// A whole answer, and what a stream's last event holds: there, the output is old news, and not looked into.
#[derive(Default)]
struct Response<'a> {
    status: Str<'a>,
    output: Option<Raw<'a>>,
    incomplete_details: Option<Incomplete<'a>>,
    usage: Option<ResponsesUsage>,
    error: Option<Raw<'a>>,
}
from_object!(Response<'a> { status, output, incomplete_details, usage, error });

#[derive(Default)]
struct Incomplete<'a> {
    reason: Str<'a>,
}
from_object!(Incomplete<'a> { reason });

/// Something that the model put out: a message, its reasoning, a call of a tool.
#[derive(Default)]
struct Item<'a> {
    kind: Str<'a>,
    content: Option<Vec<Part<'a>>>,
}
from_object!(Item<'a> { kind = "type", content });

#[derive(Default)]
struct Part<'a> {
    text: Str<'a>,
    refusal: Str<'a>,
}
from_object!(Part<'a> { text, refusal });

pub(super) fn read_event(answer: &mut Answer, event: &Event<'_>, sink: Sink<'_>) -> Reading {
    let read: StreamEvent<'_> = from_str(event.data)?;
    match &*read.kind.or(event.name.into()) {
        "response.completed" | "response.incomplete" => conclude(answer, read.response, sink),
        "response.failed" => Err(read
            .response
            .and_then(|response| response.error)
            .map_or_else(|| Fault::told(event.data), Fault::reported)),
        "error" => Err(Fault::told(event.data)),
        "" => Err(Fault::found(ErrorClass::MalformedBody, "an event has no `type`")),
        kind => {
            if let Some(kind) = content(kind) {
                answer.delta(kind, &read.delta, sink);
            }
            Ok(())
        }
    }
}

/// What the delta of an event of this type holds; `None` for events that bear no content.
fn content(kind: &str) -> Option<DeltaKind> {
    match kind.strip_prefix("response.")?.strip_suffix(".delta")? {
        "output_text" | "refusal" => Some(DeltaKind::Text),
        "reasoning_text" | "reasoning_summary_text" => Some(DeltaKind::Reasoning),
        "function_call_arguments" | "custom_tool_call_input" | "mcp_call_arguments" => {
            Some(DeltaKind::ToolCall)
        }
        _ => None,
    }
}

/// Ends a stream with the response as it stands then.
fn conclude(answer: &mut Answer, response: Option<Response<'_>>, sink: Sink<'_>) -> Reading {
    let missing = || Fault::found(ErrorClass::MalformedBody, "the last event has no `response`");
    let response = response.ok_or_else(missing)?;
    report(answer, response, sink);
    answer.end();
    Ok(())
}

pub(super) fn read_whole(answer: &mut Answer, body: &str, sink: Sink<'_>) -> Reading {
    let response: Response<'_> = from_str(body)?;
    if let Some(error) = response.error {
        return Err(Fault::reported(error));
    }
    let missing = || Fault::found(ErrorClass::MalformedBody, "there is no `output`");
    let output: Vec<Item<'_>> = from_str(response.output.ok_or_else(missing)?.0)?;
    let messages = output.iter().filter(|item| &*item.kind == "message");
    for part in messages.flat_map(|item| item.content.iter().flatten()) {
        answer.write(&part.text);
        answer.write(&part.refusal);
    }
    report(answer, response, sink);
    Ok(())
}

fn report(answer: &mut Answer, response: Response<'_>, sink: Sink<'_>) {
    let reason = response.incomplete_details.unwrap_or_default().reason;
    answer.stop(&reason.or(response.status), sink);
    if let Some(usage) = response.usage {
        answer.report(usage.into(), sink);
    }
}
