//! JSON-RPC 2.0 messages: reads requests and notifications, writes answers.

use serde_json::{Map, Value, json};

/// The text is not JSON.
pub(crate) const PARSE_ERROR: i64 = -32_700;
/// The JSON is not a message.
pub(crate) const INVALID_REQUEST: i64 = -32_600;
/// The server has no such method.
pub(crate) const METHOD_NOT_FOUND: i64 = -32_601;
/// The method does not take these parameters.
pub(crate) const INVALID_PARAMS: i64 = -32_602;
/// An internal error of the server.
pub(crate) const INTERNAL_ERROR: i64 = -32_603;

/// The message for an aborted answer.
pub(crate) const BROKEN_OFF: &str = "The mock broke off this answer on purpose";

/// The members of an object.
pub(crate) type Object = Map<String, Value>;

/// A message from a client.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    /// Expects an answer.
    Request(Request),
    /// Expects no answer.
    Notification { method: String, params: Object },
    /// The answer to a request of the server, which this server never sends.
    Response,
}

/// A request.
#[derive(Debug, PartialEq)]
pub(crate) struct Request {
    /// A text or a whole number.
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Object,
}

/// An error for the client.
#[derive(Debug, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(crate) fn with_data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    /// A refusal without the request's id.
    pub(crate) fn with_status(self, status: u16) -> Refusal {
        Refusal { status, id: Value::Null, error: self }
    }
}

/// A refused request, with its HTTP status.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// The id of the request, if known.
    pub(crate) id: Value,
    pub(crate) error: RpcError,
}

/// The refusal of a request whose id is unknown.
pub(crate) fn refusal(status: u16, problem: &str) -> Refusal {
    RpcError::new(INVALID_REQUEST, problem).with_status(status)
}

/// Reads a body of one message. Batches are refused: MCP removed them in 2025-06-18, and A2A never
/// had them.
///
/// # Errors
/// It is not JSON, or not one message: a refusal with this status.
pub(crate) fn parse(body: &[u8], status: u16) -> Result<Message, Refusal> {
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        RpcError::new(PARSE_ERROR, format!("Parse error: {error}")).with_status(status)
    })?;
    let mut members = match value {
        Value::Object(members) => members,
        Value::Array(_) => return Err(invalid(status, Value::Null, "Batches are not supported")),
        _ => return Err(invalid(status, Value::Null, "The body must be a JSON-RPC message")),
    };
    let id = members.remove("id");
    let known = id.clone().filter(is_id).unwrap_or(Value::Null);
    if members.get("jsonrpc") != Some(&Value::from("2.0")) {
        return Err(invalid(status, known, "`jsonrpc` must be \"2.0\""));
    }
    let is_response = members.contains_key("result") || members.contains_key("error");
    if is_response && !members.contains_key("method") {
        return Ok(Message::Response);
    }
    let Some(Value::String(method)) = members.remove("method") else {
        return Err(invalid(status, known, "`method` must be a string"));
    };
    if id.is_some() && known.is_null() {
        return Err(invalid(status, known, "`id` must be a string or a whole number"));
    }
    let params = match members.remove("params") {
        None | Some(Value::Null) => Object::new(),
        Some(Value::Object(params)) => params,
        Some(_) => {
            let error = RpcError::invalid_params("`params` must be an object");
            return Err(Refusal { status, id: known, error });
        }
    };
    Ok(match id {
        Some(id) => Message::Request(Request { id, method, params }),
        None => Message::Notification { method, params },
    })
}

fn invalid(status: u16, id: Value, problem: &str) -> Refusal {
    let error = RpcError::new(INVALID_REQUEST, format!("Invalid request: {problem}"));
    Refusal { status, id, error }
}

/// The error that a fault puts in place of an answer.
pub(crate) fn broken_off() -> RpcError {
    RpcError::new(INTERNAL_ERROR, BROKEN_OFF)
}

/// Whether a value may be the id of a request.
fn is_id(value: &Value) -> bool {
    value.is_string() || value.is_i64() || value.is_u64()
}

/// The bytes of a message. JSON values always have a text form.
pub(crate) fn bytes(message: &Value) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_default()
}

/// The answer with a result.
pub(crate) fn success(id: &Value, result: Value) -> Vec<u8> {
    let mut message = json!({"jsonrpc": "2.0", "id": id});
    message["result"] = result;
    bytes(&message)
}

/// The answer with an error.
pub(crate) fn failure(id: &Value, error: &RpcError) -> Vec<u8> {
    let mut body = json!({"code": error.code, "message": error.message});
    if let Some(data) = &error.data {
        body["data"] = data.clone();
    }
    bytes(&json!({"jsonrpc": "2.0", "id": id, "error": body}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_are_told_apart_and_what_is_none_gets_its_code() {
        let request = Message::Request(Request {
            id: Value::from("a"),
            method: "m".to_owned(),
            params: Object::new(),
        });
        assert_eq!(parse(br#"{"jsonrpc":"2.0","id":"a","method":"m"}"#, 400), Ok(request));
        let notification = parse(br#"{"jsonrpc":"2.0","method":"m","params":null}"#, 400);
        assert!(matches!(notification, Ok(Message::Notification { .. })));
        let response = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(parse(response, 400), Ok(Message::Response));
        for (body, code, id) in [
            ("", -32_700, Value::Null),
            ("{", -32_700, Value::Null),
            ("\u{feff}{}", -32_700, Value::Null),
            ("[]", -32_600, Value::Null),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32_600, Value::Null),
            ("7", -32_600, Value::Null),
            (r#"{"id":1,"method":"ping"}"#, -32_600, Value::from(1)),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32_600, Value::from(1)),
            (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, -32_600, Value::from(1)),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32_600, Value::from(1)),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32_600, Value::from(1)),
            (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, -32_600, Value::Null),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, -32_600, Value::Null),
            (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, -32_600, Value::Null),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#, -32_602, Value::from(1)),
        ] {
            let found = parse(body.as_bytes(), 400).unwrap_err();
            assert_eq!((found.status, found.error.code, found.id), (400, code, id), "{body}");
        }
        // The parser must not overflow the stack.
        let deep = "[".repeat(1_000_000);
        assert_eq!(parse(deep.as_bytes(), 400).unwrap_err().error.code, -32_700);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(
            bytes in prop::collection::vec(
                prop_oneof![any::<u8>(), prop::sample::select(br#"[]{}":,\1ijsonrpc2.0"#.to_vec())],
                0..80,
            ),
        ) {
            let _ = parse(&bytes, 400);
        }
    }
}
