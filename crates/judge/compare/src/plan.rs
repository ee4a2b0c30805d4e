//! Reduces a plan to the parts that must be equal in compared runs: is the same load sent in the
//! same way?

use serde_json::{Map, Value};

/// Keys of a plan that may differ between compared runs: the destination, the seed, names, and
/// thresholds. Models and protocols of targets are compared separately.
const FREE: &str = include_str!("free_keys.txt");

/// Keys whose value is a path, of which only the file name counts.
const PATHS: [&str; 2] = ["file", "tokenizer"];

/// Hash of a plan, as 16 hexadecimal digits. It is equal for runs that send the same load in the
/// same way, whatever their target, key, seed and names. `plan` is the plan from `plan.json`.
///
/// 64-bit FNV-1a over the plan as JSON, with sorted keys.
pub fn hash(plan: &Value) -> String {
    hash_of_comparable(&comparable(plan))
}

/// The [`hash`] of a plan that [`comparable`] returned.
pub(crate) fn hash_of_comparable(plan: &Value) -> String {
    fnv(&canonical(plan))
}

/// 64-bit FNV-1a (Fowler, Noll, Vo), as 16 hexadecimal digits.
pub(crate) fn fnv(text: &str) -> String {
    let hash = text.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
    });
    format!("{hash:016x}")
}

/// The plan without the parts that may differ.
pub(crate) fn comparable(plan: &Value) -> Value {
    let Value::Object(plan) = plan else { return plan.clone() };
    let kept = plan.iter().filter(|(key, _)| !FREE.lines().any(|free| free == *key));
    let mut kept: Map<_, _> =
        kept.map(|(key, value)| (key.clone(), with_names_of_files(key, value))).collect();
    // Trusted certificates belong to the target.
    if let Some(Value::Object(tls)) = kept.get_mut("tls") {
        for file in ["ca_file", "cert_file", "key_file"] {
            tls.remove(file);
        }
    }
    Value::Object(kept)
}

fn with_names_of_files(key: &str, value: &Value) -> Value {
    match value {
        Value::String(path) if PATHS.contains(&key) => {
            path.rsplit('/').next().unwrap_or_default().into()
        }
        Value::Object(members) => {
            let members = members.iter();
            members.map(|(key, value)| (key.clone(), with_names_of_files(key, value))).collect()
        }
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| with_names_of_files("", item)).collect())
        }
        other => other.clone(),
    }
}

/// JSON without spaces and with sorted keys.
fn canonical(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    value.to_string()
}

/// Keys in which plans differ, as paths such as `limits.timeout`, with the value in each plan.
pub(crate) fn differences(plans: &[&Value]) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let plans: Vec<_> = plans.iter().map(|plan| Some(*plan)).collect();
    collect(String::new(), &plans, &mut found);
    found
}

fn join_keys(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn collect(path: String, values: &[Option<&Value>], found: &mut Vec<(String, Vec<String>)>) {
    if values.windows(2).all(|pair| pair[0] == pair[1]) {
        return;
    }
    if values.iter().all(|value| value.is_some_and(Value::is_object)) {
        let mut keys: Vec<_> = values
            .iter()
            .flatten()
            .filter_map(|value| value.as_object())
            .flat_map(Map::keys)
            .collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let members: Vec<_> =
                values.iter().map(|value| value.and_then(|value| value.get(key))).collect();
            collect(join_keys(&path, key), &members, found);
        }
        return;
    }
    let mut lengths = values.iter().map(|value| value.and_then(Value::as_array).map(Vec::len));
    let length = lengths.next().flatten();
    if let Some(length) = length.filter(|_| lengths.all(|other| other == length)) {
        for index in 0..length {
            let items: Vec<_> =
                values.iter().map(|value| value.and_then(|value| value.get(index))).collect();
            collect(join_keys(&path, &(index + 1).to_string()), &items, found);
        }
        return;
    }
    found.push((
        path,
        values
            .iter()
            .copied()
            .map(|value: Option<&Value>| match value {
                None => "not set".to_owned(),
                Some(Value::String(text)) => text.clone(),
                Some(other) => canonical(other),
            })
            .collect(),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan() -> Value {
        json!({
            "name": "a", "seed": 1, "run_id": "x", "tool_version": "0.2.0",
            "stages": "2:1s", "limits": {"timeout": "30s", "workers": null},
            "scenarios": [{"name": "simple", "weight": 1}],
            "trace": {"file": "/one/place/day.jsonl"}, "tokenizer": null,
            "targets": [{"url": "http://a"}], "tls": {"ca_file": "/x", "insecure": false},
            "thresholds": {}, "gate": {}, "labels": {"commit": "1"},
        })
    }

    #[test]
    fn target_key_seed_and_names_do_not_change_the_hash_and_the_load_does() {
        let first = hash(&plan());
        assert_eq!(first.len(), 16);
        for (key, value) in [
            ("name", json!("b")),
            ("seed", json!(2)),
            ("run_id", json!("y")),
            ("targets", json!([{"url": "http://b", "key": "<redacted>"}])),
            ("thresholds", json!({"ttft": ["p(95)<1s"]})),
            ("labels", json!({})),
            ("trace", json!({"file": "/other/place/day.jsonl"})),
            ("tls", json!({"ca_file": null, "insecure": false})),
        ] {
            let mut other = plan();
            other[key] = value;
            assert_eq!(hash(&other), first, "{key}");
        }
        for (key, value) in [
            ("stages", json!("4:1s")),
            ("limits", json!({"timeout": "31s", "workers": null})),
            ("scenarios", json!([{"name": "simple", "weight": 2}])),
            ("trace", json!({"file": "/one/place/night.jsonl"})),
            ("tls", json!({"insecure": true})),
        ] {
            let mut other = plan();
            other[key] = value;
            assert_ne!(hash(&other), first, "{key}");
        }
    }

    #[test]
    fn the_order_of_keys_does_not_change_the_hash() {
        let one: Value = serde_json::from_str(r#"{"stages":"1:1s","http":{"a":1,"b":2}}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"http":{"b":2,"a":1},"stages":"1:1s"}"#).unwrap();
        assert_eq!(hash(&one), hash(&two));
    }

    /// Test vectors by the authors of FNV.
    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(fnv(""), "cbf29ce484222325");
        assert_eq!(fnv("foobar"), "85944171f73967e8");
    }

    #[test]
    fn differences_name_the_smallest_part_that_differs() {
        let mut other = plan();
        other["limits"]["timeout"] = json!("31s");
        other["scenarios"][0]["weight"] = json!(3);
        other["http"] = json!({"version": "http2"});
        let (one, two) = (comparable(&plan()), comparable(&other));
        let found = differences(&[&one, &two]);
        let shown: Vec<_> = found
            .iter()
            .map(|(path, values)| (path.as_str(), values[0].as_str(), values[1].as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                ("http", "not set", r#"{"version":"http2"}"#),
                ("limits.timeout", "30s", "31s"),
                ("scenarios.1.weight", "1", "3"),
            ]
        );
        assert!(differences(&[&one, &one, &one]).is_empty());
    }
}
