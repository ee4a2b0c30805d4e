//! Single settings on top of a configuration, as flags give them: `rate_limits.0.requests=0`.

use serde_json::{Map, Value};

use crate::error::GatewayError;
use crate::spec::Spec;

impl Spec {
    /// Reads a configuration with single values replaced: each setting is `path=value`, the path's parts
    /// separated by dots, members of lists by their number, the value YAML. `null` takes a key away.
    ///
    /// # Errors
    /// [`GatewayError::Syntax`] for a text or a setting that cannot be read, or leads nowhere.
    pub fn with_settings(text: &str, settings: &[String]) -> Result<Self, GatewayError> {
        let plain = Self::from_yaml(text)?;
        if settings.is_empty() {
            return Ok(plain);
        }
        let told = |error: String| GatewayError::Syntax(error);
        let mut tree: Value =
            serde_saphyr::from_str(text).map_err(|error| told(error.to_string()))?;
        for setting in settings {
            let refuse = |why: &str| told(format!("setting `{setting}`: {why}"));
            let (path, value) = setting
                .split_once('=')
                .ok_or_else(|| refuse("write PATH=VALUE, like `server.body_bytes=1MiB`"))?;
            let value =
                serde_saphyr::from_str(value).map_err(|error| refuse(&error.to_string()))?;
            put(&mut tree, path, value).map_err(|why| refuse(&why))?;
        }
        serde_json::from_value(tree)
            .map_err(|error| told(format!("after the settings {}: {error}", settings.join(", "))))
    }
}

fn put(tree: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let (parents, last) =
        path.rsplit_once('.').map_or((None, path), |(parents, last)| (Some(parents), last));
    let mut place = tree;
    for part in parents.into_iter().flat_map(|parents| parents.split('.')) {
        place = step(place, part)?;
    }
    if place.is_null() {
        *place = Value::Object(Map::new());
    }
    match place {
        Value::Object(map) if value.is_null() => drop(map.remove(last)),
        Value::Object(map) => drop(map.insert(last.to_owned(), value)),
        Value::Array(list) => {
            let number: usize =
                last.parse().map_err(|_| format!("`{last}` is no number of a list's member"))?;
            let count = list.len();
            match list.get_mut(number) {
                Some(member) => *member = value,
                None if number == count => list.push(value),
                None => return Err(format!("the list has only {count} members")),
            }
        }
        _ => return Err(format!("`{last}` is inside a plain value")),
    }
    Ok(())
}

fn step<'a>(place: &'a mut Value, part: &str) -> Result<&'a mut Value, String> {
    if place.is_null() {
        *place = Value::Object(Map::new());
    }
    match place {
        Value::Object(map) => Ok(map.entry(part).or_insert(Value::Null)),
        Value::Array(list) => {
            let count = list.len();
            let number = part.parse().ok().filter(|number: &usize| *number < count);
            let number =
                number.ok_or_else(|| format!("`{part}` is no number of a list's member"))?;
            Ok(&mut list[number])
        }
        _ => Err(format!("`{part}` is inside a plain value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: a\nrate_limits: [{per: global, requests: 600}]\nmetrics: {}\n";

    fn with(settings: &[&str]) -> Result<Spec, String> {
        let settings: Vec<_> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        Spec::with_settings(TEXT, &settings).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_replace_add_and_take_away() {
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
    fn a_setting_that_leads_nowhere_is_refused() {
        for (setting, said) in [
            ("name", "PATH=VALUE"),
            ("nmae=b", "nmae"),
            ("rate_limits.7.requests=1", "`7`"),
            ("rate_limits.5={}", "only 1"),
            ("name.x=1", "plain value"),
            ("workers=many", "workers"),
        ] {
            let error = with(&[setting]).unwrap_err();
            assert!(error.contains(said), "{setting}: {error}");
        }
    }
}
