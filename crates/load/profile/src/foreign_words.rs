//! Translates unambiguous words of other programs' profiles, each with a note. Ambiguous words are
//! left to the checks, which report them.

use serde_json::{Map, Value};

/// Foreign top-level keys, and ours.
const KEYS: &str = include_str!("foreign_keys.tsv");

/// Foreign protocol names, and ours.
const PROTOCOLS: &str = include_str!("foreign_protocols.tsv");

/// Translates foreign words of a profile, and returns a note for each.
pub(crate) fn translate(root: &mut Value) -> Vec<String> {
    let mut notes = Vec::new();
    let Value::Object(profile) = root else { return notes };
    defaults(profile, &mut notes);
    for (word, ours) in pairs(KEYS) {
        rename(profile, word, ours, &mut notes);
    }
    protocol(profile, "", &mut notes);
    system(profile, "", &mut notes);
    let scenarios = profile.get_mut("scenarios").and_then(Value::as_array_mut);
    for (index, scenario) in scenarios.into_iter().flatten().enumerate() {
        if let Value::Object(scenario) = scenario {
            let place = format!("scenarios[{index}].");
            protocol(scenario, &place, &mut notes);
            system(scenario, &place, &mut notes);
        }
    }
    if let Some(text) = profile.get("stages").and_then(stages) {
        notes.push(format!("the list in `stages` was read as `{text}`"));
        profile.insert("stages".to_owned(), text.into());
    }
    thresholds(profile, &mut notes);
    notes
}

/// Moves `defaults` to the top level.
fn defaults(profile: &mut Map<String, Value>, notes: &mut Vec<String>) {
    let Some(Value::Object(inner)) = profile.get("defaults").cloned() else { return };
    profile.remove("defaults");
    for (key, value) in inner {
        match (profile.get_mut(&key), value) {
            // Headers of both places are sent.
            (Some(Value::Object(own)), Value::Object(more)) => {
                for (name, value) in more {
                    own.entry(name).or_insert(value);
                }
            }
            (Some(_), _) => {}
            (None, value) => drop(profile.insert(key, value)),
        }
    }
    notes.push(
        "the keys in `defaults` were read as keys at the top, which are the defaults".to_owned(),
    );
}

/// The rows of a table.
fn pairs(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    table.lines().filter_map(|row| row.split_once('\t'))
}

fn rename(profile: &mut Map<String, Value>, word: &str, ours: &str, notes: &mut Vec<String>) {
    let is_text = profile.get(word).is_some_and(Value::is_string);
    if is_text
        && !profile.contains_key(ours)
        && let Some(value) = profile.remove(word)
    {
        profile.insert(ours.to_owned(), value);
        notes.push(format!("`{word}` was read as `{ours}`"));
    }
}

fn protocol(holder: &mut Map<String, Value>, place: &str, notes: &mut Vec<String>) {
    let Some(Value::String(word)) = holder.get("protocol") else { return };
    let ours = pairs(PROTOCOLS).find(|(known, _)| word.eq_ignore_ascii_case(known));
    if let Some((known, ours)) = ours {
        notes.push(format!("`{place}protocol: {known}` was read as `{ours}`"));
        holder.insert("protocol".to_owned(), ours.into());
    }
}

/// Moves a system prompt out of `content`.
fn system(holder: &mut Map<String, Value>, place: &str, notes: &mut Vec<String>) {
    if holder.contains_key("system") {
        return;
    }
    let content = holder.get_mut("content").and_then(Value::as_object_mut);
    if let Some(system) = content.and_then(|content| content.remove("system")) {
        holder.insert("system".to_owned(), system);
        notes.push(format!("`{place}content.system` was read as `{place}system`"));
    }
}

/// Converts a list of stages to our notation; `None` if an item cannot be converted.
fn stages(value: &Value) -> Option<String> {
    let items = value.as_array().filter(|items| !items.is_empty())?;
    let texts: Option<Vec<_>> = items.iter().map(stage).collect();
    Some(texts?.join(","))
}

