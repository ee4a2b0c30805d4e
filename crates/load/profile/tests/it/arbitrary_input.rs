//! Any input is parsed or rejected without a panic, and the schema check agrees with an independent
//! validator.

use std::fmt::Write as _;

use crate::support::{base_with, resolve};
use plimsoll_profile::{Overrides, builtin, builtin_names, parse, schema};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// Writes no files for failures, because the seeds are in the output.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) }
}

/// A profile with every kind of value.
fn sample() -> Value {
    json!({
        "name": "n", "target": "http://h", "key": "k", "model": "m", "seed": 3, "stages": "1:1s",
        "arrivals": "poisson", "headers": {"a": "b"}, "timeout": "1s", "max_in_flight": 4,
        "overflow": "drop", "max_body": "1MiB", "workers": 2, "cache_mode": "allow",
        "tls": {"ca_file": "f", "insecure": true}, "tokenizer": "t",
        "trace": {"file": "f", "format": "azure", "time_scale": 2.0, "from": "1s", "to": "2s"},
        "thresholds": {"ttft": ["p(95)<1s"]}, "turns": 2, "stream": true, "system": "s",
        "content": {"mode": "pool", "prompts": ["p"]}, "max_tokens": 5, "think_time": "1s",
        "prefix_pool": {"count": 1, "approx_tokens": 2}, "parameters": {"x": [1, {"y": 2}]},
        "http": {"method": "GET", "path": "/", "headers": {"a": "b"}, "body": "b"},
        "scenarios": [
            {"name": "a", "weight": 1.5, "protocol": "http"},
            {"content": {"mode": "scripted", "script": ["a", "b"]}, "system": {"approx_tokens": 5},
             "think_time": {"uniform": {"min": "1s", "max": "2s"}}},
            {"content": {"mode": "sized", "approx_input_tokens": 5},
             "think_time": {"lognormal": {"median": "1s", "p95": "2s"}}},
        ],
    })
}

/// JSON pointers of all values inside `value`.
fn pointers(value: &Value, here: &str, all: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, member)| (key.clone(), member)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(i, item)| (i.to_string(), item)).collect()
        }
        _ => Vec::new(),
    };
    for (step, child) in children {
        let pointer = format!("{here}/{step}");
        pointers(child, &pointer, all);
        all.push(pointer);
    }
}

fn all_pointers() -> Vec<String> {
    let mut all = Vec::new();
    pointers(&sample(), "", &mut all);
    all
}

/// Values of every kind, in and out of the usual ranges.
fn replacements() -> Vec<Value> {
    vec![
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(0.25),
        json!(u64::MAX),
        json!("x"),
        json!("5s"),
        json!("http"),
        json!(""),
        json!([]),
        json!(["a"]),
        json!({}),
        json!({"mode": "pool"}),
        json!({"mode": "sized", "approx_input_tokens": 1, "more": 2}),
        json!({"uniform": 3}),
        json!({"fixed": "1s", "exponential": {"mean": "1s"}}),
    ]
}

fn changed() -> impl Strategy<Value = Value> {
    let change = (select(all_pointers()), select(replacements()), any::<bool>());
    proptest::collection::vec(change, 1..3).prop_map(|changes| {
        let mut value = sample();
        for (pointer, replacement, add) in changes {
            match value.pointer_mut(&pointer) {
                Some(Value::Object(map)) if add => {
                    drop(map.insert("added".to_owned(), replacement));
                }
                Some(old) => *old = replacement,
                None => {}
            }
        }
        value
    })
}

/// Converts single thresholds to lists, as the schema requires.
fn with_lists_of_bounds(value: &Value) -> Value {
    let mut value = value.clone();
    let bounds = value.get_mut("thresholds").and_then(Value::as_object_mut);
    for bound in bounds.into_iter().flat_map(|bounds| bounds.values_mut()) {
        if bound.is_string() {
            *bound = json!([bound]);
        }
    }
    value
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(parse(&bytes).err().is_none_or(|problems| !problems.is_empty()));
    }

    #[test]
    fn any_text_like_yaml_is_parsed_or_refused(text in "([a-z]{1,4}: ?[&*!{\\[\\]}\"'|>,@$ a-z0-9.-]{0,8}\n {0,3}){0,8}") {
        prop_assert!(parse(text.as_bytes()).err().is_none_or(|problems| !problems.is_empty()));
    }

    #[test]
    fn a_profile_cut_anywhere_is_parsed_or_refused(
        name in select(builtin_names().collect::<Vec<_>>()),
        at in any::<proptest::sample::Index>(),
    ) {
        let text = builtin(name).unwrap().as_bytes();
        let result = parse(&text[..at.index(text.len())]);
        prop_assert!(result.err().is_none_or(|problems| !problems.is_empty()));
    }

    #[test]
    fn only_formats_are_refused_beyond_what_the_validator_refuses(value in changed()) {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        let result = parse(value.to_string().as_bytes());
        if !validator.is_valid(&with_lists_of_bounds(&value)) {
            prop_assert!(result.is_err(), "{}", value);
        } else if let Err(problems) = result {
            // The validator checks neither our formats nor the integer types.
            let message = problems.to_string();
            let ours = ["is not a length of time", "is not a size", "stage 1", "is empty", "is more than"];
            prop_assert!(message.lines().all(|line| ours.iter().any(|part| line.contains(part))), "{}", message);
        }
    }

    #[test]
    fn the_rest_of_an_invalid_profile_can_still_be_typed(value in changed()) {
        let result = resolve(&value.to_string(), &[], &Overrides::default());
        let message = result.map_or_else(|problems| problems.to_string(), |_| String::new());
        prop_assert!(!message.contains("cannot be typed"), "{}\n{}", message, value);
    }

    #[test]
    fn no_assignment_makes_the_merge_panic(
        path in "[a-z.\\[\\]0-9]{0,12}|(scenarios|tls|headers|trace)(\\.[a-z0-9]{0,4}){0,3}",
        value in "\\PC{0,12}",
    ) {
        let sets = vec![format!("{path}={value}")];
        let overrides = Overrides { sets, ..Overrides::default() };
        let result = resolve(&base_with("scenarios: [{name: a}]"), &[], &overrides);
        prop_assert!(result.err().is_none_or(|problems| !problems.is_empty()));
    }
}

#[test]
fn a_bomb_of_aliases_is_refused_quickly() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let before = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(text, "a{level}: &a{level} [{before}]").unwrap();
    }
    let message = parse(text.as_bytes()).unwrap_err().to_string();
    assert!(message.contains("is not YAML that can be used"), "{message}");
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("{\"a\":", "}"), ("[", "]")] {
        let nested = format!("{{\"parameters\": {}1{}}}", open.repeat(500), close.repeat(500));
        assert!(parse(nested.as_bytes()).is_err());
        assert!(parse(format!("parameters: {nested}").as_bytes()).is_err());
    }
}
