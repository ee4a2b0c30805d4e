//! The prompt of an entry.

use serde_json::Value;

/// The members that may hold a text or its parts; the first one that has a text is sent.
const TEXTS: [&str; 8] =
    ["prompt", "text", "question", "input", "content", "texts", "text_input", "value"];
/// The members that may hold messages, or a request with them.
const REQUESTS: [&str; 5] = ["messages", "conversations", "turns", "conversation", "body"];

/// The prompt of an entry, or of a part of one.
pub(super) fn prompt_of(value: &Value) -> Option<String> {
    let found = match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => Some(prompt_of_list(items)),
        _ if speaker(value).is_some_and(|who| !matches!(who, "user" | "human")) => None,
        _ => TEXTS.iter().chain(&REQUESTS).find_map(|holder| {
            let held = value.get(holder).filter(|held| *holder != "body" || held.is_object())?;
            prompt_of(held)
        }),
    };
    found.filter(|text| !text.trim().is_empty())
}

/// The texts of the parts of a content, or the first message of the user.
fn prompt_of_list(items: &[Value]) -> String {
    // Some datasets have each message as JSON text.
    let decoded = items.iter().map(|item| serde_json::from_str(item.as_str()?).ok());
    let decoded: Option<Vec<Value>> = decoded.map(|item| item.filter(Value::is_object)).collect();
    let items = decoded.as_deref().unwrap_or(items);
    let is_dialogue = items.iter().any(|item| speaker(item).is_some());
    let is_content = !is_dialogue && items.iter().any(|item| item.get("type").is_some());
    let mut texts = Vec::new();
    for item in items {
        if !is_content && !texts.is_empty() {
            break;
        }
        // Messages without an author are the user's; results of tools have a type.
        let may_be_sent = if is_content {
            item.get("text").is_some()
        } else {
            speaker(item).is_some() || item.get("type").is_none()
        };
        texts.extend(Some(item).filter(|_| may_be_sent).and_then(prompt_of));
    }
    texts.join("\n")
}

/// The author of a message.
pub(super) fn speaker(message: &Value) -> Option<&str> {
    message.get("role").or_else(|| message.get("from"))?.as_str()
}
