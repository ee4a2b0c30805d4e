//! Messages: dialogues, replies, parts of `OpenTelemetry`, images; and names of secrets.

use serde_json::{Value, json};

use crate::value::{text, unpacked};

/// Texts in a text, a list of texts, or lists of `{name, contents}`.
pub(crate) fn texts(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Array(list) => {
            let lists: Result<Vec<_>, _> = list.iter().map(texts).collect();
            Ok(lists?.concat())
        }
        Value::Object(named) if named.contains_key("contents") => texts(&named["contents"]),
        _ => Err(format!("is {value}, not text")),
    }
}

/// An image as a part of a message: a data URL, a URL or a path.
pub(crate) fn image(value: &Value) -> Value {
    let url = value["contents"][0].as_str().map_or_else(|| text(value), str::to_owned);
    let absolute = url.starts_with("data:") || url.contains("://");
    let url = if absolute { url } else { format!("file:{url}") };
    json!({ "type": "image_url", "image_url": { "url": url } })
}

/// The messages of a recorded reply, in the forms that logs keep.
pub(crate) fn reply(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::String(text) if !text.is_empty() => {
            Some(vec![json!({ "role": "assistant", "content": text })])
        }
        Value::Object(mut object) => {
            if let Some(message) =
                object.get("choices").and_then(|choices| choices[0].get("message"))
            {
                return Some(vec![message.clone()]);
            }
            object.remove("role").map(|role| {
                object.insert("role".to_owned(), role);
                vec![Value::Object(object)]
            })
        }
        Value::Array(list)
            if list.iter().all(|one| one.get("role").is_some()) && !list.is_empty() =>
        {
            Some(list)
        }
        _ => None,
    }
}

/// A turn of a dialogue in any of its forms, as messages.
pub(crate) fn from_turn(turn: &Value, dropped: &mut Vec<String>) -> Result<Vec<Value>, String> {
    const USED: [&str; 6] = ["from", "value", "role", "content", "human", "assistant"];
    let turn = unpacked(turn.clone());
    let Value::Object(members) = &turn else {
        return Err(format!("a turn is {turn}, not an object"));
    };
    if !members.contains_key("role") {
        let others = members.keys().filter(|name| !USED.contains(&name.as_str()));
        dropped.extend(others.map(|name| format!("{name} (of a turn)")));
    }
    if let (Some(human), Some(assistant)) = (members.get("human"), members.get("assistant")) {
        let user = json!({ "role": "user", "content": human });
        return Ok(vec![user, json!({ "role": "assistant", "content": assistant })]);
    }
    let role = members.get("from").or_else(|| members.get("role")).map(text).unwrap_or_default();
    let content = members.get("value").or_else(|| members.get("content")).unwrap_or(&Value::Null);
    let role = match role.as_str() {
        "human" | "user" => "user",
        "gpt" | "assistant" | "chatgpt" | "bing" | "model" => "assistant",
        "system" => "system",
        "developer" => "developer",
        "function_call" => {
            let call = unpacked(content.clone());
            let arguments = call.get("arguments").map(text).unwrap_or_default();
            let function = json!({ "name": call["name"], "arguments": arguments });
            let call = json!({ "id": "call", "type": "function", "function": function });
            let message = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
            return Ok(vec![message]);
        }
        "observation" | "tool" if members.contains_key("from") => {
            return Ok(vec![json!({ "role": "tool", "tool_call_id": "call", "content": content })]);
        }
        "tool" => "tool",
        other => return Err(format!("a turn is of `{other}`; expected human, gpt or system")),
    };
    if members.contains_key("role") {
        let mut turn = turn;
        turn["role"] = role.into();
        return Ok(vec![turn]);
    }
    Ok(vec![json!({ "role": role, "content": content })])
}

/// `<image>` marks in the first user's text become the images beside the dialogue.
pub(crate) fn place_images(messages: &mut [Value], images: Vec<Value>) {
    let first = messages.iter_mut().find(|one| one["role"] == "user");
    let Some(message) = first.filter(|_| !images.is_empty()) else { return };
    let words = text(&message["content"]);
    let (mut parts, mut images) = (Vec::new(), images.into_iter());
    for (index, piece) in words.split("<image>").enumerate() {
        if index > 0 {
            parts.extend(images.next());
        }
        if !piece.trim().is_empty() {
            parts.push(json!({ "type": "text", "text": piece.trim_start_matches('\n') }));
        }
    }
    parts.extend(images);
    message["content"] = parts.into();
}

/// Messages of parts (`OpenTelemetry`) as those of OpenAI's chat.
pub(crate) fn from_parts(value: Value, dropped: &mut Vec<String>) -> Vec<Value> {
    let Value::Array(list) = value else { return Vec::new() };
    // System instructions are parts without a message around them.
    let bare = list.first().is_some_and(|one| one.get("parts").is_none());
    let list = if bare { vec![json!({ "role": "system", "parts": list })] } else { list };
    let mut messages = Vec::new();
    for message in &list {
        let (mut content, mut calls) = (Vec::new(), Vec::new());
        let parts = message["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
        if parts.is_empty() {
            dropped.push("messages without parts (their content was not recorded)".to_owned());
        }
        for part in parts {
            let kind = text(&part["type"]);
            match kind.as_str() {
                "text" => content.push(json!({ "type": "text", "text": part["content"] })),
                "uri" => content.push(image(&part["uri"])),
                "blob" => {
                    let kind = part["mime_type"].as_str().unwrap_or("image/png");
                    let data = part.get("content").or_else(|| part.get("data"));
                    let data = data.map(text).unwrap_or_default();
                    content.push(image(&json!(format!("data:{kind};base64,{data}"))));
                }
                "tool_call" => {
                    let function =
                        json!({ "name": part["name"], "arguments": text(&part["arguments"]) });
                    calls.push(
                        json!({ "id": part["id"], "type": "function", "function": function }),
                    );
                }
                "tool_call_response" => {
                    let result = part.get("response").or_else(|| part.get("result"));
                    let result = result.map(text).unwrap_or_default();
                    let id = &part["id"];
                    messages.push(json!({ "role": "tool", "tool_call_id": id, "content": result }));
                }
                _ => dropped.push(format!("parts of type {kind}")),
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

/// Whether a header, parameter or member of this name is a credential.
pub(crate) fn has_secret_name(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "authorization",
        "cookie",
        "api-key",
        "apikey",
        "access-token",
        "auth-token",
        "secret",
        "password",
        "signature",
        "x-goog-api-key",
        "session-token",
        "security-token",
    ];
    let name = name.to_ascii_lowercase().replace('_', "-");
    ["key", "token", "sig", "auth", "code"].contains(&name.as_str())
        || NAMES.iter().any(|secret| name.contains(secret))
}

/// Bytes of text, for an estimate of tokens; images count nothing.
pub(crate) fn bytes_of(value: &Value) -> usize {
    const NOT_TEXT: [&str; 4] = ["role", "type", "id", "data"];
    match value {
        Value::String(text) if text.starts_with("data:") => 0,
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(bytes_of).sum(),
        Value::Object(map) => {
            let plain = map.iter().filter(|(name, _)| !NOT_TEXT.contains(&name.as_str()));
            plain.map(|(_, value)| bytes_of(value)).sum()
        }
        _ => 0,
    }
}
