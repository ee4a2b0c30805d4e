//! Arguments that match the input schema of a tool.

use serde_json::{Map, Number, Value, json};

/// Maximum depth, because schemas may be recursive.
const DEEPEST: usize = 8;

/// Arguments of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GeneratedArguments {
    /// The arguments that are the same in every call.
    pub(crate) fixed: Map<String, Value>,
    /// The first argument that accepts any text. A random text makes each call different.
    pub(crate) text: Option<String>,
}

/// The required arguments of a schema. Optional ones are omitted.
pub(crate) fn arguments(schema: &Value) -> GeneratedArguments {
    let generator = Generator { root: schema };
    let mut text = None;
    let fixed = generator.object(schema, 0, &mut |name: &str, member: &Value| {
        if text.is_none() && is_any_text(member) {
            text = Some(name.to_owned());
        }
    });
    GeneratedArguments { fixed, text }
}

/// Whether a schema allows any text of 16 to 64 bytes.
fn is_any_text(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("string")
        && ["enum", "const", "format", "pattern", "default", "examples"]
            .iter()
            .all(|name| schema.get(name).is_none())
        && length_bound(schema, "minLength").is_none_or(|least| least <= 16)
        && length_bound(schema, "maxLength").is_none_or(|most| most >= 64)
}

fn length_bound(schema: &Value, name: &str) -> Option<usize> {
    let bound = schema.get(name).and_then(Value::as_u64)?;
    usize::try_from(bound).ok()
}

struct Generator<'a> {
    root: &'a Value,
}

impl Generator<'_> {
    fn object(
        &self,
        schema: &Value,
        depth: usize,
        on_member: &mut dyn FnMut(&str, &Value),
    ) -> Map<String, Value> {
        let mut object = Map::new();
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            let member = schema.get("properties").and_then(|known| known.get(name));
            let member = member.map_or(&Value::Null, |member| self.resolved(member, 0));
            on_member(name, member);
            object.insert(name.to_owned(), self.value(member, depth + 1));
        }
        // `allOf` adds members.
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            if depth < DEEPEST {
                object.extend(self.object(self.resolved(part, 0), depth + 1, on_member));
            }
        }
        object
    }

    /// Resolves a reference.
    fn resolved<'s>(&'s self, schema: &'s Value, depth: usize) -> &'s Value {
        let target = schema.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|target| self.root.pointer(target.strip_prefix('#')?));
        match target {
            Some(target) if depth < DEEPEST => self.resolved(target, depth + 1),
            _ => schema,
        }
    }

    fn value(&self, schema: &Value, depth: usize) -> Value {
        let schema = self.resolved(schema, 0);
        let lists = ["enum", "examples"].into_iter();
        let first = lists.filter_map(|name| schema.get(name)?.as_array()?.first());
        let given = ["const", "default"].into_iter().filter_map(|name| schema.get(name));
        if let Some(given) = given.chain(first).next() {
            return given.clone();
        }
        if depth > DEEPEST {
            return Value::Null;
        }
        for choice in ["anyOf", "oneOf"] {
            let forms = schema.get(choice).and_then(Value::as_array);
            let form = forms.and_then(|forms| {
                let mut others =
                    forms.iter().filter(|form| form.get("type") != Some(&json!("null")));
                others.next().or_else(|| forms.first())
            });
            if let Some(form) = form {
                return self.value(form, depth + 1);
            }
        }
        match kind(schema) {
            "string" => text(schema).into(),
            "integer" => number(schema, true),
            "number" => number(schema, false),
            "boolean" => Value::Bool(true),
            "null" => Value::Null,
            "array" => {
                let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(1).min(64);
                let item = schema.get("items").unwrap_or(&Value::Null);
                Value::Array((0..least).map(|_| self.value(item, depth + 1)).collect())
            }
            _ => Value::Object(self.object(schema, depth, &mut |_, _| {})),
        }
    }
}

/// The type of a schema, inferred if the schema does not name it.
fn kind(schema: &Value) -> &str {
    let name = match schema.get("type") {
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).find(|name| *name != "null")
        }
        name => name.and_then(Value::as_str),
    };
    let kinds = [
        ("properties", "object"),
        ("allOf", "object"),
        ("items", "array"),
        ("minimum", "number"),
        ("maximum", "number"),
    ];
    name.or_else(|| {
        kinds.into_iter().find(|(member, _)| schema.get(member).is_some()).map(|(_, kind)| kind)
    })
    .unwrap_or("string")
}

