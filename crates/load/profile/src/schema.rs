//! The JSON Schema of a profile, and lookups in it.

use std::sync::LazyLock;

use plimsoll_measure::named_enum;
use serde_json::{Map, Value};

use crate::path::{ConfigPath, Step};
use crate::spec::ProfileFile;

static ROOT: LazyLock<Value> = LazyLock::new(generate);

/// The JSON Schema of a profile, for editors.
pub fn schema() -> Value {
    ROOT.clone()
}

fn generate() -> Value {
    let mut root = schemars::schema_for!(ProfileFile);
    root.insert("title".to_owned(), "Plimsoll profile".into());
    root.to_value()
}

named_enum! {
    /// Types of values in profiles.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Kind {
        /// No value; equivalent to omitting the key.
        Null => "nothing",
        /// `true` or `false`.
        Bool => "true or false",
        /// An integer.
        Integer => "a number",
        /// A number with a fraction.
        Fraction => "a number with a decimal point",
        /// A text.
        Text => "a text",
        /// A list.
        List => "a list",
        /// A mapping of keys to values.
        Mapping => "a mapping",
    }
}

impl Kind {
    /// The type of a value.
    pub(crate) fn from_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Number(number) if number.is_f64() => Self::Fraction,
            Value::Number(_) => Self::Integer,
            Value::String(_) => Self::Text,
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Mapping,
        }
    }

    const fn schema_types(self) -> &'static [&'static str] {
        match self {
            Self::Null => &["null"],
            Self::Bool => &["boolean"],
            Self::Integer => &["integer", "number"],
            Self::Fraction => &["number"],
            Self::Text => &["string"],
            Self::List => &["array"],
            Self::Mapping => &["object"],
        }
    }
}

/// The schema of one form of a value, without references and alternatives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'s>(pub(crate) &'s Value);

impl<'s> Node<'s> {
    /// Whether a value of this type is allowed.
    pub(crate) fn allows(self, kind: Kind) -> bool {
        let allowed = |name: &Value| kind.schema_types().iter().any(|known| name == known);
        match self.0.get("type") {
            Some(Value::Array(names)) => names.iter().any(allowed),
            Some(name) => allowed(name),
            None => true,
        }
    }

    /// The keys of a mapping and the schemas of their values.
    pub(crate) fn members(self) -> impl Iterator<Item = (&'s str, &'s Value)> {
        let members = self.0.get("properties").and_then(Value::as_object);
        members.into_iter().flat_map(Map::iter).map(|(key, schema)| (key.as_str(), schema))
    }

    /// The schema of the value of `key`; `None` if the key is unknown, or its value is
    /// unrestricted.
    pub(crate) fn member(self, key: &str) -> Option<&'s Value> {
        self.0
            .get("properties")
            .and_then(|known| known.get(key))
            .or_else(|| self.0.get("additionalProperties").filter(|schema| schema.is_object()))
    }

    /// Whether unknown keys are an error.
    pub(crate) fn is_closed(self) -> bool {
        self.0.get("additionalProperties") == Some(&Value::Bool(false))
    }

    /// Required keys.
    pub(crate) fn required(self) -> impl Iterator<Item = &'s str> {
        let keys = self.0.get("required").and_then(Value::as_array);
        keys.into_iter().flatten().filter_map(Value::as_str)
    }

    /// The schema of the items of a list.
    pub(crate) fn items(self) -> Option<&'s Value> {
        self.0.get("items")
    }

    /// Allowed words; empty if any text is allowed.
    pub(crate) fn words(self) -> impl Iterator<Item = &'s str> {
        let listed = self.0.get("enum").and_then(Value::as_array);
        listed.into_iter().flatten().chain(self.0.get("const")).filter_map(Value::as_str)
    }

    /// Format of a text, such as `duration`.
    pub(crate) fn format(self) -> Option<&'s str> {
        self.0.get("format").and_then(Value::as_str)
    }

    /// Limit of a number, such as `minimum`.
    pub(crate) fn bound(self, name: &str) -> Option<f64> {
        self.0.get(name).and_then(Value::as_f64)
    }
}

/// The forms that a value may have, with resolved references and without `null`.
pub(crate) fn forms(schema: &Value) -> Vec<Node<'_>> {
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        return ROOT.pointer(target.trim_start_matches('#')).map_or_else(Vec::new, forms);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(alternatives)) = schema.get(key) {
            return alternatives.iter().flat_map(forms).collect();
        }
    }
    if schema.get("type").is_some_and(|name| name == "null") {
        Vec::new()
    } else {
        vec![Node(schema)]
    }
}

/// The schema of the whole profile.
pub(crate) fn top() -> &'static Value {
    &ROOT
}

/// The forms that the value at `path` may have; empty if the schema has no such path.
pub(crate) fn at(path: &ConfigPath) -> Vec<Node<'static>> {
    path.steps().iter().fold(forms(top()), |current, step| {
        current
            .into_iter()
            .filter_map(|node| match step {
                Step::Key(key) => node.member(key),
                Step::Index(_) => node.items(),
            })
            .flat_map(forms)
            .collect()
    })
}

/// The keys that a scenario inherits from the top of the profile.
pub(crate) fn inherited() -> impl Iterator<Item = &'static str> {
    // Names are not inherited, and headers are merged rather than replaced.
    let own = ["name", "headers"];
    let top: Vec<_> =
        forms(top()).into_iter().flat_map(Node::members).map(|(key, _)| key).collect();
    let scenario = at(&ConfigPath::root().key("scenarios").index(0));
    let keys = scenario.into_iter().flat_map(Node::members).map(|(key, _)| key);
    keys.filter(move |key| top.contains(key) && !own.contains(key))
}
