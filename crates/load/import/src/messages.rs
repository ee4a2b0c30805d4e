//! Messages of dialogues, replies, spans and images, in the form of OpenAI's chat API.

use serde_json::{Value, json};

use crate::value::{text, unpacked};

/// Texts of a text, a list of texts, or lists of `{name, contents}`.
pub(crate) fn texts(value: Value) -> Result<Vec<Value>, String> {
    match value {
        Value::String(_) => Ok(vec![value]),
        Value::Array(list) => {
            Ok(list.into_iter().map(texts).collect::<Result<Vec<_>, _>>()?.concat())
        }
        Value::Object(mut named) if named.contains_key("contents") => {
            texts(named["contents"].take())
        }
        other => Err(format!("is {other:.60}, not text")),
    }
}

/// An image as a part of a message: a data URL, a URL or a path.
pub(crate) fn image(value: &Value) -> Value {
    let url = value["contents"][0].as_str().map_or_else(|| text(value), str::to_owned);
    let absolute = url.starts_with("data:") || url.contains("://");
    let url = if absolute { url } else { format!("file:{url}") };
    json!({ "type": "image_url", "image_url": { "url": url } })
}

/// A part of a message, in which an image may be a member of its own.
pub(crate) fn part(part: Value) -> Value {
    part.get("image").map(image).unwrap_or(part)
}

fn is_message(value: &Value) -> bool {
    value.get("role").is_some()
}

pub(crate) fn is_question(message: &Value) -> bool {
    message["role"] == "user"
        || message["role"] == "tool"
        || message["type"].as_str().is_some_and(|kind| kind.ends_with("_output"))
}

/// The messages of a recorded reply: a text, a response, a message, or a list of messages.
pub(crate) fn reply(value: Value) -> Option<Value> {
    match value {
        Value::String(text) => Some(json!([{ "role": "assistant", "content": text }])),
        Value::Object(_) if is_message(&value) => Some(json!([value])),
        Value::Object(_) => {
            let mut message = value["choices"][0].get("message")?.clone();
            // Clients do not send back the members that they got without a value.
            message.as_object_mut()?.retain(|name, value| name == "content" || !value.is_null());
            Some(json!([message]))
        }
        Value::Array(list) if list.iter().all(is_message) => Some(list.into()),
        _ => None,
    }
}

/// The messages of a turn of a dialogue. The members in `dropped` have no place in them.
pub(crate) fn from_turn(turn: Value, dropped: &mut Vec<String>) -> Result<Vec<Value>, String> {
    const USED: [&str; 4] = ["from", "value", "role", "content"];
    let mut turn = unpacked(turn);
    if let (Some(human), Some(assistant)) = (turn.get("human"), turn.get("assistant")) {
        return Ok(vec![
            json!({ "role": "user", "content": human }),
            json!({ "role": "assistant", "content": assistant }),
        ]);
    }
    let Some(members) = turn.as_object() else {
        return Err(format!("a turn is {turn:.60}, not an object"));
    };
    let is_message = members.contains_key("role");
    let others = members.keys().filter(|name| !is_message && !USED.contains(&&***name));
    dropped.extend(others.map(|name| format!("{name} (of a turn)")));
    let name = if is_message { "role" } else { "from" };
    let role = match turn[name].as_str().unwrap_or_default() {
        "human" | "user" => "user",
        "gpt" | "assistant" | "chatgpt" | "bing" | "model" => "assistant",
        role @ ("system" | "developer" | "tool") => role,
        "function_call" => {
            let call = unpacked(turn["value"].take());
            let function = json!({ "name": call["name"], "arguments": text(&call["arguments"]) });
            let call = json!({ "id": "call", "type": "function", "function": function });
            return Ok(vec![json!({ "role": "assistant", "content": null, "tool_calls": [call] })]);
        }
        "observation" => "tool",
        other => return Err(format!("a turn is of `{other}`; expected human, gpt or system")),
    };
    let mut message = json!({ "role": role, "content": turn["value"] });
    if is_message {
        turn["role"] = role.into();
        message = turn;
    } else if role == "tool" {
        message["tool_call_id"] = "call".into();
    }
    Ok(vec![message])
}

/// Puts images in place of the `<image>` marks of the first user's text.
pub(crate) fn place_images(messages: &mut [Value], images: Vec<Value>) {
    let first = messages.iter_mut().find(|one| one["role"] == "user");
    let Some(message) = first.filter(|_| !images.is_empty()) else { return };
    let words = text(&message["content"]);
    let (mut parts, mut images) = (Vec::new(), images.into_iter());
    for (index, piece) in words.split("<image>").enumerate() {
        parts.extend(images.by_ref().take(usize::from(index > 0)));
        let piece = piece.trim_start_matches('\n');
        if !piece.trim().is_empty() {
            parts.push(json!({ "type": "text", "text": piece }));
        }
    }
    message["content"] = parts.into_iter().chain(images).collect();
}

/// Splits a dialogue into prompts and replies. Messages without a user's or a tool's turn are left
/// out.
pub(crate) fn exchanges(messages: Vec<Value>) -> Vec<(Vec<Value>, Option<Value>)> {
    let (mut all, mut open) = (Vec::new(), Vec::new());
    for message in messages {
        if message["role"] == "assistant" && open.iter().any(is_question) {
            all.push((std::mem::take(&mut open), Some(message)));
        } else {
            open.push(message);
        }
    }
    if open.iter().any(is_question) {
        all.push((open, None));
    }
    all
}

/// Messages that consist of parts (`OpenTelemetry`).
pub(crate) fn from_parts(value: Value, dropped: &mut Vec<String>) -> Vec<Value> {
    let Value::Array(list) = value else { return Vec::new() };
    // System instructions are parts without a message around them.
    let bare =
        list.first().is_some_and(|one| one.get("parts").or_else(|| one.get("role")).is_none());
    let list = if bare { vec![json!({ "role": "system", "parts": list })] } else { list };
    let mut messages = Vec::new();
    for message in list {
        // Some writers record messages of OpenAI's API.
        if message.get("parts").is_none() && message.get("content").is_some() {
            messages.push(message);
            continue;
        }
        let (mut content, mut calls) = (Vec::new(), Vec::new());
        let parts = message["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
        if parts.is_empty() {
            dropped.push("messages without parts (their content was not recorded)".to_owned());
        }
        for part in parts {
            match text(&part["type"]).as_str() {
                "text" => content.push(json!({ "type": "text", "text": part["content"] })),
                "uri" => content.push(image(&part["uri"])),
                "blob" => {
                    let kind = part["mime_type"].as_str().unwrap_or("image/png");
                    let data = text(part.get("content").unwrap_or_else(|| &part["data"]));
                    content.push(image(&format!("data:{kind};base64,{data}").into()));
                }
                "tool_call" => calls.push(json!({
                    "id": part["id"],
                    "type": "function",
                    "function": { "name": part["name"], "arguments": text(&part["arguments"]) },
                })),
                "tool_call_response" => messages.push(json!({
                    "role": "tool",
                    "tool_call_id": part["id"],
                    "content": text(part.get("response").unwrap_or_else(|| &part["result"])),
                })),
                kind => dropped.push(format!("parts of type {kind}")),
            }
        }
        let content = match content.as_slice() {
            [] if calls.is_empty() => continue,
            [] => Value::Null,
            [one] if one["type"] == "text" => one["text"].clone(),
            _ => content.into(),
        };
        let mut whole = json!({ "role": message["role"], "content": content });
        if !calls.is_empty() {
            whole["tool_calls"] = calls.into();
        }
        messages.push(whole);
    }
    messages
}
