//! Reads what a client sends to an agent.

use serde::Deserialize;
use serde_json::Value;

use super::version::Version;
use crate::rpc::{Object, RpcError};

/// The longest stored context id, in bytes.
const MAX_CONTEXT: usize = 256;

/// A message of the client.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Incoming {
    /// All texts, joined.
    pub(super) text: String,
    pub(super) task: Option<String>,
    pub(super) context: Option<String>,
    /// Whether the client waits for the end of a task.
    pub(super) waits: bool,
}

#[derive(Deserialize)]
struct Params {
    message: ClientMessage,
    configuration: Option<Configuration>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientMessage {
    message_id: String,
    role: String,
    task_id: Option<String>,
    context_id: Option<String>,
    parts: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    /// 0.3; true by default.
    blocking: Option<bool>,
    /// 1.0; false by default.
    return_immediately: Option<bool>,
}

impl Incoming {
    /// Reads the parameters of `SendMessage` and `SendStreamingMessage`.
    ///
    /// # Errors
    /// A required member is missing or has another type.
    pub(super) fn read(version: Version, params: &Object) -> Result<Self, RpcError> {
        let Params { message, configuration } = Params::deserialize(params)
            .map_err(|error| RpcError::invalid_params(error.to_string()))?;
        if message.message_id.is_empty() {
            return Err(RpcError::invalid_params("`messageId` must be a string"));
        }
        let user = if version == Version::V03 { "user" } else { "ROLE_USER" };
        if message.role != user {
            return Err(RpcError::invalid_params(format!("`role` must be {user}")));
        }
        let context = message.context_id.filter(|context| !context.is_empty());
        if context.as_ref().is_some_and(|context| context.len() > MAX_CONTEXT) {
            let problem = format!("`contextId` has more than {MAX_CONTEXT} bytes");
            return Err(RpcError::invalid_params(problem));
        }
        let Configuration { blocking, return_immediately } = configuration.unwrap_or_default();
        Ok(Self {
            text: read_parts(version, &message.parts)?,
            task: message.task_id.filter(|task| !task.is_empty()),
            context,
            waits: match version {
                Version::V03 => blocking.unwrap_or(true),
                Version::V1 => !return_immediately.unwrap_or(false),
            },
        })
    }
}

/// A required parameter: a text that is not empty.
pub(super) fn required_text<'a>(object: &'a Object, key: &str) -> Result<&'a str, RpcError> {
    let text = object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    text.ok_or_else(|| RpcError::invalid_params(format!("`{key}` must be a string")))
}

fn read_parts(version: Version, parts: &[Value]) -> Result<String, RpcError> {
    if parts.is_empty() {
        return Err(RpcError::invalid_params("`parts` must not be empty"));
    }
    let mut text = String::new();
    for part in parts {
        let kind = kind_of(version, part);
        let kind = kind.ok_or_else(|| RpcError::invalid_params("A part has no known content"))?;
        if kind == "text" {
            text.push_str(part["text"].as_str().unwrap_or_default());
        }
    }
    Ok(text)
}

