//! Anthropic's Messages API.

use super::json_reader::{Raw, Str, Tag, from_object};
use super::response_state::{DecodeError, DecodeResult, ResponseState, parse};
use super::sent::{DeltaKind, OnDelta, Pause};
use super::usage::UsageReport;
use crate::sse::Event;

/// One event of a stream.
#[derive(Default)]
pub(super) struct StreamEvent<'a> {
    kind: Tag<'a>,
    message: Option<MessageStart<'a>>,
    content_block: Option<Block<'a>>,
    delta: Option<BlockDelta<'a>>,
    usage: Option<UsageReport<'a>>,
    error: Option<Raw<'a>>,
}
from_object!(StreamEvent<'a> { kind = "type", message, content_block, delta, usage, error });

/// The message in `message_start`.
#[derive(Default)]
struct MessageStart<'a> {
    usage: Option<UsageReport<'a>>,
}
from_object!(MessageStart<'a> { usage });

/// The delta of a content block or of the message.
#[derive(Default)]
struct BlockDelta<'a> {
    text: Str<'a>,
    thinking: Str<'a>,
    signature: Str<'a>,
    partial_json: Str<'a>,
    stop_reason: Str<'a>,
}
from_object!(BlockDelta<'a> { text, thinking, signature, partial_json, stop_reason });

/// A non-streamed response.
#[derive(Default)]
pub(super) struct Message<'a> {
    content: Option<Vec<Block<'a>>>,
    stop_reason: Str<'a>,
    usage: Option<UsageReport<'a>>,
    error: Option<Raw<'a>>,
}
from_object!(Message<'a> { content, stop_reason, usage, error });

/// A content block: text, thinking or a tool call.
#[derive(Default)]
struct Block<'a> {
    kind: Tag<'a>,
    text: Str<'a>,
    thinking: Str<'a>,
    id: Str<'a>,
    name: Str<'a>,
    input: Option<Raw<'a>>,
}
from_object!(Block<'a> { kind = "type", text, thinking, id, name, input });

impl<'a> Block<'a> {
    /// Whether the next request repeats it as it is.
    fn is_thought(&self) -> bool {
        matches!(&*self.kind, "thinking" | "redacted_thinking")
    }

    /// The initial input of a call, if it has any.
    fn initial_input(&self) -> &'a str {
        let input = self.input.map_or("", |input| input.0);
        let says_nothing = input.bytes().all(|byte| b"{} \t\r\n".contains(&byte));
        if says_nothing { "" } else { input }
    }
}

/// Reads one event of a stream.
pub(super) fn read_event(
    state: &mut ResponseState,
    event: &Event<'_>,
    on_delta: OnDelta<'_>,
) -> DecodeResult {
    let read: StreamEvent<'_> = parse(event.data)?;
    DecodeError::check_member(read.error)?;
    let delta = read.delta.unwrap_or_default();
    match &*read.kind.or(event.name) {
        "message_start" => {
            if let Some(usage) = read.message.and_then(|message| message.usage) {
                state.add_usage(&usage.of_anthropic().without_output());
            }
        }
        "content_block_start" => {
            if let Some(block) = &read.content_block {
                if block.is_thought() {
                    state.keep_item(event.data, "/content_block");
                }
                begin_block(state, block, on_delta);
            }
        }
        "content_block_delta" => read_delta(state, &delta, on_delta),
        "message_delta" => read_message_delta(state, &delta, read.usage),
        "message_stop" => state.end(),
        "error" => return Err(DecodeError::from_error_event(event.data)),
        "" => return Err(DecodeError::missing("type", event.data)),
        _ => {}
    }
    Ok(())
}

/// The block is usually empty, but a gateway may include the first part here.
fn begin_block(state: &mut ResponseState, block: &Block<'_>, on_delta: OnDelta<'_>) {
    state.push_delta(DeltaKind::Reasoning, &block.thinking, on_delta);
    state.push_delta(DeltaKind::Text, &block.text, on_delta);
    match &*block.kind {
        "thinking" | "redacted_thinking" => state.sent.pause(Pause::Thinking),
        "tool_use" => {
            let input = block.initial_input();
            state.begin_tool_call([&block.id, &block.name, input]);
            let first = if input.is_empty() { &*block.name } else { input };
            state.push_delta(DeltaKind::ToolCall, first, on_delta);
        }
        kind if kind.contains("tool") => state.sent.pause(Pause::ServerTool),
        _ => {}
    }
}

fn read_delta(state: &mut ResponseState, delta: &BlockDelta<'_>, on_delta: OnDelta<'_>) {
    // A delta has one of these, or a signature or citation, which do not count as content.
    state.keep_in_item("thinking", &delta.thinking);
    state.keep_in_item("signature", &delta.signature);
    state.push_delta(DeltaKind::Reasoning, &delta.thinking, on_delta);
    state.push_delta(DeltaKind::Text, &delta.text, on_delta);
    state.push_delta(DeltaKind::ToolCall, &delta.partial_json, on_delta);
    state.push_tool_call(None, ["", "", &delta.partial_json]);
}

/// Reads the finish reason and the final token counts.
fn read_message_delta(
    state: &mut ResponseState,
    delta: &BlockDelta<'_>,
    usage: Option<UsageReport<'_>>,
) {
    state.set_finish_reason(&delta.stop_reason);
    if let Some(usage) = usage {
        state.add_usage(&usage.of_anthropic());
    }
}

/// Reads a non-streamed response.
pub(super) fn read_whole(state: &mut ResponseState, body: &str) -> DecodeResult {
    let message: Message<'_> = parse(body)?;
    DecodeError::check_member(message.error)?;
    let blocks = message.content.as_ref().ok_or_else(|| DecodeError::missing("content", body))?;
    for (place, block) in blocks.iter().enumerate() {
        if block.is_thought() {
            state.keep_item(body, &format!("/content/{place}"));
        }
        state.count(DeltaKind::Reasoning, &block.thinking);
        state.push_text(&block.text);
        if &*block.kind == "tool_use" {
            let input = block.input.map_or("", |input| input.0);
            state.push_whole_tool_call([&block.id, &block.name, input]);
        }
    }
    state.set_finish_reason(&message.stop_reason);
    if let Some(usage) = message.usage {
        state.add_usage(&usage.of_anthropic());
    }
    Ok(())
}
