//! JSON-RPC 2.0: reading requests of A2A, and writing errors.

use hyper::{HeaderMap, Response, StatusCode};
use plimsoll_gateway_mcp::rpc::{
    INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR,
};
use serde::Deserialize;
use serde_json::error::Category;
use serde_json::{Map, Value, json};

use crate::exchange::respond::json as json_response;
use crate::exchange::response_body::ResponseBody;
use crate::http::error_response::ErrorResponse;
use crate::layers::agent_layer::VERSION_HEADER;

/// A2A: an unsupported version.
pub(super) const VERSION_NOT_SUPPORTED: i64 = -32_009;
/// The gateway refused; the data has the reason.
const REFUSED: i64 = -32_000;

/// Whether a version of A2A has a method.
fn has_method(version: &str, method: &str) -> bool {
    let lines = include_str!("methods.txt").lines().filter_map(|line| line.split_once(": "));
    let own = lines.filter(|(own, _)| *own == version);
    own.flat_map(|(_, methods)| methods.split(' ')).any(|known| known == method)
}

/// Why a request is not forwarded.
#[derive(Debug, PartialEq)]
pub(super) struct RpcError {
    /// The id of the request, if it was readable.
    id: Value,
    code: i64,
    message: String,
    /// Machine-readable: `agent_loop`.
    pub(super) kind: &'static str,
}

/// A request. Duplicate members are refused, because two readers might use different ones.
#[derive(Debug, Deserialize)]
struct Members {
    jsonrpc: Option<Value>,
    #[serde(default)]
    id: Value,
    method: Option<Value>,
    params: Option<Value>,
    /// Parsed completely, so that invalid or deep JSON is found anywhere.
    #[serde(flatten)]
    _others: Map<String, Value>,
}

/// Reads an A2A request in the version of the header `a2a-version`, by default 0.3. Returns its id.
///
/// # Errors
/// The error for the client.
pub(super) fn read(body: &[u8], headers: &HeaderMap) -> Result<Value, RpcError> {
    let Members { jsonrpc, id, method, params, .. } =
        serde_json::from_slice(body).map_err(|error| match error.classify() {
            Category::Data => invalid(Value::Null, misfit(body)),
            _ => RpcError::new(Value::Null, PARSE_ERROR, "the body is not JSON"),
        })?;
    let is_id = id.is_null() || id.is_string() || id.is_i64() || id.is_u64();
    if !is_id {
        return Err(invalid(Value::Null, "`id` is a text, a whole number or null"));
    }
    if jsonrpc.as_ref().and_then(Value::as_str) != Some("2.0") {
        return Err(invalid(id, "`jsonrpc` is \"2.0\""));
    }
    let Some(Value::String(method)) = method else {
        return Err(invalid(id, "`method` is a text"));
    };
    check_version(&id, &method, headers)?;
    if params.is_some_and(|params| !params.is_object()) {
        return Err(RpcError::new(id, INVALID_PARAMS, "`params` is an object"));
    }
    Ok(id)
}

/// Why JSON is not a request.
fn misfit(body: &[u8]) -> &'static str {
    match body.trim_ascii_start().first() {
        Some(b'{') => "a member appears twice",
        Some(b'[') => "batches are not supported",
        _ => "the request is not an object",
    }
}

fn check_version(id: &Value, method: &str, headers: &HeaderMap) -> Result<(), RpcError> {
    let version = headers.get(&VERSION_HEADER).map(|value| value.to_str().unwrap_or("?").trim());
    let (old, current) = match version {
        None | Some("") => (true, false),
        Some(version) => (is_version(version, "0.3"), is_version(version, "1.0")),
    };
    if !old && !current {
        let message = "unsupported version of A2A: use 1.0 or 0.3";
        return Err(RpcError::new(id.clone(), VERSION_NOT_SUPPORTED, message));
    }
    if has_method("0.3", method) {
        return Ok(());
    }
    if !has_method("1.0", method) {
        return Err(RpcError::new(id.clone(), METHOD_NOT_FOUND, "A2A has no such method"));
    }
    if current {
        return Ok(());
    }
    let message = "this method needs the header `A2A-Version: 1.0`";
    Err(RpcError::new(id.clone(), VERSION_NOT_SUPPORTED, message))
}

