//! Overrides of single values of a configuration, as the flag `--set` gives them:
//! `rate_limits.0.requests=0`.

use serde_json::{Map, Value};

use crate::assembly::spec::Spec;
use crate::config::error::GatewayError;
use crate::config::yaml_error;

impl Spec {
    /// Reads a configuration with single values replaced. Each override is `path=value`: the parts
    /// of the path are separated by dots, members of lists have their number, the value is YAML.
    /// `null` removes a key.
    ///
    /// # Errors
    /// [`GatewayError::Syntax`] for a text or an override that cannot be read, or an unknown path.
    pub fn with_overrides(text: &str, overrides: &[String]) -> Result<Self, GatewayError> {
        let spec = Self::from_yaml(text)?;
        if overrides.is_empty() {
            return Ok(spec);
        }
        let mut tree: Value =
            serde_saphyr::from_str(text).map_err(|error| syntax(yaml_error::describe(&error).0))?;
        let mut paths = Vec::new();
        for item in overrides {
            // Values may be keys: messages name paths only.
            let (path, value) = item.split_once('=').ok_or_else(|| {
                syntax("a setting has no `=`: write PATH=VALUE, like `server.body_bytes=1MiB`")
            })?;
            let refuse = |reason: &str| syntax(format!("setting `{path}`: {reason}"));
            let value = serde_saphyr::from_str(value)
                .map_err(|error| refuse(&yaml_error::describe(&error).0))?;
            put(&mut tree, path, value).map_err(|reason| refuse(&reason))?;
            paths.push(path);
        }
        serde_json::from_value(tree).map_err(|error| {
            let reason = yaml_error::without_values(&error.to_string());
            syntax(format!("after the settings of {}: {reason}", paths.join(", ")))
        })
    }
}

fn syntax(message: impl Into<String>) -> GatewayError {
    GatewayError::Syntax { message: message.into(), place: None }
}

fn no_member(part: &str) -> String {
    format!("`{part}` is not an index of the list")
}

fn inside_plain(part: &str) -> String {
    format!("`{part}` is inside a plain value")
}

/// Sets, adds or removes the value at a path.
fn put(tree: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let (parents, last) =
        path.rsplit_once('.').map_or((None, path), |(parents, last)| (Some(parents), last));
    let mut node = tree;
    for part in parents.into_iter().flat_map(|parents| parents.split('.')) {
        node = step(node, part)?;
    }
    if node.is_null() {
        *node = Value::Object(Map::new());
    }
    match node {
        Value::Object(map) if value.is_null() => drop(map.remove(last)),
        Value::Object(map) => drop(map.insert(last.to_owned(), value)),
        Value::Array(list) => {
            let number: usize = last.parse().map_err(|_| no_member(last))?;
            let count = list.len();
            match list.get_mut(number) {
                Some(member) => *member = value,
                None if number == count => list.push(value),
                None => return Err(format!("the list has only {count} members")),
            }
        }
        _ => return Err(inside_plain(last)),
    }
    Ok(())
}

/// The member `part` of a node; a missing one is added to a map.
fn step<'a>(node: &'a mut Value, part: &str) -> Result<&'a mut Value, String> {
    if node.is_null() {
        *node = Value::Object(Map::new());
    }
    match node {
        Value::Object(map) => Ok(map.entry(part).or_insert(Value::Null)),
        Value::Array(list) => {
            let count = list.len();
            let number = part.parse().ok().filter(|number: &usize| *number < count);
            let number = number.ok_or_else(|| no_member(part))?;
            Ok(&mut list[number])
        }
        _ => Err(inside_plain(part)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: a\nrate_limits: [{per: global, requests: 600}]\nmetrics: {}\n";

    fn with(overrides: &[&str]) -> Result<Spec, String> {
        let overrides: Vec<_> = overrides.iter().map(|item| (*item).to_owned()).collect();
        Spec::with_overrides(TEXT, &overrides).map_err(|error| error.to_string())
    }

    #[test]
    fn overrides_replace_add_and_remove_values() {
        let spec = with(&[
            "name=b",
            "rate_limits.0.requests=0",
            "rate_limits.1={per: address, requests: 5}",
            "server.body_bytes=2MiB",
            "metrics=null",
            "auth={keys: [{name: x, key: abc}]}",
        ])
        .unwrap();
        assert_eq!((spec.name.as_str(), spec.server.body_bytes.0), ("b", 2 << 20));
        let requests: Vec<_> = spec.rate_limits.iter().map(|limit| limit.requests).collect();
        assert_eq!(requests, [0, 5]);
        assert!(spec.metrics.is_none() && spec.auth.is_some());
    }

    #[test]
    fn an_override_of_an_unknown_path_is_refused() {
        for (item, message) in [
            ("name", "PATH=VALUE"),
            ("nmae=b", "nmae"),
            ("rate_limits.7.requests=1", "`7`"),
            ("rate_limits.5={}", "only 1"),
            ("name.x=1", "plain value"),
            ("workers=many", "workers"),
        ] {
            let error = with(&[item]).unwrap_err();
            assert!(error.contains(message), "{item}: {error}");
        }
    }
}
