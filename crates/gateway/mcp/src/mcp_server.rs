//! The gateway as a tool server: the era and content of a request, and the answers that need no
//! tool.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::header_value::decode;
use crate::object::{is_object, present, read_object};
use crate::rpc::{
    HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Malformed, Message,
    Request, RpcError, UNSUPPORTED_VERSION, read_message,
};
use crate::tool::Tool;
use crate::version::{
    self, CAPABILITIES_KEY, LATEST_WITH_SESSIONS, STATELESS, VERSION_KEY, with_sessions,
};

/// Tools on one page of the list.
const PAGE: usize = 100;

/// The request headers that MCP uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headers<'a> {
    /// The protocol version.
    pub version: Option<&'a str>,
    /// The method, as in the body.
    pub method: Option<&'a str>,
    /// The name of the tool, as in the body.
    pub name: Option<&'a str>,
}

/// The era of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Up to 2025-11-25, with the version of the header.
    Sessions(Option<&'static str>),
    /// From 2026-07-28 on.
    Stateless,
}

/// A refusal: the HTTP status, the id of the request as JSON, and the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The id of the request, as JSON, if it was readable.
    pub id: Option<String>,
    /// The error.
    pub error: RpcError,
}

impl Refusal {
    /// A refusal without a request id.
    pub fn new(status: u16, problem: &str) -> Self {
        Self { status, id: None, error: RpcError::new(INVALID_REQUEST, problem) }
    }
}

impl Era {
    /// The era of a request with this version header.
    ///
    /// # Errors
    /// The gateway does not support the version.
    pub fn from_version(version: Option<&str>) -> Result<Self, RpcError> {
        match version {
            Some(STATELESS) => Ok(Self::Stateless),
            None => Ok(Self::Sessions(None)),
            Some(other) => {
                let known = with_sessions(other).ok_or_else(|| unsupported(other))?;
                Ok(Self::Sessions(Some(known)))
            }
        }
    }

    /// The HTTP status of an answer with this error.
    pub const fn status_of(self, code: i64) -> u16 {
        match (self, code) {
            (Self::Stateless, METHOD_NOT_FOUND) => 404,
            (Self::Stateless, INVALID_PARAMS | HEADER_MISMATCH | UNSUPPORTED_VERSION) => 400,
            _ => 200,
        }
    }

    /// A result, an object as JSON, with the additional members of this era.
    pub fn complete(self, method: &str, result: String) -> String {
        if self != Self::Stateless {
            return result;
        }
        let mut extra = String::from("{\"resultType\":\"complete\"");
        if matches!(method, "tools/list" | "server/discover") {
            extra.push_str(",\"ttlMs\":0,\"cacheScope\":\"private\"");
        }
        let rest = result.trim_start().strip_prefix('{').unwrap_or("}").trim_start();
        if !rest.starts_with('}') {
            extra.push(',');
        }
        extra + rest
    }
}

fn unsupported(version: &str) -> RpcError {
    let requested: String = version.chars().take(64).collect();
    let data = json!({"supported": version::ALL, "requested": requested});
    RpcError::new(UNSUPPORTED_VERSION, "Unsupported protocol version").with_data(data)
}

/// Reads a message and determines its era.
///
/// # Errors
/// It is not a message, its version is unsupported, or it contradicts itself.
pub fn read<'a>(headers: &Headers<'_>, body: &'a [u8]) -> Result<(Era, Message<'a>), Refusal> {
    let message = read_message(body).map_err(|Malformed { id, error }| Refusal {
        status: 400,
        id: id.map(str::to_owned),
        error,
    })?;
    let id = match &message {
        Message::Request(request) => Some(request.id.to_owned()),
        _ => None,
    };
    let refuse = |error| Refusal { status: 400, id: id.clone(), error };
    let era = Era::from_version(headers.version).map_err(refuse)?;
    match &message {
        Message::Request(request) => check(era, headers, request).map_err(refuse)?,
        Message::Response if era == Era::Stateless => {
            return Err(Refusal::new(400, "clients must not send responses in this version"));
        }
        _ => {}
    }
    Ok((era, message))
}

#[derive(Deserialize)]
struct WithMeta<'a> {
    #[serde(borrow, rename = "_meta", default)]
    meta: Option<BTreeMap<String, &'a RawValue>>,
    #[serde(borrow, default, deserialize_with = "present")]
    name: Option<&'a RawValue>,
}