impl RpcError {
    fn new(id: Value, code: i64, message: &str) -> Self {
        Self { id, code, message: message.to_owned(), kind: "invalid_request" }
    }

    /// An error of the gateway, for the request with this id.
    pub(super) fn of(error: ErrorResponse, id: Value) -> Self {
        let code = if error.status.is_server_error() { INTERNAL_ERROR } else { REFUSED };
        Self { id, code, message: error.message, kind: error.kind }
    }

    /// With status 200, as A2A requires.
    pub(super) fn response(&self) -> Response<ResponseBody> {
        // The form of errors of A2A 1.0 (google.rpc.ErrorInfo); in 0.3 the data may be anything.
        let info = json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": self.kind,
            "domain": "gateway",
        });
        let error = json!({"code": self.code, "message": self.message, "data": [info]});
        let body = json!({"jsonrpc": "2.0", "id": self.id, "error": error});
        json_response(StatusCode::OK, body.to_string())
    }
}

fn invalid(id: Value, message: &str) -> RpcError {
    RpcError::new(id, INVALID_REQUEST, message)
}

/// Whether a version is the wanted one, ignoring the patch number.
fn is_version(version: &str, wanted: &str) -> bool {
    version.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(version: Option<&str>, body: &str) -> Result<Value, (i64, Value)> {
        let mut headers = HeaderMap::new();
        if let Some(version) = version {
            headers.insert("a2a-version", version.parse().unwrap());
        }
        read(body.as_bytes(), &headers).map_err(|error| (error.code, error.id))
    }

    #[test]
    fn requests_are_read_and_nonsense_gets_its_code() {
        let null = Value::Null;
        // In a member that nobody reads.
        let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        for (body, code, id) in [
            ("", -32_700, null.clone()),
            ("{", -32_700, null.clone()),
            ("[]", -32_600, null.clone()),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]"#, -32_600, null.clone()),
            ("1", -32_600, null.clone()),
            (" \"x\"", -32_600, null.clone()),
            ("nonsense", -32_700, null.clone()),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get"}}"#, -32_700, null.clone()),
            (deep.as_str(), -32_700, null.clone()),
            (r#"{"id":1,"method":"tasks/get"}"#, -32_600, json!(1)),
            (r#"{"jsonrpc":"1.0","id":1,"method":"tasks/get"}"#, -32_600, json!(1)),
            (r#"{"jsonrpc":"2.0","id":"a"}"#, -32_600, json!("a")),
            (r#"{"jsonrpc":"2.0","id":"a","method":7}"#, -32_600, json!("a")),
            (r#"{"jsonrpc":"2.0","id":true,"method":"tasks/get"}"#, -32_600, null.clone()),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"tasks/get"}"#, -32_600, null.clone()),
            (r#"{"jsonrpc":"2.0","id":{},"method":"tasks/get"}"#, -32_600, null.clone()),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#, -32_601, json!(1)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":[]}"#, -32_602, json!(1)),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"x","method":"tasks/get"}"#,
                -32_600,
                null.clone(),
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask"}"#, -32_009, json!(1)),
        ] {
            assert_eq!(read_as(None, body), Err((code, id)), "{body}");
        }
        for id in [json!(1), json!("a"), null, json!(-3)] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tasks/get"}}"#);
            assert_eq!(read_as(None, &body), Ok(id));
        }
    }

    #[test]
    fn versions_and_their_methods() {
        let old = r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":{}}"#;
        let current = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{}}"#;
        for (version, old_is_fine, current_is_fine) in [
            (None, true, false),
            (Some(""), true, false),
            (Some("0.3"), true, false),
            (Some("0.3.0"), true, false),
            (Some("1.0"), true, true),
            (Some("1.0.2"), true, true),
            (Some("1.00"), false, false),
            (Some("2.0"), false, false),
            (Some("0.2"), false, false),
            (Some("x"), false, false),
        ] {
            let unsupported = Err((-32_009, json!(1)));
            let result = |fine: bool| if fine { Ok(json!(1)) } else { unsupported.clone() };
            assert_eq!(read_as(version, old), result(old_is_fine), "{version:?}");
            assert_eq!(read_as(version, current), result(current_is_fine), "{version:?}");
        }
    }
}
