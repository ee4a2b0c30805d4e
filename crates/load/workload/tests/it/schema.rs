//! The JSON Schema accepts what the deserialiser accepts.

use plimsoll_workload::{DurationSpec, SystemPrompt, TraceSpec};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn agree<T: JsonSchema + DeserializeOwned>(good: &[Value], bad: &[Value]) {
    let schema = serde_json::to_value(schemars::schema_for!(T)).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for value in good {
        assert!(validator.is_valid(value), "schema: {value}");
        assert!(serde_json::from_value::<T>(value.clone()).is_ok(), "reader: {value}");
    }
    for value in bad {
        assert!(!validator.is_valid(value), "schema: {value}");
        assert!(serde_json::from_value::<T>(value.clone()).is_err(), "reader: {value}");
    }
}

#[test]
fn durations_are_texts_or_distributions() {
    agree::<DurationSpec>(
        &[
            json!("2s"),
            json!({"fixed": "2s"}),
            json!({"uniform": {"min": "1s", "max": "2s"}}),
            json!({"lognormal": {"median": "1s", "p95": "4s"}}),
        ],
        &[json!(2), json!({"uniform": {"min": "1s"}}), json!({"gamma": {}}), json!(null)],
    );
}

#[test]
fn system_prompts_are_texts_or_lengths() {
    agree::<SystemPrompt>(
        &[json!("Be kind."), json!({"approx_tokens": 2000})],
        &[
            json!(2000),
            json!({"approx_tokens": "many"}),
            json!({"tokens": 5}),
            json!({"text": "x"}),
        ],
    );
}

#[test]
fn traces_have_a_file() {
    agree::<TraceSpec>(
        &[
            json!({"file": "a.csv", "format": "azure"}),
            json!({"file": "a", "format": "mooncake", "time_scale": 10.0, "from": "1m", "to": "2m"}),
        ],
        &[json!({"format": "azure"}), json!({"file": "a", "format": 5})],
    );
}
