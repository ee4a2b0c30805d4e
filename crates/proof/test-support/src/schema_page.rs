//! Renders a JSON Schema as a reference page: one table for each type.
#![expect(clippy::unwrap_used, reason = "a schema that cannot be rendered must fail its test")]

use serde_json::Value;

/// One section for the root and each definition, in the order of the schema.
///
/// # Panics
/// The schema is not one that `schemars` makes of our types.
pub fn render(schema: &Value) -> String {
    let definitions = schema["$defs"].as_object().into_iter().flatten();
    let sections = definitions.map(|(name, definition)| section(name, definition));
    let file = format!("\n## The file\n\n{}", properties(schema));
    [file].into_iter().chain(sections).collect()
}

fn section(name: &str, definition: &Value) -> String {
    let text = match description(definition) {
        text if text.is_empty() => text,
        text => format!("{text}\n\n"),
    };
    format!("\n## {name}\n\n{text}{}", body(definition))
}

fn body(definition: &Value) -> String {
    match definition["oneOf"].as_array() {
        Some(variants) => variants_table(variants),
        None if definition["enum"].is_array() => {
            variants_table(definition["enum"].as_array().unwrap())
        }
        None => properties(definition),
    }
}

fn properties(schema: &Value) -> String {
    let mut table = "| key | type | description |\n|---|---|---|\n".to_owned();
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        table.push_str(&row(&[&format!("`{key}`"), &kind(property), &description(property)]));
    }
    table
}

/// The variants of an enum. A variant is a word, or an object whose `state` is a word.
fn variants_table(variants: &[Value]) -> String {
    let mut table = "| value | description |\n|---|---|\n".to_owned();
    for variant in variants {
        let tag = &variant["properties"]["state"]["const"];
        let word = [variant, &variant["const"], tag].into_iter().find_map(Value::as_str);
        let content = variant["properties"].as_object().into_iter().flatten();
        let content: Vec<_> = content
            .filter(|(key, _)| *key != "state")
            .map(|(key, property)| format!(", `{key}`: {}", kind(property)))
            .collect();
        let state = if tag.is_string() { "`state`: " } else { "" };
        let value = format!("{state}`{}`{}", word.unwrap(), content.join(""));
        table.push_str(&row(&[&value, &description(variant)]));
    }
    table
}

fn row(cells: &[&str]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn description(schema: &Value) -> String {
    one_line(schema["description"].as_str().unwrap_or_default())
}

/// The first paragraph, with code spans in place of links of rustdoc, and `null` in place of
/// `None`.
fn one_line(text: &str) -> String {
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let replacements = [("\n", " "), ("[`", "`"), ("`]", "`"), ("`None`", "`null`"), ("|", "\\|")];
    replacements.iter().fold(paragraph.to_owned(), |text, (old, new)| text.replace(old, new))
}

/// The type of a value, in words.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(any) = schema["anyOf"].as_array() {
        return any.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::Array(types) => types
            .iter()
            .map(|name| {
                let mut single = schema.clone();
                single["type"] = name.clone();
                kind(&single)
            })
            .collect::<Vec<_>>()
            .join(" or "),
        Value::String(name) => match name.as_str() {
            "array" if schema["prefixItems"].is_array() => {
                let items: Vec<_> =
                    schema["prefixItems"].as_array().unwrap().iter().map(kind).collect();
                format!("list of {}", items.join(", "))
            }
            "array" => format!("list of {}", kind(&schema["items"])),
            "object" if schema["additionalProperties"].is_object() => {
                format!("object of {}", kind(&schema["additionalProperties"]))
            }
            "object" if schema["patternProperties"].is_object() => {
                let values = schema["patternProperties"].as_object().unwrap().values();
                format!("object of {}", values.map(kind).collect::<Vec<_>>().join(" or "))
            }
            name => name.to_owned(),
        },
        _ => "any".to_owned(),
    }
}