/// The kind of a part, if its content is present: 0.3 names it in `kind`, 1.0 has one member per
/// kind.
fn kind_of(version: Version, part: &Value) -> Option<&'static str> {
    let known: &[&'static str] = match version {
        Version::V03 => &["text", "file", "data"],
        Version::V1 => &["text", "raw", "url", "data"],
    };
    let mut present = known.iter().copied().filter(|kind| match version {
        Version::V03 => part["kind"] == **kind,
        Version::V1 => part.get(kind).is_some(),
    });
    let kind = present.next().filter(|kind| match *kind {
        "text" | "raw" | "url" => part[kind].is_string(),
        "file" => part[kind].is_object(),
        _ => part.get(kind).is_some(),
    })?;
    present.next().is_none().then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(version: Version, params: &Value) -> Result<Incoming, i64> {
        Incoming::read(version, params.as_object().unwrap()).map_err(|error| error.code)
    }

    fn message(version: Version) -> Value {
        match version {
            Version::V03 => json!({"kind": "message", "messageId": "m", "role": "user",
                "parts": [{"kind": "text", "text": "a"}, {"kind": "data", "data": {}},
                    {"kind": "text", "text": "b"}]}),
            Version::V1 => json!({"messageId": "m", "role": "ROLE_USER",
                "parts": [{"text": "a"}, {"data": null}, {"url": "x"}, {"text": "b"}]}),
        }
    }

    #[test]
    fn messages_are_read_in_both_versions() {
        for version in [Version::V03, Version::V1] {
            let mut params = json!({"message": message(version)});
            let plain = read(version, &params).unwrap();
            assert_eq!(
                plain,
                Incoming { text: "ab".to_owned(), task: None, context: None, waits: true }
            );
            params["message"]["taskId"] = json!("t");
            params["message"]["contextId"] = json!("c");
            params["configuration"] = match version {
                Version::V03 => json!({"blocking": false, "historyLength": 0}),
                Version::V1 => {
                    json!({"returnImmediately": true, "acceptedOutputModes": ["text/plain"]})
                }
            };
            let named = read(version, &params).unwrap();
            assert_eq!(
                (named.task.as_deref(), named.context.as_deref(), named.waits),
                (Some("t"), Some("c"), false)
            );
        }
    }

    proptest! {
        #[test]
        fn no_part_makes_the_reader_panic(
            keys in prop::collection::vec(
                prop::sample::select(vec!["kind", "text", "raw", "url", "data", "file", ""]), 0..4,
            ),
            value in prop_oneof![
                Just(Value::Null),
                Just(json!("text")),
                Just(json!("data")),
                Just(json!({"a": [1]})),
                any::<f32>().prop_map(Value::from),
            ],
            is_object in any::<bool>(),
        ) {
            let members = keys.iter().map(|key| ((*key).to_owned(), value.clone())).collect();
            let part = if is_object { Value::Object(members) } else { value };
            for version in [Version::V03, Version::V1] {
                let mut params = json!({"message": message(version)});
                params["message"]["parts"] = json!([part, part]);
                let _ = read(version, &params);
            }
        }
    }

    #[test]
    fn messages_that_are_none_get_their_code() {
        for version in [Version::V03, Version::V1] {
            let with = |path: &str, value: Value| {
                let mut params = json!({"message": message(version), "configuration": {}});
                *params.pointer_mut(path).unwrap() = value;
                read(version, &params).unwrap_err()
            };
            for (path, value, code) in [
                ("", json!({}), -32_602),
                ("/message", json!("hello"), -32_602),
                ("/message/messageId", json!(""), -32_602),
                ("/message/role", json!("agent"), -32_602),
                ("/message/role", json!("ROLE_AGENT"), -32_602),
                ("/message/parts", json!([]), -32_602),
                ("/message/parts", json!({}), -32_602),
                ("/message/parts/0", json!({}), -32_602),
                ("/message/parts/0", json!({"kind": "text", "text": 7}), -32_602),
                ("/message/parts/0", json!({"kind": "video"}), -32_602),
                ("/configuration", json!([]), -32_602),
                ("/configuration", json!({"blocking": 1, "returnImmediately": 1}), -32_602),
            ] {
                assert_eq!(with(path, value.clone()), code, "{version:?} {path} {value}");
            }
            let mut params = json!({"message": message(version)});
            params["message"]["taskId"] = json!(7);
            assert_eq!(read(version, &params), Err(-32_602));
            params["message"]["taskId"] = json!("");
            params["message"]["contextId"] = json!("c".repeat(257));
            assert_eq!(read(version, &params), Err(-32_602));
        }
        let two =
            json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "a", "url": "b"}]});
        assert_eq!(read(Version::V1, &json!({"message": two})), Err(-32_602));
    }
}