/// Checks that a stateless request is self-contained, in the order of the official servers: the
/// required members, then the headers. A version only in the body counts as a missing header.
fn check(era: Era, headers: &Headers<'_>, request: &Request<'_>) -> Result<(), RpcError> {
    let params: WithMeta<'_> = read_object(request.params)
        .map_err(|_| RpcError::invalid_params("`_meta` must be an object, given once"))?;
    let meta = params.meta.unwrap_or_default();
    let said = meta.get(VERSION_KEY);
    if era != Era::Stateless {
        return match (said, headers.version) {
            (Some(_), None) => Err(mismatch("the header MCP-Protocol-Version is missing")),
            _ => Ok(()),
        };
    }
    for key in [VERSION_KEY, CAPABILITIES_KEY] {
        if !meta.contains_key(key) {
            return Err(RpcError::invalid_params(format!("`params._meta` has no {key}")));
        }
    }
    let said = said.and_then(|said| serde_json::from_str::<String>(said.get()).ok());
    if said.as_deref() != headers.version {
        return Err(mismatch("MCP-Protocol-Version is not the version in `_meta`"));
    }
    if headers.method != Some(request.method.as_str()) {
        return Err(mismatch("Mcp-Method is not the method"));
    }
    let name = params.name.and_then(|name| serde_json::from_str::<String>(name.get()).ok());
    if request.method == "tools/call" && name.is_some() && headers.name.and_then(decode) != name {
        return Err(mismatch("Mcp-Name is not the name"));
    }
    Ok(())
}

fn mismatch(problem: &str) -> RpcError {
    RpcError::new(HEADER_MISMATCH, format!("Header mismatch: {problem}"))
}

/// The parameters of `tools/call`: the name, and the arguments as JSON.
///
/// # Errors
/// The parameters are invalid.
pub fn read_call(params: &str) -> Result<(String, &str), RpcError> {
    #[derive(Deserialize)]
    struct Params<'a> {
        name: String,
        #[serde(borrow, default, deserialize_with = "present")]
        arguments: Option<&'a RawValue>,
    }
    let params: Params<'_> =
        read_object(params).map_err(|_| RpcError::invalid_params("`name` must be a string"))?;
    match params.arguments.map(RawValue::get) {
        None | Some("null") => Ok((params.name, "{}")),
        Some(arguments) if is_object(arguments) => Ok((params.name, arguments)),
        Some(_) => Err(RpcError::invalid_params("`arguments` must be an object")),
    }
}

/// The version for a new session: the requested one if supported, or else the latest.
///
/// # Errors
/// The parameters of `initialize` lack something.
pub fn negotiate(params: &str) -> Result<&'static str, RpcError> {
    let params: Map<String, Value> = read_object(params).map_err(RpcError::invalid_params)?;
    for key in ["capabilities", "clientInfo"] {
        if !params.get(key).is_some_and(Value::is_object) {
            return Err(RpcError::invalid_params(format!("`{key}` must be an object")));
        }
    }
    let requested = params.get("protocolVersion").and_then(Value::as_str);
    let requested =
        requested.ok_or_else(|| RpcError::invalid_params("`protocolVersion` must be a string"))?;
    Ok(with_sessions(requested).unwrap_or(LATEST_WITH_SESSIONS))
}

/// The result of `initialize`.
pub fn initialized(version: &str, name: &str) -> String {
    let (capabilities, info) = (capabilities(), info(name));
    json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": info})
        .to_string()
}

/// The result of `server/discover`.
pub fn discovered(name: &str) -> String {
    json!({
        "supportedVersions": version::ALL,
        "capabilities": capabilities(),
        "_meta": {"io.modelcontextprotocol/serverInfo": info(name)},
    })
    .to_string()
}

fn capabilities() -> Value {
    json!({"tools": {}})
}

fn info(name: &str) -> Value {
    json!({"name": name, "version": env!("CARGO_PKG_VERSION")})
}

/// The result of `tools/list`: one page of these tools, which are sorted by name. A cursor is the
/// name of the last tool of the previous page.
///
/// # Errors
/// The cursor is unknown.
pub fn list<'t>(tools: impl Iterator<Item = &'t Tool>, params: &str) -> Result<String, RpcError> {
    #[derive(Deserialize)]
    struct Params {
        cursor: Option<String>,
    }
    let params: Params = read_object(params).map_err(|_| unknown_cursor())?;
    let mut tools = tools
        .skip_while(|tool| params.cursor.as_deref().is_some_and(|cursor| *tool.name < *cursor));
    if let Some(cursor) = &params.cursor {
        tools.next().filter(|tool| *tool.name == **cursor).ok_or_else(unknown_cursor)?;
    }
    let mut page: Vec<&Tool> = tools.take(PAGE + 1).collect();
    let more = page.len() > PAGE;
    page.truncate(PAGE);
    let members: Vec<_> = page.iter().map(|tool| tool.members()).collect();
    let mut result = json!({"tools": members});
    if let Some(last) = page.last().filter(|_| more) {
        result["nextCursor"] = Value::from(&*last.name);
    }
    Ok(result.to_string())
}

