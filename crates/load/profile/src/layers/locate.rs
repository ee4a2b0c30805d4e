//! Finds and sets values by a user's path, such as `scenarios.simple.weight`.

use serde_json::{Map, Value};

use crate::error::Fault;
use crate::path::{ConfigPath, Step};
use crate::scenario::default_name;
use crate::schema::Kind;
use crate::suggest;

/// Resolves a user's path against the values of a profile, such as `scenarios.simple.weight` or
/// `scenarios[0].weight`.
///
/// # Errors
/// The part that could be resolved, and the fault of the step after it.
pub(super) fn locate(root: &Value, text: &str) -> Result<ConfigPath, (ConfigPath, Fault)> {
    let text = text.replace('[', ".").replace(']', "");
    let mut path = ConfigPath::root();
    for name in text.split('.') {
        if name.is_empty() {
            let fault = Fault::new(
                "has an empty step in its path",
                "write a path like `scenarios.0.weight`",
            );
            return Err((path, fault));
        }
        path = match path.find(root) {
            None | Some(Value::Null) if path == ConfigPath::root().key("scenarios") => {
                only_scenario(name).map_err(|fault| (path, fault))?
            }
            Some(Value::Array(items)) => {
                let index = item_index(items, name).map_err(|fault| (path.clone(), fault))?;
                path.index(index)
            }
            _ if path == ConfigPath::root().key("headers") => header_path(&path, root, name),
            _ => path.key(name),
        };
    }
    Ok(path)
}

/// The path of the scenario in a profile without a list of scenarios, whose only one is described
/// at the top level.
fn only_scenario(name: &str) -> Result<ConfigPath, Fault> {
    if name == "0" || name == default_name(0) {
        return Ok(ConfigPath::root().key("scenarios").index(0));
    }
    let cause =
        format!("lists no scenario `{name}`: the profile describes its only one at the top");
    let own = default_name(0);
    Err(Fault::new(
        cause,
        format!("write its keys without `scenarios.{name}.`, or call it `{own}`"),
    ))
}

fn item_index(items: &[Value], name: &str) -> Result<usize, Fault> {
    let by_number = name.parse().ok().filter(|&index: &usize| index < items.len());
    by_number
        .or_else(|| items.iter().position(|item| item.get("name").is_some_and(|own| own == name)))
        .or_else(|| {
            items.iter().enumerate().position(|(index, item)| {
                item.get("name").is_none_or(Value::is_null) && name == default_name(index)
            })
        })
        .ok_or_else(|| {
            let names: Vec<_> =
                items.iter().filter_map(|item| item.get("name")?.as_str()).collect();
            let fix = match items.len() {
                0 => "it is empty: write it in the profile".to_owned(),
                _ if names.is_empty() => format!("write a number from 0 to {}", items.len() - 1),
                count => {
                    format!(
                        "write a number from 0 to {}, or {}",
                        count - 1,
                        suggest::one_of(&names)
                    )
                }
            };
            Fault::new(format!("has no item `{name}`"), fix)
        })
}

/// The path of a header. Existing headers are matched case-insensitively.
pub(super) fn header_path(headers: &ConfigPath, root: &Value, name: &str) -> ConfigPath {
    let map = headers.find(root).and_then(Value::as_object);
    let same = map.and_then(|map| map.keys().find(|key| key.eq_ignore_ascii_case(name)));
    headers.key(same.map_or(name, String::as_str))
}

/// Sets the value at a path, and creates any missing mappings.
///
/// # Errors
/// The path leads into a value that is neither a mapping nor a list.
pub(super) fn insert(root: &mut Value, steps: &[Step], value: Value) -> Result<(), Fault> {
    let Some((step, rest)) = steps.split_first() else {
        *root = value;
        return Ok(());
    };
    if root.is_null() {
        *root = Value::Object(Map::new());
    }
    if *step == Step::Index(0) && root.as_object().is_some_and(Map::is_empty) {
        // The only scenario of a profile without a list.
        *root = Value::Array(vec![Value::Object(Map::new())]);
    }
    let kind = Kind::from_value(root);
    match (step, root) {
        (Step::Key(key), Value::Object(map)) => {
            insert(map.entry(key.as_str()).or_insert(Value::Null), rest, value)
        }
        (Step::Index(index), Value::Array(items)) if *index < items.len() => {
            insert(&mut items[*index], rest, value)
        }
        _ => Err(Fault::new(format!("lies inside of {}", kind.name()), "set the whole value")),
    }
}
