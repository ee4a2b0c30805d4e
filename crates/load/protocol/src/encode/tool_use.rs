//! Messages with tool calls and their results.
//!
//! A provider refuses a dialogue in which a call has no result, or a result no call. So each
//! message with calls is followed by one with their results.

use serde::de::IgnoredAny;

use super::json_template::{JsonTemplate, ToolFormat};
use super::json_writer::push_string;
use super::{push as raw, push_message, push_text, role};
use crate::turn::{Message, ToolCall};

/// Appends a message with tool calls or results, and a comma after it and between its items.
pub(super) fn push(out: &mut Vec<u8>, template: &JsonTemplate, message: &Message) {
    match template.tools {
        ToolFormat::Messages => push_messages(out, template, message),
        ToolFormat::Items => push_items(out, template, message),
        ToolFormat::Blocks => push_blocks(out, message),
    }
}

/// `OpenAI`'s chat completions.
fn push_messages(out: &mut Vec<u8>, template: &JsonTemplate, message: &Message) {
    for result in &message.tool_results {
        member(out, r#"{"role":"tool","tool_call_id":"#, &result.call_id);
        member(out, r#","content":"#, &result.text);
        raw(out, "},");
    }
    if message.tool_calls.is_empty() {
        return push_text_message(out, template, message);
    }
    raw(out, template.message);
    raw(out, role(message.role));
    if message.text.is_empty() {
        raw(out, r#"","content":null"#);
    } else {
        raw(out, r#"","content":""#);
        push_text(out, &message.text);
        out.push(b'"');
    }
    raw(out, r#","tool_calls":["#);
    for (index, call) in message.tool_calls.iter().enumerate() {
        raw(out, if index > 0 { r#",{"id":"# } else { r#"{"id":"# });
        push_string(out, &call.id);
        member(out, r#","type":"function","function":{"name":"#, &call.name);
        member(out, r#","arguments":"#, arguments(call));
        raw(out, "}}");
    }
    raw(out, "]},");
}

/// `OpenAI`'s responses.
fn push_items(out: &mut Vec<u8>, template: &JsonTemplate, message: &Message) {
    for result in &message.tool_results {
        member(out, r#"{"type":"function_call_output","call_id":"#, &result.call_id);
        member(out, r#","output":"#, &result.text);
        raw(out, "},");
    }
    push_text_message(out, template, message);
    for call in &message.tool_calls {
        member(out, r#"{"type":"function_call","call_id":"#, &call.id);
        member(out, r#","name":"#, &call.name);
        member(out, r#","arguments":"#, arguments(call));
        raw(out, "},");
    }
}

/// Anthropic's messages. The results and the user's text are one message: roles alternate.
fn push_blocks(out: &mut Vec<u8>, message: &Message) {
    raw(out, r#"{"role":""#);
    raw(out, role(message.role));
    raw(out, r#"","content":["#);
    for result in &message.tool_results {
        member(out, r#"{"type":"tool_result","tool_use_id":"#, &result.call_id);
        member(out, r#","content":"#, &result.text);
        raw(out, "},");
    }
    if !message.text.is_empty() {
        raw(out, r#"{"type":"text","text":""#);
        push_text(out, &message.text);
        raw(out, r#""},"#);
    }
    for call in &message.tool_calls {
        member(out, r#"{"type":"tool_use","id":"#, &call.id);
        member(out, r#","name":"#, &call.name);
        raw(out, r#","input":"#);
        raw(out, arguments(call));
        raw(out, "},");
    }
    // There is at least one block.
    out.pop();
    raw(out, "]},");
}

fn push_text_message(out: &mut Vec<u8>, template: &JsonTemplate, message: &Message) {
    if !message.text.is_empty() {
        push_message(out, template, role(message.role), &message.text);
    }
}

fn member(out: &mut Vec<u8>, start: &str, text: &str) {
    raw(out, start);
    push_string(out, text);
}

/// The arguments, if they are a JSON object, as providers require; else an empty one. A model may
/// have stopped in the middle of them.
fn arguments(call: &ToolCall) -> &str {
    let text = call.arguments.trim();
    let is_object = text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok();
    if is_object { text } else { "{}" }
}