fn stage(item: &Value) -> Option<String> {
    if let Some(text) = item.as_str() {
        return Some(text.to_owned());
    }
    let item = item.as_object()?;
    let one_of = |names: &[&str]| names.iter().find_map(|name| item.get(*name));
    let users = one_of(&["concurrency", "users", "vus", "virtual_users"]);
    let rate = one_of(&["rps", "rate", "qps", "request_rate", "arrival_rate"]);
    let duration = match one_of(&["duration", "for", "length", "duration_s", "seconds"])? {
        Value::String(text) => text.clone(),
        Value::Number(seconds) => format!("{seconds}s"),
        _ => return None,
    };
    let load = match (users, rate) {
        (Some(users), None) => load(users)?,
        (None, Some(rate)) => format!("@{}", load(rate)?),
        _ => return None,
    };
    let warm_up = one_of(&["warmup", "warm_up", "is_warmup"]) == Some(&Value::Bool(true));
    let known = ["name", "type", "warmup", "warm_up", "is_warmup"];
    let others = item.keys().filter(|key| !known.contains(&key.as_str())).count();
    // Any other key might change the meaning.
    (others == 2).then(|| format!("{}{load}:{duration}", if warm_up { "w" } else { "" }))
}

/// A number, or a ramp `{from, to}`.
fn load(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::Object(ramp) if ramp.len() == 2 => {
            let [from, to] =
                ["from", "to"].map(|name| ramp.get(name).filter(|end| end.is_number()));
            Some(format!("{}..{}", from?, to?))
        }
        _ => None,
    }
}

/// Converts a single threshold to a list, and a number to an upper limit.
fn thresholds(profile: &mut Map<String, Value>, notes: &mut Vec<String>) {
    let bounds = profile.get_mut("thresholds").and_then(Value::as_object_mut);
    for (metric, bound) in bounds.into_iter().flatten() {
        let text = match &*bound {
            Value::String(text) => text.clone(),
            // For a time, the unit would be unknown.
            Value::Number(most) if metric.ends_with("_rate") => format!("<{most}"),
            _ => continue,
        };
        notes.push(format!("`thresholds.{metric}` was read as `[\"{text}\"]`"));
        *bound = Value::Array(vec![text.into()]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_of_one_meaning_are_read_as_ours() {
        let mut root = json!({
            "target": "http://a", "vk": "k", "protocol": "openai", "headers": {"a": "1"},
            "defaults": {"stream": true, "max_tokens": 5, "headers": {"a": "2", "b": "3"}},
            "max_tokens": 7,
            "scenarios": [{"protocol": "anthropic",
                "content": {"mode": "sized", "approx_input_tokens": 9, "system": "s"}}],
            "stages": [{"concurrency": 5, "duration": "2s", "warmup": true},
                {"rps": 20, "duration": 3}, {"users": {"from": 1, "to": 9}, "duration": "1m"}, "4:1s"],
            "thresholds": {"error_rate": 0.01, "ttft": "p(95)<1s", "itl": ["p(50)<9ms"]},
        });
        let notes = translate(&mut root);
        assert_eq!(
            root,
            json!({
                "target": "http://a", "key": "k", "protocol": "openai-chat",
                "headers": {"a": "1", "b": "3"}, "stream": true, "max_tokens": 7,
                "scenarios": [{"protocol": "anthropic-messages", "system": "s",
                    "content": {"mode": "sized", "approx_input_tokens": 9}}],
                "stages": "w5:2s,@20:3s,1..9:1m,4:1s",
                "thresholds": {"error_rate": ["<0.01"], "ttft": ["p(95)<1s"], "itl": ["p(50)<9ms"]},
            })
        );
        assert_eq!(notes.len(), 8, "{notes:#?}");
    }

    #[test]
    fn what_may_mean_several_things_stays() {
        for root in [
            json!({"stages": [{"target": 5, "duration": "2s"}]}),
            json!({"stages": [{"rps": 5, "concurrency": 5, "duration": "2s"}]}),
            json!({"stages": [{"rps": 5, "duration": "2s", "max_vus": 9}]}),
            json!({"thresholds": {"ttft": 500}}),
            json!({"key": "a", "vk": "b"}),
            json!({"protocol": "grpc", "defaults": 5}),
            json!({"target": "http://a", "protocol": "openai-chat", "stages": "5:2s"}),
        ] {
            let mut same = root.clone();
            assert_eq!(translate(&mut same), Vec::<String>::new());
            assert_eq!(same, root);
        }
    }
}
