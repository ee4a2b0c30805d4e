//! JSON-RPC 2.0: reads messages of clients and answers of servers, writes both.
//!
//! Ids, parameters and results stay text: relayed values are neither parsed nor copied, so a deep
//! or wide document uses no more memory than its bytes.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::object::{is_object, present, quoted, read_object};

/// The text is not JSON.
pub const PARSE_ERROR: i64 = -32_700;
/// The JSON is not a message.
pub const INVALID_REQUEST: i64 = -32_600;
/// The server has no such method.
pub const METHOD_NOT_FOUND: i64 = -32_601;
/// The method does not take these parameters.
pub const INVALID_PARAMS: i64 = -32_602;
/// An internal error of the server.
pub const INTERNAL_ERROR: i64 = -32_603;
/// Headers and body disagree (versions without sessions).
pub const HEADER_MISMATCH: i64 = -32_020;
/// The server does not speak the version (versions without sessions).
pub const UNSUPPORTED_VERSION: i64 = -32_022;
/// The gateway refused the call: `data.type` has the reason, as in its other routes.
pub const REFUSED: i64 = -32_050;
/// The client cancelled the request. The official Python server uses this code.
pub const REQUEST_CANCELLED: i64 = -32_800;

/// Longest id of a request, in bytes of its JSON: it is repeated in the answer.
const MAX_ID: usize = 256;

/// Longest error message of a server that is passed on, in bytes.
const MAX_MESSAGE: usize = 1_024;

/// Largest error `data` of a server that is passed on, in bytes.
const MAX_DATA: usize = 4_096;

/// The members of any message.
#[serde_with::apply(_ => #[serde(borrow, default, deserialize_with = "present")])]
#[derive(Deserialize)]
struct Envelope<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

/// A message from a client.
#[derive(Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Expects an answer.
    Request(Request<'a>),
    /// Expects no answer.
    Notification {
        /// The method.
        method: String,
        /// The parameters, an object as text; `{}` if absent.
        params: &'a str,
    },
    /// The answer to a request of the server, which the gateway never sends.
    Response,
}

/// A request of a client.
#[derive(Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Its id: a text or a whole number, as JSON.
    pub id: &'a str,
    /// The method.
    pub method: String,
    /// The parameters, an object as text; `{}` if absent.
    pub params: &'a str,
}

/// An error of JSON-RPC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RpcError {
    /// The error code.
    pub code: i64,
    /// A message for people.
    pub message: String,
    /// Details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The method does not take these parameters.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// Adds data to the error.
    pub fn with_data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}: {}", self.code, self.message)
    }
}

/// A malformed body: the error, and the id if it was readable.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed<'a> {
    /// The id, as JSON.
    pub id: Option<&'a str>,
    /// The error.
    pub error: RpcError,
}

/// Reads a body of one message. Batches are refused: MCP has none since 2025-06-18.
///
/// # Errors
/// It is not JSON, or not one message.
pub fn read_message(body: &[u8]) -> Result<Message<'_>, Malformed<'_>> {
    let envelope = read_envelope(body)?;
    let id = envelope.id.map(RawValue::get).filter(|id| is_id(id));
    let invalid = |problem: &str| Malformed { id, error: invalid_request(problem) };
    if envelope.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
        return Err(invalid("`jsonrpc` must be \"2.0\""));
    }
    let is_response = envelope.result.is_some() || envelope.error.is_some();
    let Some(method) = envelope.method else {
        return if is_response {
            Ok(Message::Response)
        } else {
            Err(invalid("it has no `method`"))
        };
    };
    let Ok(method) = serde_json::from_str::<String>(method.get()) else {
        return Err(invalid("`method` must be a string"));
    };
    if envelope.id.is_some() && id.is_none() {
        let problem = "`id` must be a whole number or a text of at most 256 bytes";
        return Err(invalid(problem));
    }
    let params = match envelope.params.map(RawValue::get) {
        None | Some("null") => "{}",
        Some(params) if is_object(params) => params,
        Some(_) => {
            let error = RpcError::invalid_params("`params` must be an object");
            return Err(Malformed { id, error });
        }
    };
    Ok(match id {
        Some(id) => Message::Request(Request { id, method, params }),
        None => Message::Notification { method, params },
    })
}

