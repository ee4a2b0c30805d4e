//! JSON documents of requests and answers, and their differences.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Members whose texts are appended in a stream; others are replaced.
const APPENDED: [&str; 9] = [
    "content",
    "reasoning_content",
    "reasoning",
    "arguments",
    "partial_json",
    "text",
    "thinking",
    "signature",
    "refusal",
];
/// Most differences in a text, and most characters of a value.
const MOST_NAMED: usize = 3;
const MOST_CHARS: usize = 40;

/// The document of a body: its JSON, or the joined events of a stream.
pub(super) fn document(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| joined(&String::from_utf8_lossy(body)))
}

/// Joins the events of a stream: the same member of all events is one member.
pub(super) fn joined(text: &str) -> Value {
    let mut whole = Value::Null;
    for data in text.lines().filter_map(|line| line.strip_prefix("data:")) {
        let event = match serde_json::from_str::<Value>(data) {
            // A block of a message.
            Ok(event) if event.get("index").is_some() => json!({"blocks": [event]}),
            Ok(event) => event,
            Err(_) if data.trim() == "[DONE]" => json!({"done": true}),
            Err(_) => continue,
        };
        join(&mut whole, event, "");
    }
    whole
}

fn join(whole: &mut Value, part: Value, name: &str) {
    match (whole, part) {
        (_, Value::Null) => {}
        (Value::Object(whole), Value::Object(part)) => {
            for (key, value) in part {
                join(whole.entry(key.clone()).or_insert(Value::Null), value, &key);
            }
        }
        (Value::Array(whole), Value::Array(part)) => {
            for (position, value) in part.into_iter().enumerate() {
                let index = value["index"].as_u64().and_then(|index| usize::try_from(index).ok());
                let index = index.unwrap_or(position).min(whole.len());
                if index == whole.len() {
                    whole.push(Value::Null);
                }
                join(&mut whole[index], value, "");
            }
        }
        (Value::String(whole), Value::String(part)) if APPENDED.contains(&name) => {
            whole.push_str(&part);
        }
        (whole @ Value::Null, part @ Value::Array(_)) => {
            *whole = json!([]);
            join(whole, part, name);
        }
        (whole, part) => *whole = part,
    }
}

/// The differences below some pointers; empty if there are none. `null` is the same as a missing
/// member.
pub(super) fn differences(sent: &Value, got: &Value, pointers: &[String]) -> Vec<String> {
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    for pointer in pointers {
        for (document, leaves) in [(sent, &mut before), (got, &mut after)] {
            if let Some(value) = document.pointer(pointer) {
                add_leaves(value, pointer, leaves);
            }
        }
    }
    let lost = before.keys().filter(|name| !after.contains_key(*name));
    let added = after.keys().filter(|name| !before.contains_key(*name));
    let changed = before.iter().filter_map(|(name, old)| {
        let new = after.get(name).filter(|new| *new != old)?;
        Some(format!("{name} ({} became {})", short(old), short(new)))
    });
    let lists = [
        ("lost", lost.cloned().collect::<Vec<_>>()),
        ("added", added.cloned().collect()),
        ("changed", changed.collect()),
    ];
    let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
    lists.map(|(word, names)| format!("{word} {}", listed(&names))).collect()
}

/// All values except objects and lists with members, by pointer.
fn add_leaves<'v>(value: &'v Value, pointer: &str, leaves: &mut BTreeMap<String, &'v Value>) {
    match value {
        Value::Null => {}
        Value::Object(members) if !members.is_empty() => {
            for (key, value) in members {
                add_leaves(value, &format!("{pointer}/{key}"), leaves);
            }
        }
        Value::Array(values) if !values.is_empty() => {
            for (index, value) in values.iter().enumerate() {
                add_leaves(value, &format!("{pointer}/{index}"), leaves);
            }
        }
        _ => {
            leaves.insert(pointer.to_owned(), value);
        }
    }
}

/// The first names, and the number of the others.
pub(super) fn listed(names: &[String]) -> String {
    let shown = names[..names.len().min(MOST_NAMED)].join(", ");
    match names.len().saturating_sub(MOST_NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= MOST_CHARS {
        return text;
    }
    let start: String = text.chars().take(MOST_CHARS).collect();
    format!("{start}... of {} bytes", text.len())
}
