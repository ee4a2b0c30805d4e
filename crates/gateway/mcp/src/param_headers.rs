//! Arguments that a call repeats in headers, in versions without sessions: the properties with
//! `x-mcp-header` in the schema.

use serde_json::{Map, Value};

use crate::header_value::encode;

const ANNOTATION: &str = "x-mcp-header";
const PREFIX: &str = "mcp-param-";

/// The arguments of a tool that are repeated in headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ParamHeaders(Vec<ParamHeader>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct ParamHeader {
    /// The names of the members that lead to the argument.
    path: Vec<String>,
    /// The name of the header.
    header: String,
}

impl ParamHeaders {
    /// Removes the annotations from a schema, because the gateway does not require these headers
    /// from its clients. If one annotation is malformed, servers ignore all of them, and the
    /// gateway sends no headers.
    pub(crate) fn take_from(schema: &mut Value) -> Self {
        let (mut found, mut well_formed) = (Vec::new(), true);
        take(schema, &mut Vec::new(), &mut |path, token| {
            let header = token.as_str().filter(|token| is_token(token));
            let header = header.map(|token| PREFIX.to_owned() + &token.to_ascii_lowercase());
            match header {
                Some(header) => found.push(ParamHeader { path: path.to_vec(), header }),
                None => well_formed = false,
            }
        });
        let mut names: Vec<&String> = found.iter().map(|found| &found.header).collect();
        names.sort();
        names.dedup();
        if well_formed && names.len() == found.len() { Self(found) } else { Self::default() }
    }

    /// Whether no argument is repeated.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The headers for these arguments.
    pub(crate) fn values(&self, arguments: &Map<String, Value>) -> Vec<(String, String)> {
        self.0
            .iter()
            .filter_map(|param: &ParamHeader| {
                let (first, rest) = param.path.split_first()?;
                let found =
                    rest.iter().try_fold(arguments.get(first)?, |value, name| value.get(name));
                let value = match found? {
                    Value::Bool(value) => value.to_string(),
                    Value::Number(value) => value.to_string(),
                    Value::String(value) => value.clone(),
                    _ => return None,
                };
                Some((param.header.clone(), encode(&value)))
            })
            .collect()
    }
}

/// Removes the annotations from the properties of a schema.
fn take(schema: &mut Value, path: &mut Vec<String>, found: &mut impl FnMut(&[String], Value)) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(token) = property.as_object_mut().and_then(|members| members.remove(ANNOTATION))
        {
            found(path, token);
        }
        take(property, path, found);
        path.pop();
    }
}

/// Whether a text may be part of a header's name (RFC 9110, 5.6.2).
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text
            .bytes()
            .all(|byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn annotated_arguments_are_repeated_and_the_annotations_go() {
        let mut schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "other": {"type": "string"},
        }});
        let headers = ParamHeaders::take_from(&mut schema);
        assert!(!headers.is_empty() && !schema.to_string().contains("x-mcp-header"), "{schema}");
        let arguments = json!({"region": "Zürich", "deep": {"n": 7}, "other": "x"});
        let mut found = headers.values(arguments.as_object().unwrap());
        found.sort();
        let expected = [("mcp-param-n", "7"), ("mcp-param-region", "=?base64?WsO8cmljaA==?=")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(headers.values(&Map::new()), []);
    }

    #[test]
    fn where_one_is_malformed_none_is_sent() {
        for token in [json!("a b"), json!(""), json!(7), json!("Region")] {
            let mut schema = json!({"properties": {
                "a": {"x-mcp-header": "region"}, "b": {"x-mcp-header": token},
            }});
            assert!(ParamHeaders::take_from(&mut schema).is_empty(), "{token}");
        }
    }
}