fn read_envelope(body: &[u8]) -> Result<Envelope<'_>, Malformed<'_>> {
    // serde_json does not look into members that it skips.
    let Ok(body) = str::from_utf8(body) else {
        return Err(malformed(RpcError::new(PARSE_ERROR, "Parse error: it is not UTF-8")));
    };
    match body.trim_ascii_start().as_bytes().first() {
        Some(b'{') => {}
        // Batches are not messages, even as valid JSON.
        Some(b'[') => return Err(malformed(invalid_request("batches are not supported"))),
        _ if serde_json::from_str::<&RawValue>(body).is_ok() => {
            return Err(malformed(invalid_request("it must be an object")));
        }
        _ => return Err(malformed(RpcError::new(PARSE_ERROR, "Parse error: it is not JSON"))),
    }
    serde_json::from_str(body).map_err(|error| {
        malformed(match error.classify() {
            Category::Data => invalid_request("a member appears twice"),
            _ => RpcError::new(PARSE_ERROR, format!("Parse error: {error}")),
        })
    })
}

const fn malformed<'a>(error: RpcError) -> Malformed<'a> {
    Malformed { id: None, error }
}

fn invalid_request(problem: &str) -> RpcError {
    RpcError::new(INVALID_REQUEST, format!("Invalid request: {problem}"))
}

/// The id of a request in canonical JSON: strings may arrive with escapes.
pub fn spelled(id: &str) -> String {
    serde_json::from_str::<Value>(id).map_or_else(|_| id.to_owned(), |id| id.to_string())
}

/// The notification that a request is cancelled, in the versions with sessions.
pub const CANCELLED: &str = "notifications/cancelled";

/// The id that a [`CANCELLED`] notification with these parameters names, in the form of
/// [`spelled`].
pub fn cancelled_request(params: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "requestId")]
        id: &'a RawValue,
    }
    read_object::<Params<'_>>(params).ok().map(|params| spelled(params.id.get()))
}

/// Whether JSON may be the id of a request: a text, or a whole number.
fn is_id(json: &str) -> bool {
    let digits = json.strip_prefix('-').unwrap_or(json);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    json.len() <= MAX_ID && (json.starts_with('"') || (is_number && digits.len() <= 20))
}

/// A server's reply to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The result, an object as text.
    Result(String),
    /// An error.
    Error(RpcError),
}

const NOT_A_MESSAGE: &str = "its response is not a JSON-RPC message";
const WRONG_ID: &str = "its response answers another request";
const NO_OBJECT: &str = "its result is not an object";

#[derive(Deserialize)]
struct ErrorBody {
    code: i64,
    #[serde(default)]
    message: String,
    data: Option<Value>,
}

/// Reads a message of a server that may answer the request with this id. `None` for notifications
/// and requests of the server.
///
/// # Errors
/// It is neither.
pub fn read_reply(message: &[u8], id: u64) -> Result<Option<Reply>, &'static str> {
    let envelope = read_envelope(message).map_err(|_| NOT_A_MESSAGE)?;
    if envelope.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
        return Err(NOT_A_MESSAGE);
    }
    if envelope.method.is_some() {
        return Ok(None);
    }
    let answered = envelope.id.map(RawValue::get);
    let is_ours = answered.is_some_and(|text| text == id.to_string());
    match (envelope.result, envelope.error) {
        (Some(_), None) if !is_ours => Err(WRONG_ID),
        (Some(result), None) if is_object(result.get()) => {
            Ok(Some(Reply::Result(result.get().to_owned())))
        }
        (Some(_), None) => Err(NO_OBJECT),
        // A server that could not read the id answers with `null`.
        (None, Some(_)) if !is_ours && !matches!(answered, None | Some("null")) => Err(WRONG_ID),
        (None, Some(error)) => read_error(error.get()).map(|error| Some(Reply::Error(error))),
        _ => Err(NOT_A_MESSAGE),
    }
}

