//! Formats a resolved profile as a profile again.

use std::collections::BTreeMap;

use plimsoll_plan::{Plan, REDACTED, is_builtin, is_shown_header, redacted_path};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

use crate::layers::drop_nulls;
use crate::spec::{ProfileFile, scenario_name};

/// The most important keys, in this order.
const FIRST: [&str; 13] = [
    "name", "weight", "target", "url", "key", "model", "targets", "versus", "seed", "stages",
    "arrivals", "protocol", "content",
];
/// The longest key, shown last.
const LAST: &str = "scenarios";

/// Formats the profile as YAML, with every default filled in: each scenario is complete, without
/// top-level defaults. Paths are absolute, so that the file can be stored anywhere.
pub(crate) fn yaml(mut file: ProfileFile, plan: &Plan) -> String {
    file.name = Some(plan.name.clone());
    file.change_files(|_, _, named| {
        if !is_builtin(named) {
            *named = std::path::absolute(&*named).unwrap_or_else(|_| named.clone());
        }
    });
    file.proxy = plan.reach.proxy.as_ref().map(ToString::to_string);
    if let (Some(target), Some(resolved)) = (&mut file.target, plan.targets.first()) {
        *target = resolved.url.to_string();
    }
    redact(&mut file);
    let mut value = serde_json::to_value(&file).unwrap_or_default();
    drop_nulls(&mut value);
    if let (true, Value::Object(keys)) = (file.targets.is_empty(), &mut value) {
        keys.remove("versus");
    }
    escape_dollars(&mut value);
    let text = serde_saphyr::to_string(&Ordered(&value)).unwrap_or_default();
    let mut notes = vec![format!("plimsoll {}, every default filled in", plan.tool_version)];
    if plan.shard.count() > 1 {
        notes.push(format!(
            "part {}/{} of the run (--shard)",
            plan.shard.index(),
            plan.shard.count()
        ));
    }
    notes.extend(plan.notes.iter().cloned());
    notes.extend(plan.unsent.iter().map(|parts| format!("not sent: {parts}")));
    notes.iter().map(|note| format!("# {note}\n")).chain([text]).collect()
}

fn hide(headers: &mut BTreeMap<String, String>) {
    for (name, value) in headers {
        if !is_shown_header(name) {
            REDACTED.clone_into(value);
        }
    }
}

/// Removes possible credentials, and names the scenarios.
fn redact(file: &mut ProfileFile) {
    if let Some(key) = &mut file.key {
        REDACTED.clone_into(key);
    }
    hide(&mut file.headers);
    for target in &mut file.targets {
        if let Some(key) = &mut target.key {
            REDACTED.clone_into(key);
        }
        hide(&mut target.headers);
        target.url = redacted_path(&target.url);
    }
    let names: Vec<_> =
        file.scenarios.iter().enumerate().map(|(index, file)| scenario_name(index, file)).collect();
    for (scenario, name) in file.scenarios.iter_mut().zip(names) {
        scenario.name = Some(name);
        hide(&mut scenario.headers);
        if let Some(http) = &mut scenario.behaviour.http {
            hide(&mut http.headers);
            http.path = redacted_path(&http.path);
        }
        let websocket = scenario.behaviour.websocket.as_mut();
        if let Some(path) = websocket.and_then(|websocket| websocket.path.as_mut()) {
            *path = redacted_path(path);
        }
    }
}

/// Escapes `$`, which begins a variable in a profile.
fn escape_dollars(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('$') => *text = text.replace('$', "$$"),
        Value::Array(items) => items.iter_mut().for_each(escape_dollars),
        Value::Object(map) => map.values_mut().for_each(escape_dollars),
        _ => {}
    }
}

/// Serializes mappings with the most important keys first.
struct Ordered<'v>(&'v Value);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Array(items) => serializer.collect_seq(items.iter().map(Ordered)),
            Value::Object(members) => {
                let mut keys: Vec<_> = members.keys().collect();
                keys.sort_by_key(|key| match FIRST.iter().position(|first| first == key) {
                    Some(position) => position,
                    None => FIRST.len() + usize::from(*key == LAST),
                });
                let mut map = serializer.serialize_map(Some(keys.len()))?;
                for key in keys {
                    map.serialize_entry(key, &Ordered(&members[key]))?;
                }
                map.end()
            }
            other => other.serialize(serializer),
        }
    }
}