fn text(schema: &Value) -> String {
    let known = match schema.get("format").and_then(Value::as_str).unwrap_or_default() {
        "date-time" => "2026-01-02T03:04:05Z",
        "date" => "2026-01-02",
        "time" => "03:04:05Z",
        "duration" => "PT5S",
        "email" => "ada@example.com",
        "hostname" => "example.com",
        "ipv4" => "127.0.0.1",
        "ipv6" => "::1",
        "uri" | "url" | "iri" | "uri-reference" => "https://example.com/",
        "uuid" => "123e4567-e89b-42d3-a456-426614174000",
        _ => "plimsoll",
    };
    let mut text = known.to_owned();
    let least = length_bound(schema, "minLength").unwrap_or(0).min(1 << 16);
    text.extend(std::iter::repeat_n('x', least.saturating_sub(text.len())));
    if let Some(most) = length_bound(schema, "maxLength") {
        text.truncate(most);
    }
    text
}

fn number(schema: &Value, whole: bool) -> Value {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let step = bound("multipleOf").filter(|step| *step > 0.0).unwrap_or(1.0);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|least| least + step));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|most| most - step));
    let wanted = match (least, most) {
        (Some(least), Some(most)) => 1.0_f64.clamp(least.min(most), most),
        (Some(least), None) => least.max(1.0),
        (None, Some(most)) => most.min(1.0),
        (None, None) => 1.0,
    };
    // Rounding down respects the maximum, rounding up the minimum.
    let mut found = (wanted / step).round() * step;
    if least.is_some_and(|least| found < least) {
        found += step;
    }
    if whole || found.fract() == 0.0 {
        #[expect(clippy::cast_possible_truncation, reason = "a whole number in range")]
        let whole = found.ceil() as i64;
        return whole.into();
    }
    Number::from_f64(found).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checked by the same rules that a server checks with.
    #[test]
    fn required_arguments_fit_their_schemas() {
        for (schema, fixed) in [
            (json!({}), json!({})),
            (
                json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "string"}},
                    "required": ["a"]}),
                json!({"a": 1}),
            ),
            (
                json!({"properties": {"n": {"type": "integer", "minimum": 5, "multipleOf": 3},
                    "f": {"type": "number", "exclusiveMaximum": 0.5, "multipleOf": 0.25},
                    "e": {"enum": ["x", "y"]}, "d": {"type": "string", "default": "given"},
                    "t": {"type": "string", "format": "date"}, "m": {"type": "string", "maxLength": 3},
                    "l": {"type": "array", "items": {"type": "boolean"}, "minItems": 2},
                    "o": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/point"}]}},
                    "$defs": {"point": {"type": "object", "properties": {"x": {"type": ["null", "integer"]}},
                        "required": ["x"]}},
                    "required": ["n", "f", "e", "d", "t", "m", "l", "o"]}),
                json!({"n": 6, "f": 0.25, "e": "x", "d": "given", "t": "2026-01-02", "m": "pli",
                    "l": [true, true], "o": {"x": 1}}),
            ),
            // A schema that needs itself has no end.
            (json!({"properties": {"next": {"$ref": "#"}}, "required": []}), json!({})),
        ] {
            assert_eq!(Value::Object(arguments(&schema).fixed), fixed, "{schema}");
        }
        let endless = json!({"properties": {"next": {"$ref": "#"}}, "required": ["next"]});
        assert!(arguments(&endless).fixed.contains_key("next"));
    }

    #[test]
    fn the_first_argument_of_any_text_is_named() {
        let schema = json!({"properties": {"kind": {"type": "string", "enum": ["a"]},
            "text": {"type": "string"}, "more": {"type": "string"}},
            "required": ["kind", "text", "more"]});
        assert_eq!(arguments(&schema).text.as_deref(), Some("text"));
        let none = json!({"properties": {"url": {"type": "string", "format": "uri"}},
            "required": ["url"]});
        assert_eq!(arguments(&none).text, None);
    }
}