/// Reads an error regardless of its id, for a refused HTTP request.
pub fn read_refusal(message: &[u8]) -> Option<RpcError> {
    let envelope = read_envelope(message).ok()?;
    read_error(envelope.error?.get()).ok()
}

fn read_error(json: &str) -> Result<RpcError, &'static str> {
    if !is_object(json) {
        return Err(NOT_A_MESSAGE);
    }
    let body: ErrorBody = serde_json::from_str(json).map_err(|_| NOT_A_MESSAGE)?;
    let mut message = body.message;
    message.truncate(message.floor_char_boundary(MAX_MESSAGE));
    let data = body.data.filter(|data| data.to_string().len() <= MAX_DATA);
    Ok(RpcError { code: body.code, message, data })
}

/// The answer with a result, which is JSON.
pub fn success(id: &str, result: &str) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}").into_bytes()
}

/// The answer with an error; without an id if it was unreadable.
pub fn failure(id: Option<&str>, error: &RpcError) -> Vec<u8> {
    let id = id.unwrap_or("null");
    // An error consists of texts and numbers, which always have a JSON form.
    let error = serde_json::to_string(error).unwrap_or_else(|_| "{}".to_owned());
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}").into_bytes()
}

/// A request, or a notification if `id` is `None`; `params` is JSON.
pub(crate) fn request(id: Option<u64>, method: &str, params: &str) -> String {
    let id = id.map(|id| id.to_string());
    let (before, id, behind) = id.as_ref().map_or(("", "", ""), |id| ("\"id\":", id.as_str(), ","));
    let start = ["{\"jsonrpc\":\"2.0\",", before, id, behind, "\"method\":"];
    let end = [&*quoted(method), ",\"params\":", params, "}"];
    [&start[..], &end[..]].concat().concat()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let body = br#" {"jsonrpc":"2.0","id":"a","method":"m","params":{"x":[1, 2]}}"#;
        let request = Request { id: "\"a\"", method: "m".to_owned(), params: r#"{"x":[1, 2]}"# };
        assert_eq!(read_message(body), Ok(Message::Request(request)));
        let notification = Message::Notification { method: "m".to_owned(), params: "{}" };
        let body = br#"{"jsonrpc":"2.0","method":"m","params":null}"#;
        assert_eq!(read_message(body), Ok(notification));
        for body in [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, r#"{"jsonrpc":"2.0","error":{}}"#] {
            assert_eq!(read_message(body.as_bytes()), Ok(Message::Response), "{body}");
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_are_refused_also_where_nobody_reads_them() {
        let body = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"other\":{\"a\xff\":1}}";
        let malformed = read_message(body).unwrap_err();
        assert_eq!(malformed.error.code, PARSE_ERROR);
        assert!(malformed.error.message.contains("UTF-8"));
    }

    #[test]
    fn what_is_no_message_gets_its_code_and_its_id() {
        let deep = "[".repeat(1_000_000);
        let deep_params = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{deep}"#);
        let long_id = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"m"}}"#, "x".repeat(300));
        for (body, code, id) in [
            ("", PARSE_ERROR, None),
            ("{", PARSE_ERROR, None),
            ("\u{feff}{}", PARSE_ERROR, None),
            ("[]", INVALID_REQUEST, None),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, INVALID_REQUEST, None),
            ("7", INVALID_REQUEST, None),
            ("null", INVALID_REQUEST, None),
            (r#"{"id":1,"method":"ping"}"#, INVALID_REQUEST, Some("1")),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, INVALID_REQUEST, Some("1")),
            (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, INVALID_REQUEST, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1}"#, INVALID_REQUEST, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, INVALID_REQUEST, Some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, INVALID_REQUEST, None),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}"#, INVALID_REQUEST, None),
            (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, INVALID_REQUEST, None),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, INVALID_REQUEST, None),
            (r#"{"jsonrpc":"2.0","id":1e3,"method":"m"}"#, INVALID_REQUEST, None),
            (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, INVALID_REQUEST, None),
            (&long_id, INVALID_REQUEST, None),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#, INVALID_PARAMS, Some("1")),
            (&deep, INVALID_REQUEST, None),
            (&deep_params, PARSE_ERROR, None),
        ] {
            let found = read_message(body.as_bytes()).unwrap_err();
            let shown = &body[..body.len().min(60)];
            assert_eq!((found.error.code, found.id), (code, id), "{shown}");
        }
    }

    #[test]
    fn replies_are_told_from_other_messages_and_other_requests() {
        let error = |code, message: &str| Ok(Some(Reply::Error(RpcError::new(code, message))));
        for (message, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#,
                Ok(Some(Reply::Result("{\"a\":1}".into()))),
            ),
            (r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}"#, error(-1, "no")),
            (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}"#, error(-1, "no")),
            (r#"{"jsonrpc":"2.0","error":{"code":-1}}"#, error(-1, "")),
            (r#"{"jsonrpc":"2.0","id":8,"result":{}}"#, Err(WRONG_ID)),
            (r#"{"jsonrpc":"2.0","id":"7","result":{}}"#, Err(WRONG_ID)),
            (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, Err(WRONG_ID)),
            (r#"{"jsonrpc":"2.0","id":8,"error":{"code":1}}"#, Err(WRONG_ID)),
            (r#"{"jsonrpc":"2.0","id":7,"result":[]}"#, Err(NO_OBJECT)),
            (r#"{"jsonrpc":"2.0","id":7,"result":null}"#, Err(NO_OBJECT)),
            (r#"{"jsonrpc":"2.0","id":7}"#, Err(NOT_A_MESSAGE)),
            (r#"{"jsonrpc":"2.0","id":7,"error":"no"}"#, Err(NOT_A_MESSAGE)),
            (r#"{"id":7,"result":{}}"#, Err(NOT_A_MESSAGE)),
            ("<html>", Err(NOT_A_MESSAGE)),
            (r#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#, Err(NOT_A_MESSAGE)),
            (r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#, Ok(None)),
            (r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage"}"#, Ok(None)),
        ] {
            assert_eq!(read_reply(message.as_bytes(), 7), expected, "{message}");
        }
    }

    #[test]
    fn what_a_server_says_about_an_error_is_cut() {
        let long = "é".repeat(5_000);
        let message = json!({"jsonrpc": "2.0", "id": 1,
            "error": {"code": 1, "message": long, "data": long}});
        let Ok(Some(Reply::Error(error))) = read_reply(message.to_string().as_bytes(), 1) else {
            panic!()
        };
        assert_eq!((error.message.len(), error.data), (1_024, None));
    }

    #[test]
    fn what_is_written_is_json() {
        let error = RpcError::new(-1, "a \"b\"\n").with_data(json!({"type": "x"}));
        for (bytes, expected) in [
            (
                success("\"7\"", "{\"a\":1}"),
                json!({"jsonrpc": "2.0", "id": "7", "result": {"a": 1}}),
            ),
            (
                failure(None, &error),
                json!({"jsonrpc": "2.0", "id": null,
                    "error": {"code": -1, "message": "a \"b\"\n", "data": {"type": "x"}}}),
            ),
            (
                request(Some(3), "a\"b", "{}").into_bytes(),
                json!({"jsonrpc": "2.0", "id": 3, "method": "a\"b", "params": {}}),
            ),
            (
                request(None, "m", "{}").into_bytes(),
                json!({"jsonrpc": "2.0", "method": "m", "params": {}}),
            ),
        ] {
            assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), expected);
        }
    }

    #[test]
    fn a_cancelled_request_is_named_in_any_spelling() {
        for (params, expected) in [
            (r#"{"requestId":"a b","reason":"x"}"#, Some(r#""a b""#)),
            (r#"{"requestId":"\u0061 b"}"#, Some(r#""a b""#)),
            (r#"{"requestId":"7"}"#, Some(r#""7""#)),
            (r#"{"requestId": 7}"#, Some("7")),
            ("{}", None),
            (r#"{"requestId":1,"requestId":2}"#, None),
        ] {
            assert_eq!(cancelled_request(params).as_deref(), expected, "{params}");
        }
    }
}
