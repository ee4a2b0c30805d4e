//! Anthropic's messages.

use plimsoll_measure::ErrorClass;

use super::DeltaKind;
use super::answer::{Answer, Fault, Reading, Sink};
use super::json::{Raw, Str, from_object, from_str};
use super::usage::AnthropicUsage;
use crate::sse::Event;

/// One event of a stream.
#[derive(Default)]
struct StreamEvent<'a> {
    kind: Str<'a>,
    message: Option<Start>,
    content_block: Option<Block<'a>>,
    delta: Option<Delta<'a>>,
    usage: Option<AnthropicUsage>,
    error: Option<Raw<'a>>,
}
from_object!(StreamEvent<'a> { kind = "type", message, content_block, delta, usage, error });

/// The message as a stream begins it.
#[derive(Default)]
struct Start {
    usage: Option<AnthropicUsage>,
}
from_object!(Start { usage });

/// What an event adds to a block of content, or to the message.
#[derive(Default)]
struct Delta<'a> {
    text: Str<'a>,
    thinking: Str<'a>,
    partial_json: Str<'a>,
    stop_reason: Str<'a>,
}
from_object!(Delta<'a> { text, thinking, partial_json, stop_reason });

/// A whole answer.
#[derive(Default)]
struct Message<'a> {
    content: Option<Vec<Block<'a>>>,
    stop_reason: Str<'a>,
    usage: Option<AnthropicUsage>,
    error: Option<Raw<'a>>,
}
from_object!(Message<'a> { content, stop_reason, usage, error });

/// A block of content: text, thinking, a tool call.
#[derive(Default)]
struct Block<'a> {
    text: Str<'a>,
    thinking: Str<'a>,
}
from_object!(Block<'a> { text, thinking });

pub(super) fn read_event(answer: &mut Answer, event: &Event<'_>, sink: Sink<'_>) -> Reading {
    let read: StreamEvent<'_> = from_str(event.data)?;
    if let Some(error) = read.error {
        return Err(Fault::reported(error));
    }
    let delta = read.delta.unwrap_or_default();
    match &*read.kind.or(event.name.into()) {
        "message_start" => {
            if let Some(usage) = read.message.and_then(|message| message.usage) {
                answer.report(usage.at_start(), sink);
            }
        }
        "content_block_start" => {
            // Empty as a rule, but a gateway may put a first piece into it.
            if let Some(block) = &read.content_block {
                answer.delta(DeltaKind::Reasoning, &block.thinking, sink);
                answer.delta(DeltaKind::Text, &block.text, sink);
            }
        }
        "content_block_delta" => read_delta(answer, &delta, sink),
        "message_delta" => conclude(answer, &delta, read.usage, sink),
        "message_stop" => answer.end(),
        "error" => return Err(Fault::told(event.data)),
        "" => return Err(Fault::found(ErrorClass::MalformedBody, "an event has no `type`")),
        _ => {}
    }
    Ok(())
}

fn read_delta(answer: &mut Answer, delta: &Delta<'_>, sink: Sink<'_>) {
    // A delta has one of these, or a signature or citation, which are no content.
    answer.delta(DeltaKind::Reasoning, &delta.thinking, sink);
    answer.delta(DeltaKind::Text, &delta.text, sink);
    answer.delta(DeltaKind::ToolCall, &delta.partial_json, sink);
}

/// Reads why the model stopped, and the final counts.
fn conclude(answer: &mut Answer, delta: &Delta<'_>, usage: Option<AnthropicUsage>, sink: Sink<'_>) {
    answer.stop(&delta.stop_reason, sink);
    if let Some(usage) = usage {
        answer.report(usage.after(answer.reported()), sink);
    }
}

pub(super) fn read_whole(answer: &mut Answer, body: &str, sink: Sink<'_>) -> Reading {
    let message: Message<'_> = from_str(body)?;
    if let Some(error) = message.error {
        return Err(Fault::reported(error));
    }
    let missing = || Fault::found(ErrorClass::MalformedBody, "there is no `content`");
    for block in message.content.as_ref().ok_or_else(missing)? {
        answer.write(&block.text);
    }
    answer.stop(&message.stop_reason, sink);
    if let Some(usage) = message.usage {
        answer.report(usage.into(), sink);
    }
    Ok(())
}
