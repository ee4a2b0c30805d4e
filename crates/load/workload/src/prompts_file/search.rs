//! The prompt of an entry, and the members of the entry that are no part of it.

use plimsoll_protocol::Dialect;
use serde_json::{Value, json};

/// The members that may hold a text or its parts; the first one that has a text is sent.
const TEXTS: [&str; 8] =
    ["prompt", "text", "question", "input", "content", "texts", "text_input", "value"];
/// The members that may hold messages, or a request with them.
const REQUESTS: [&str; 5] = ["messages", "conversations", "turns", "conversation", "body"];

/// The prompt of an entry, or of a part of one, which is in the member `holder`. Adds every other
/// member to `unsent`.
pub(super) fn prompt_of(value: &Value, holder: &str, unsent: &mut Vec<String>) -> Option<String> {
    let before = unsent.len();
    let found = match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => Some(prompt_of_list(items, holder, unsent)),
        _ if speaker(value).is_some_and(|who| !matches!(who, "user" | "human")) => None,
        _ => prompt_of_object(value, unsent),
    };
    let found = found.filter(|text| !text.trim().is_empty());
    if found.is_none() {
        unsent.truncate(before);
    }
    found
}

fn prompt_of_object(value: &Value, unsent: &mut Vec<String>) -> Option<String> {
    let (holder, prompt) = TEXTS.iter().chain(&REQUESTS).find_map(|holder| {
        let held = value.get(holder).filter(|held| *holder != "body" || held.is_object())?;
        Some((*holder, prompt_of(held, holder, unsent)?))
    })?;
    for (name, other) in value.as_object()? {
        let is_kind = match &**name {
            "role" | "from" => true,
            "type" => matches!(other.as_str(), Some("text" | "input_text" | "message")),
            _ => false,
        };
        if name != holder && !is_kind && !is_empty(other) {
            unsent.push(name.clone());
        }
    }
    Some(prompt)
}

/// The texts of the parts of a content, or the first message of the user.
fn prompt_of_list(items: &[Value], holder: &str, unsent: &mut Vec<String>) -> String {
    // Some datasets have each message as JSON text.
    let decoded = items.iter().map(|item| serde_json::from_str(item.as_str()?).ok());
    let decoded: Option<Vec<Value>> = decoded.map(|item| item.filter(Value::is_object)).collect();
    let items = decoded.as_deref().unwrap_or(items);
    let is_dialogue = items.iter().any(|item| speaker(item).is_some());
    let is_content = !is_dialogue && items.iter().any(|item| item.get("type").is_some());
    let mut texts = Vec::new();
    for item in items {
        if !is_content && !texts.is_empty() {
            let user_turn = if is_dialogue { " user turn" } else { "" };
            unsent.push(format!("{holder} after the first{user_turn}"));
            continue;
        }
        // Messages without an author are the user's; results of tools have a type.
        let may_be_sent = if is_content {
            item.get("text").is_some()
        } else {
            speaker(item).is_some() || item.get("type").is_none()
        };
        match Some(item).filter(|_| may_be_sent).and_then(|item| prompt_of(item, holder, unsent)) {
            Some(text) => texts.push(text),
            None => unsent.push(kind(item).unwrap_or(holder).to_owned()),
        }
    }
    texts.join("\n")
}

fn is_empty(value: &Value) -> bool {
    [json!(null), json!(""), json!([]), json!({})].contains(value)
}

/// The author of a message.
pub(super) fn speaker(message: &Value) -> Option<&str> {
    message.get("role").or_else(|| message.get("from"))?.as_str()
}

/// The author of a message, or the type of a part.
fn kind(item: &Value) -> Option<&str> {
    speaker(item).or_else(|| item.get("type")?.as_str())
}

/// Whether an entry may be sent with the protocol. Of a batch these are the requests of its kind: a
/// text for a model is not sent as an embedding, nor the other way round.
pub(super) fn is_for(protocol: Dialect, entry: &Value) -> bool {
    let Some((url, _)) = entry.get("url").and_then(Value::as_str).zip(entry.get("body")) else {
        return true;
    };
    let path = url.split('?').next().unwrap_or_default();
    let mut known = Dialect::ALL.into_iter();
    let asked = known.find(|known| known.endpoint().is_some_and(|end| path.ends_with(end)));
    let embeds = Dialect::OpenaiEmbeddings;
    asked.is_some_and(|asked| (asked == embeds) == (protocol == embeds))
}