fn unknown_cursor() -> RpcError {
    RpcError::invalid_params("Unknown cursor")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::PARSE_ERROR;
    use crate::tool::ToolTable;

    fn stateless(method: &str, extra: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"_meta":{{"{VERSION_KEY}":"{STATELESS}","{CAPABILITIES_KEY}":{{}}}}{extra}}}}}"#
        )
    }

    #[test]
    fn a_stateless_request_says_all_itself() {
        let call = stateless("tools/call", r#","name":"é""#);
        let none = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned();
        let full = Headers {
            version: Some(STATELESS),
            method: Some("tools/call"),
            name: Some("=?base64?w6k=?="),
        };
        let cases = [
            (&call, full, None),
            (&call, Headers { name: Some("e"), ..full }, Some(HEADER_MISMATCH)),
            (&call, Headers { name: None, ..full }, Some(HEADER_MISMATCH)),
            (&call, Headers { method: Some("ping"), ..full }, Some(HEADER_MISMATCH)),
            (&call, Headers { method: None, ..full }, Some(HEADER_MISMATCH)),
            (&call, Headers { version: None, ..full }, Some(HEADER_MISMATCH)),
            (&call, Headers { version: Some("2027-01-01"), ..full }, Some(UNSUPPORTED_VERSION)),
            (&none, Headers { method: Some("ping"), ..full }, Some(INVALID_PARAMS)),
            (&none, Headers::default(), None),
            (&none, Headers { version: Some("2025-06-18"), ..full }, None),
            (&none, Headers { version: Some("2024-11-05"), ..full }, Some(UNSUPPORTED_VERSION)),
        ];
        for (body, headers, code) in cases {
            let found = read(&headers, body.as_bytes()).err();
            let found = found.map(|refusal| {
                assert_eq!((refusal.status, refusal.id.as_deref()), (400, Some("1")));
                refusal.error.code
            });
            assert_eq!(found, code, "{headers:?} {body}");
        }
        let garbage = read(&Headers::default(), b"{").unwrap_err();
        assert_eq!((garbage.error.code, garbage.id), (PARSE_ERROR, None));
    }

    #[test]
    fn results_of_the_stateless_era_say_that_they_are_complete() {
        for (method, result, expected) in [
            ("tools/call", r#"{"a":1}"#, r#"{"resultType":"complete","a":1}"#),
            ("ping", "{}", r#"{"resultType":"complete"}"#),
            (
                "tools/list",
                r#" { "tools":[]}"#,
                r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}"#,
            ),
        ] {
            assert_eq!(Era::Stateless.complete(method, result.to_owned()), expected);
            assert_eq!(Era::Sessions(None).complete(method, result.to_owned()), result);
        }
    }

    #[test]
    fn a_call_has_a_name_and_arguments_that_are_an_object() {
        assert_eq!(read_call(r#"{"name":"a"}"#), Ok(("a".to_owned(), "{}")));
        assert_eq!(read_call(r#"{"name":"a","arguments":null}"#), Ok(("a".to_owned(), "{}")));
        let call = read_call(r#"{"arguments":{"x": 1},"name":"a\u002fb","_meta":{}}"#);
        assert_eq!(call, Ok(("a/b".to_owned(), r#"{"x": 1}"#)));
        for params in [
            "{}",
            r#"{"name":7}"#,
            r#"{"name":"a","name":"b"}"#,
            r#"{"name":"a","arguments":[1]}"#,
            r#"{"name":"a","arguments":"{}"}"#,
        ] {
            assert_eq!(read_call(params).unwrap_err().code, INVALID_PARAMS, "{params}");
        }
    }

    #[test]
    fn a_version_is_agreed_on() {
        let params = |version: &str| {
            format!(r#"{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{}}}}"#)
        };
        for (asked, agreed) in [
            ("2025-11-25", "2025-11-25"),
            ("2025-06-18", "2025-06-18"),
            ("2024-11-05", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("", "2025-11-25"),
        ] {
            assert_eq!(negotiate(&params(asked)), Ok(agreed), "{asked}");
        }
        let lacking = r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#;
        assert_eq!(negotiate(lacking).unwrap_err().code, INVALID_PARAMS);
    }

    #[test]
    fn lists_have_pages_and_cursors() {
        let all: Vec<Value> = (0..250)
            .map(|n: usize| json!({"name": format!("t{n:03}"), "inputSchema": {}}))
            .collect();
        let mut table = ToolTable::default();
        table.add(&json!({"tools": all}).to_string()).unwrap();
        let tools = table.into_tools();
        let (mut params, mut sizes) = ("{}".to_owned(), Vec::new());
        loop {
            let page: Value = serde_json::from_str(&list(tools.iter(), &params).unwrap()).unwrap();
            sizes.push(page["tools"].as_array().unwrap().len());
            let Some(cursor) = page["nextCursor"].as_str() else { break };
            params = json!({"cursor": cursor}).to_string();
        }
        assert_eq!(sizes, [100, 100, 50]);
        for params in [r#"{"cursor":"nowhere"}"#, r#"{"cursor":7}"#, r#"{"cursor":"zzz"}"#] {
            assert_eq!(list(tools.iter(), params).unwrap_err().code, INVALID_PARAMS, "{params}");
        }
    }
}
