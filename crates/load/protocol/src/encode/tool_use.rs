//! Messages with tool calls and their results.
//!
//! Providers reject a dialogue with a call without a result, or a result without a call, so each
//! message with calls is followed by one with their results.

use super::{JsonTemplate, ToolFormat, push as raw, push_message, push_text, role};
use crate::json_escape::push_string;
use crate::turn::Message;
use serde_json::{Map, Value};

/// Appends a message with tool calls or results, with commas after it and between its items.
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
    if message.tool_calls.is_empty() && message.kept.is_none() {
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
    let kept = message.kept.as_deref();
    for (index, call) in message.tool_calls.iter().enumerate() {
        raw(out, if index > 0 { r#",{"id":"# } else { r#","tool_calls":[{"id":"# });
        push_string(out, &call.id);
        member(out, r#","type":"function","function":{"name":"#, &call.name);
        member(out, r#","arguments":"#, call.arguments_object());
        raw(out, "}");
        push_members(out, kept.and_then(|kept| kept.calls.get(&index)));
        raw(out, "}");
    }
    raw(out, if message.tool_calls.is_empty() { "" } else { "]" });
    push_members(out, kept.map(|kept| &kept.members));
    raw(out, "},");
}

fn push_members(out: &mut Vec<u8>, members: Option<&Map<String, Value>>) {
    for (name, value) in members.into_iter().flatten() {
        raw(out, ",");
        push_string(out, name);
        raw(out, &format!(":{value}"));
    }
}

/// Blocks or items in front of the text, with commas after them.
fn push_kept_items(out: &mut Vec<u8>, message: &Message) {
    for item in message.kept.iter().flat_map(|kept| &kept.items) {
        raw(out, &format!("{item},"));
    }
}

/// `OpenAI`'s responses.
fn push_items(out: &mut Vec<u8>, template: &JsonTemplate, message: &Message) {
    for result in &message.tool_results {
        member(out, r#"{"type":"function_call_output","call_id":"#, &result.call_id);
        member(out, r#","output":"#, &result.text);
        raw(out, "},");
    }
    push_kept_items(out, message);
    push_text_message(out, template, message);
    for call in &message.tool_calls {
        member(out, r#"{"type":"function_call","call_id":"#, &call.id);
        member(out, r#","name":"#, &call.name);
        member(out, r#","arguments":"#, call.arguments_object());
        raw(out, "},");
    }
}

/// Anthropic's messages. The results and the user's text share one message, because roles
/// alternate.
fn push_blocks(out: &mut Vec<u8>, message: &Message) {
    raw(out, r#"{"role":""#);
    raw(out, role(message.role));
    raw(out, r#"","content":["#);
    for result in &message.tool_results {
        member(out, r#"{"type":"tool_result","tool_use_id":"#, &result.call_id);
        member(out, r#","content":"#, &result.text);
        raw(out, "},");
    }
    push_kept_items(out, message);
    if !message.text.is_empty() {
        raw(out, r#"{"type":"text","text":""#);
        push_text(out, &message.text);
        raw(out, r#""},"#);
    }
    for call in &message.tool_calls {
        member(out, r#"{"type":"tool_use","id":"#, &call.id);
        member(out, r#","name":"#, &call.name);
        raw(out, r#","input":"#);
        raw(out, call.arguments_object());
        raw(out, "},");
    }
    // Removes the comma after the last block; there is at least one block.
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
