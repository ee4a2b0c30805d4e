//! Reads the members of a JSON object without copying values that are passed on.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Reads an object. `serde` alone would also read an array, by the positions of its elements.
///
/// # Errors
/// The problem with the text; duplicate members are errors, too.
pub fn read_object<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, String> {
    if !is_object(json) {
        return Err("it is not an object".to_owned());
    }
    serde_json::from_str(json).map_err(|error| error.to_string())
}

/// Whether a JSON value is an object, by its first character.
pub(crate) fn is_object(json: &str) -> bool {
    json.trim_start().starts_with('{')
}

/// A member that is present, even as `null`; for `deserialize_with`.
pub(crate) fn present<'a, 'de: 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// A JSON value as text; a text always has one.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}
