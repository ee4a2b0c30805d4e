//! Values in the forms that files have.

use chrono::{DateTime, NaiveDateTime, Utc};
use serde_json::{Map, Value, json};

/// Text as it is, everything else as JSON.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(crate) fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// Parses a text that contains JSON.
pub(crate) fn unpacked(value: Value) -> Value {
    match value.as_str() {
        Some("null") => Value::Null,
        Some(json) if json.trim_start().starts_with(['{', '[', '"']) => {
            serde_json::from_str(json).unwrap_or(value)
        }
        _ => value,
    }
}

/// Whether a value contains nothing.
pub(crate) fn is_empty(value: &Value) -> bool {
    value.is_null() || *value == "" || *value == json!([]) || *value == json!({})
}

pub(crate) fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(list) => list,
        other => vec![other],
    }
}

pub(crate) fn object(value: Value) -> Result<Map<String, Value>, String> {
    match unpacked(value) {
        Value::Object(map) => Ok(map),
        other => Err(format!("is {other:.60}, not an object")),
    }
}

/// A number, also one that is written as text.
pub(crate) fn number(value: &Value) -> Option<Value> {
    let parsed = value.as_str().map(|text| parsed(text.trim()));
    Some(parsed.unwrap_or_else(|| value.clone())).filter(Value::is_number)
}

#[expect(clippy::cast_possible_truncation, reason = "checked")]
pub(crate) fn count(value: &Value) -> Result<u64, String> {
    let number = number(value).and_then(|number| number.as_f64());
    let number = number.filter(|number| *number >= 0.0 && number.fract() == 0.0);
    number.map(|number| number as u64).ok_or_else(|| format!("is {value}, not a count"))
}

/// Milliseconds.
pub(crate) fn time(value: &Value, unit: &str) -> Result<f64, String> {
    let scale = match unit {
        "s" => 1e3,
        "ns" => 1e-6,
        _ => 1.0,
    };
    let number = number(value).and_then(|number| number.as_f64()).map(|number| number * scale);
    let time = number.or_else(|| date(&text(value)));
    time.ok_or_else(|| format!("is {value}, not a time ({unit})"))
}

/// Milliseconds since 1970.
fn date(text: &str) -> Option<f64> {
    Some(utc(text)?.timestamp_micros() as f64 / 1e3)
}

/// An RFC 3339 date with any zone or none (UTC), or one of an access log.
pub(crate) fn utc(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim().replace('T', " ");
    let forms = ["%Y-%m-%d %H:%M:%S%.f%#z", "%d/%b/%Y:%H:%M:%S %z"];
    let zoned = forms.iter().find_map(|form| DateTime::parse_from_str(&text, form).ok());
    zoned.map(|time| time.to_utc()).or_else(|| {
        Some(NaiveDateTime::parse_from_str(&text, "%Y-%m-%d %H:%M:%S%.f").ok()?.and_utc())
    })
}
