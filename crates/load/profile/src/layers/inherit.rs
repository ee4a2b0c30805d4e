//! Completes scenarios with the profile's top-level defaults.

use serde_json::{Map, Value};

use crate::schema;

/// The values with every scenario complete: missing keys are taken from the top level, and a
/// profile without scenarios gets one. Keys without a value are removed. The profile's `model`
/// applies to targets without their own; copied into a scenario, it would override theirs.
pub(super) fn inherit(values: &Value) -> Value {
    let mut root = values.clone();
    drop_nulls(&mut root);
    let defaults: Map<_, _> = schema::inherited()
        .filter(|key| *key != "model")
        .filter_map(|key| Some((key.to_owned(), root.get(key)?.clone())))
        .collect();
    let written = values.get("scenarios").and_then(Value::as_array).cloned().unwrap_or_default();
    let scenarios = if written.is_empty() {
        vec![Value::Object(defaults)]
    } else {
        written.into_iter().map(|scenario| overlay(&defaults, scenario)).collect()
    };
    if let Value::Object(map) = &mut root {
        map.insert("scenarios".to_owned(), Value::Array(scenarios));
    }
    root
}

fn overlay(defaults: &Map<String, Value>, scenario: Value) -> Value {
    let Value::Object(own) = scenario else { return Value::Object(defaults.clone()) };
    let mut all = defaults.clone();
    all.extend(own);
    let mut all = Value::Object(all);
    drop_nulls(&mut all);
    all
}

/// Removes keys without a value. Inside `parameters` and `arguments`, which are sent to the target,
/// `null` stays.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, member| !member.is_null());
            map.iter_mut()
                .filter(|(key, _)| !matches!(key.as_str(), "parameters" | "arguments"))
                .for_each(|(_, member)| drop_nulls(member));
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
