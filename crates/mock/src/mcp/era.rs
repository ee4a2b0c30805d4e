//! The two eras of MCP: versions with sessions, and versions whose requests say all themselves.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use serde_json::{Value, json};

use super::{LATEST_STATELESS, VERSIONS, WITH_SESSIONS};
use crate::rpc::{INVALID_PARAMS, METHOD_NOT_FOUND, Object, RpcError};

/// Headers and body disagree.
const HEADER_MISMATCH: i64 = -32_020;
/// The server does not speak the version.
const UNSUPPORTED_VERSION: i64 = -32_022;

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

pub(super) const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";

/// The era of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// Up to 2025-11-25. Without a header the session says the version.
    Sessions(Option<&'static str>),
    /// From 2026-07-28 on.
    Stateless,
}

impl Era {
    /// The era of a request with this version header (or none), whose parameters are known for
    /// `POST` only.
    ///
    /// # Errors
    /// The mock does not speak the version, or speaks it only if the header says so, too.
    pub(super) fn from_request(
        version: Option<&str>,
        params: Option<&Object>,
    ) -> Result<Self, RpcError> {
        match version {
            Some(LATEST_STATELESS) => Ok(Self::Stateless),
            Some(version) => match WITH_SESSIONS.iter().find(|known| **known == version) {
                Some(known) => Ok(Self::Sessions(Some(known))),
                None => Err(unsupported(version)),
            },
            None if params.and_then(|params| params.get("_meta")?.get(VERSION_KEY)).is_some() => {
                Err(mismatch("the MCP-Protocol-Version header is missing"))
            }
            None => Ok(Self::Sessions(None)),
        }
    }

    pub(super) const fn has_sessions(self) -> bool {
        matches!(self, Self::Sessions(_))
    }

    /// The HTTP status of an answer with this error.
    pub(super) const fn status_of(self, code: i64) -> u16 {
        match (self, code) {
            (Self::Stateless, METHOD_NOT_FOUND) => 404,
            (Self::Stateless, INVALID_PARAMS) => 400,
            _ => 200,
        }
    }

    /// Adds what results of this era carry.
    pub(super) fn complete(self, method: &str, result: &mut Value) {
        if self.has_sessions() {
            return;
        }
        result["resultType"] = json!("complete");
        let cacheable = method.ends_with("/list") || method == "resources/read";
        if cacheable || method == "server/discover" {
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("public");
        }
    }
}

/// Checks that a stateless request describes itself, in the order of the official servers: the
/// required keys, the headers, the version.
///
/// # Errors
/// What is missing or does not agree.
pub(super) fn check_stateless(
    headers: &HeaderMap,
    method: &str,
    params: &Object,
) -> Result<(), RpcError> {
    let meta = params.get("_meta").and_then(Value::as_object);
    let meta = meta.ok_or_else(|| RpcError::invalid_params("`params._meta` must be an object"))?;
    for key in [VERSION_KEY, CAPABILITIES_KEY] {
        if !meta.contains_key(key) {
            return Err(RpcError::invalid_params(format!("`params._meta` has no {key}")));
        }
    }
    if meta[VERSION_KEY].as_str() != header(headers, VERSION_HEADER).as_deref() {
        return Err(mismatch("MCP-Protocol-Version does not match the version in _meta"));
    }
    if header(headers, METHOD_HEADER).as_deref() != Some(method) {
        return Err(mismatch("Mcp-Method does not match the method"));
    }
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    let named = params.get(key).and_then(Value::as_str);
    if named.is_some() && decoded(header(headers, NAME_HEADER)).as_deref() != named {
        return Err(mismatch(&format!("Mcp-Name does not match `{key}`")));
    }
    Ok(())
}

/// A header that occurs once, as text.
pub(super) fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut all = headers.get_all(name).iter();
    let value = all.next()?.to_str().ok()?;
    all.next().is_none().then(|| value.to_owned())
}

/// A value that is no plain ASCII comes as `=?base64?...?=`.
fn decoded(value: Option<String>) -> Option<String> {
    let value = value?;
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value),
    }
}

fn mismatch(problem: &str) -> RpcError {
    RpcError::new(HEADER_MISMATCH, format!("Header mismatch: {problem}"))
}

fn unsupported(version: &str) -> RpcError {
    RpcError::new(UNSUPPORTED_VERSION, "Unsupported protocol version")
        .with_data(json!({"supported": VERSIONS, "requested": version}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_base64_are_decoded_and_only_in_their_one_form() {
        // Encoded with coreutils' base64.
        for (header, expected) in [
            ("plain", Some("plain")),
            ("=?base64?SGVsbG8sIOS4lueVjA==?=", Some("Hello, 世界")),
            ("=?base64?IHBhZGRlZCA=?=", Some(" padded ")),
            ("=?base64??=", Some("")),
            ("=?base64?IHBhZGRlZCB=?=", None),
            ("=?base64?SGVsbG8?=", None),
            ("=?base64?S===?=", None),
            ("=?base64?*abc?=", None),
            ("=?base64?/w==?=", None),
        ] {
            assert_eq!(decoded(Some(header.to_owned())).as_deref(), expected, "{header}");
        }
    }
}
