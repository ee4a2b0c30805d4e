//! Helpers for JSON Schemas of values that have a short form.

use schemars::Schema;
use serde_json::Value;

/// Adds one more form to the schema of an enum, as the first.
pub(super) fn add_alternative(schema: &mut Schema, form: Value) {
    if let Some(forms) = schema.get_mut("oneOf").and_then(Value::as_array_mut) {
        forms.insert(0, form);
    }
}
