//! Values in the forms that files have.

use serde_json::Value;

/// Text stays, everything else is written as JSON.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Text that holds JSON is read.
pub(crate) fn unpacked(value: Value) -> Value {
    let json = value.as_str().filter(|text| text.trim_start().starts_with(['{', '[', '"']));
    let json = json.and_then(|text| serde_json::from_str(text).ok());
    match (json, &value) {
        (Some(inner), _) => inner,
        (None, Value::String(text)) if text == "null" => Value::Null,
        _ => value,
    }
}

/// Values that say nothing.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}
