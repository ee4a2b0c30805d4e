//! The reference page of the configuration, made from the types and comments of [`Spec`].

use std::fmt::Write as _;

use plimsoll_gateway_policy::Actions;
use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::Spec;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/gateway.md");

const INTRODUCTION: &str = "# Configuration of the gateway

<!-- Made from crates/gateway/server/src/assembly/spec.rs and layers.rs by `UPDATE_EXPECT=1 cargo test -p plimsoll-gateway-server`. -->

Every key of the file that `plimsoll gateway --config FILE` reads; `--set PATH=VALUE` replaces single values. The
presence of a section enables its layer. [The guide](../guides/gateway.md) explains the layers with examples.

- In paths, `[]` stands for each member of a list, and `NAME` for a name of your choice.
- A *duration* is a number with a unit (`ns`, `us`, `ms`, `s`, `m`, `h`, `day`): `250us`, `1.5s`, `1h 30m`.
- A *size* is a number of bytes, or a number with `KiB`, `MiB` or `GiB`: `16KiB`.

| key | type | default | meaning |
|---|---|---|---|
";

/// The names of the table's layers.
macro_rules! names {
    ($($(#[$meaning:meta])* $name:ident: $section:ty => $layer:ty,)*) => {
        [$(stringify!($name)),*]
    };
}

/// The keys of the policy's actions, as the schema shows them.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct ActionsSchema {
    /// SQL injection.
    #[schemars(default = "block")]
    sql_injection: String,
    /// Dangerous commands.
    #[schemars(default = "block")]
    dangerous: String,
    /// Administrative operations.
    #[schemars(default = "block")]
    admin: String,
    /// Personal data.
    #[schemars(default = "redact")]
    pii: String,
    /// Prompt injection.
    #[schemars(default = "block")]
    prompt_injection: String,
}

fn block() -> String {
    "block".to_owned()
}

fn redact() -> String {
    "redact".to_owned()
}

/// The JSON schema, and the table made from it.
struct Reference {
    schema: Value,
    table: String,
}

impl Reference {
    /// Follows `$ref`, and takes `null` out of `anyOf`.
    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        if let Some(name) = schema["$ref"].as_str() {
            return self.resolve(self.schema.pointer(name.trim_start_matches('#')).unwrap());
        }
        match schema["anyOf"].as_array() {
            Some(options) => self.resolve(&options[0]),
            None => schema,
        }
    }

    fn kind(&self, schema: &Value) -> String {
        let schema = self.resolve(schema);
        if let Some(options) = schema["oneOf"].as_array() {
            let options = options.iter().map(|option| {
                let description = option["description"].as_str().unwrap_or_default();
                format!("`{}`: {description}", option["const"].as_str().unwrap())
            });
            return options.collect::<Vec<_>>().join("; ");
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds[0].as_str(),
            kind => kind.as_str(),
        };
        match kind.unwrap() {
            "array" => format!("list of {}s", self.kind(&schema["items"])),
            "object" if schema["additionalProperties"].is_object() => {
                format!("map of names to {}", plural(&self.kind(&schema["additionalProperties"])))
            }
            "object" => "section".to_owned(),
            "string" => "text".to_owned(),
            kind => kind.to_owned(),
        }
    }

    fn rows(&mut self, path: &str, schema: &Value) {
        let schema = self.resolve(schema).clone();
        let none = Map::new();
        for (name, property) in schema["properties"].as_object().unwrap_or(&none) {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let required = schema["required"]
                .as_array()
                .is_some_and(|all| all.iter().any(|required| required == name));
            let kind = self.kind(property);
            let is_plain_section =
                kind == "section" && !required && property.get("anyOf").is_none();
            let default = match property.get("default") {
                _ if is_plain_section => String::new(),
                value => default(value, required),
            };
            let description = property["description"].as_str().unwrap_or_default();
            assert!(!description.is_empty(), "`{path}` needs a comment in spec.rs");
            let description = description.replace('\n', " ");
            writeln!(self.table, "| `{path}` | {kind} | {default} | {description} |").unwrap();
            self.members(&path, property);
        }
    }

    /// The layers of the table, in its order.
    fn layers(&mut self) {
        self.table.push_str("\n## Layers, in the order in which a request passes them\n\n");
        for name in for_each_layer!(names) {
            let description = self.schema["properties"][name]["description"].as_str().unwrap();
            let meaning = description.strip_prefix("Layer: ").unwrap().replace('\n', " ");
            writeln!(self.table, "1. `{name}`: {meaning}").unwrap();
        }
        self.table.push_str("\nRequests that these let pass are counted in `rate_limits`.\n");
    }

    /// The rows below a key.
    fn members(&mut self, path: &str, schema: &Value) {
        let schema = self.resolve(schema).clone();
        if schema["items"].is_object() {
            self.rows(&format!("{path}[]"), &schema["items"]);
        } else if schema["additionalProperties"].is_object() {
            self.rows(&format!("{path}.NAME"), &schema["additionalProperties"]);
        } else {
            self.rows(path, &schema);
        }
    }
}

fn plural(kind: &str) -> String {
    match kind.strip_prefix("list ") {
        Some(of) => format!("lists {of}"),
        None => format!("{kind}s"),
    }
}

fn default(value: Option<&Value>, required: bool) -> String {
    match value {
        None | Some(Value::Null) if required => "required".to_owned(),
        None | Some(Value::Null) => "none".to_owned(),
        Some(Value::String(text)) => {
            if text.is_empty() {
                "empty".to_owned()
            } else {
                format!("`{text}`")
            }
        }
        Some(value) => format!("`{value}`"),
    }
}

#[test]
fn the_reference_page_is_up_to_date() {
    let schema = serde_json::to_value(schemars::schema_for!(Spec)).unwrap();
    let mut reference = Reference { schema: schema.clone(), table: INTRODUCTION.to_owned() };
    reference.rows("", &schema);
    reference.layers();
    expect_test::expect_file![PAGE].assert_eq(&reference.table);
}

#[test]
fn the_schema_of_the_actions_has_their_keys_and_defaults() {
    let schema = serde_json::to_value(schemars::schema_for!(ActionsSchema)).unwrap();
    let properties = schema["properties"].as_object().unwrap();
    let values = properties.iter().map(|(name, schema)| (name.clone(), schema["default"].clone()));
    let actions: Actions = serde_json::from_value(values.collect()).unwrap();
    assert_eq!(actions, Actions::default());
    let unknown: Result<Actions, _> = serde_json::from_str("{\"other\": \"block\"}");
    let error = unknown.unwrap_err().to_string();
    assert_eq!(error.matches('`').count(), 2 * (properties.len() + 1), "{error}");
}
