//! JSON documents of requests and answers, and their differences.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Members whose texts are appended in a stream; others are replaced.
const APPENDED: &str =
    "content reasoning_content arguments partial_json text thinking signature refusal";
/// Most differences in a text, and most characters of a value.
const MOST_NAMED: usize = 3;
const MOST_CHARS: usize = 40;

/// The document of a body: its JSON, or the joined events of a stream, in which the same member of
/// all events is one member.
pub(super) fn document(body: &[u8]) -> Value {
    if let Ok(document) = serde_json::from_slice(body) {
        return document;
    }
    let mut whole = json!({});
    for data in String::from_utf8_lossy(body).lines().filter_map(|line| line.strip_prefix("data:"))
    {
        let event: Value = serde_json::from_str(data).unwrap_or_default();
        if data.trim() == "[DONE]" {
            whole["done"] = Value::Bool(true);
        } else if event.get("index").is_some() {
            join(&mut whole, json!({"blocks": [event]}), "");
        } else {
            join(&mut whole, event, "");
        }
    }
    whole
}

/// Adds a part of a member named `name`.
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
                whole.resize(whole.len().max(index + 1), Value::Null);
                join(&mut whole[index], value, "");
            }
        }
        (Value::String(whole), Value::String(part)) if APPENDED.split(' ').any(|n| n == name) => {
            whole.push_str(&part);
        }
        (whole, part) => *whole = part,
    }
}

/// A document of headers.
pub(super) fn headers<'h>(headers: impl IntoIterator<Item = (&'h String, &'h String)>) -> Value {
    headers.into_iter().map(|(name, value)| (name.clone(), Value::from(value.clone()))).collect()
}

/// The differences below some pointers, if any. `null` is the same as a missing member.
pub(super) fn differences(sent: &Value, got: &Value, pointers: &[String]) -> Option<String> {
    let mut leaves = BTreeMap::new();
    for pointer in pointers {
        for (side, document) in [sent, got].into_iter().enumerate() {
            add_leaves(
                document.pointer(pointer).unwrap_or(&Value::Null),
                pointer,
                side,
                &mut leaves,
            );
        }
    }
    let differences = leaves.into_iter().filter_map(|(name, [old, new])| match (old, new) {
        (Some(_), None) => Some(format!("lost {name}")),
        (None, Some(_)) => Some(format!("added {name}")),
        (Some(old), Some(new)) if is_same(old, new) => None,
        (old, new) => Some(format!("changed {name} from {} to {}", short(old), short(new))),
    });
    let all: Vec<_> = differences.collect();
    let more = all.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!all.is_empty()).then(|| all[..all.len().min(MOST_NAMED)].join(", ") + &more)
}

/// All values except objects and lists with members, by pointer and side.
fn add_leaves<'v>(
    value: &'v Value,
    pointer: &str,
    side: usize,
    leaves: &mut BTreeMap<String, [Option<&'v Value>; 2]>,
) {
    match value {
        Value::Null => {}
        Value::Object(members) if !members.is_empty() => {
            for (key, value) in members {
                add_leaves(value, &format!("{pointer}/{key}"), side, leaves);
            }
        }
        Value::Array(values) if !values.is_empty() => {
            for (index, value) in values.iter().enumerate() {
                add_leaves(value, &format!("{pointer}/{index}"), side, leaves);
            }
        }
        _ => leaves.entry(pointer.to_owned()).or_default()[side] = Some(value),
    }
}

/// Whether two values are the same. Spaces have no meaning in a text that is a JSON object, such as
/// the arguments of a tool call.
fn is_same(old: &Value, new: &Value) -> bool {
    old == new || object_in(old).is_some_and(|old| object_in(new) == Some(old))
}

fn object_in(text: &Value) -> Option<Map<String, Value>> {
    serde_json::from_str(text.as_str()?).ok()
}

fn short(value: Option<&Value>) -> String {
    let text = value.map_or_else(String::new, Value::to_string);
    match text.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}
