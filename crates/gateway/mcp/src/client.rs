//! The gateway as a client of tool servers: what is sent, and what the answers mean.
//!
//! A caller with a connection drives it: a [`Handshake`] finds out how a server is spoken to and
//! gives a [`Connected`], which writes requests; an [`AnswerReader`] reads each answer.

mod answer;
mod event_stream;
mod handshake;

pub use answer::{Answer, AnswerReader, Fault, Head, Progress, Said};
pub use handshake::{Handshake, Step};

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::header_value::encode;
use crate::object::quoted;
use crate::rpc::{self, CANCELLED, UNSUPPORTED_VERSION};
use crate::version::{
    CAPABILITIES_KEY, CLIENT_INFO_KEY, METHOD_HEADER, NAME_HEADER, SESSION_HEADER, STATELESS,
    VERSION_HEADER, VERSION_KEY,
};

/// Which versions of MCP are spoken to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// The newest that it knows.
    #[default]
    Auto,
    /// One with sessions.
    Sessions,
    /// One without.
    Stateless,
}

/// How a server is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connected {
    /// Requests say all themselves.
    Stateless,
    /// After a handshake.
    Session {
        /// The version that it agreed to.
        version: &'static str,
        /// The session that it opened, if it has sessions.
        id: Option<String>,
    },
}

/// A message for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The id of a request; `None` for a notification.
    pub id: Option<u64>,
    /// Headers beside those of all messages.
    pub headers: Vec<(String, String)>,
    /// The body, JSON.
    pub body: String,
}

/// A call of a tool.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The name of the tool.
    pub name: &'a str,
    /// The arguments, an object as JSON.
    pub arguments: &'a str,
    /// Headers that repeat arguments, see
    /// [`Tool::param_headers`](crate::Tool::param_headers).
    pub headers: &'a [(String, String)],
}

impl Connected {
    /// Asks for a page of the list of tools.
    pub fn list_tools(&self, id: u64, cursor: Option<&str>) -> Outgoing {
        let mut params = Map::new();
        if let Some(cursor) = cursor {
            params.insert("cursor".to_owned(), Value::from(cursor));
        }
        self.add_meta(&mut params);
        let headers = self.headers("tools/list", None);
        let body = rpc::request(Some(id), "tools/list", &Value::Object(params).to_string());
        Outgoing { id: Some(id), headers, body }
    }

    /// Calls a tool.
    pub fn call_tool(&self, id: u64, call: Call<'_>) -> Outgoing {
        let mut headers = self.headers("tools/call", Some(call.name));
        let mut meta = "";
        if *self == Self::Stateless {
            headers.extend_from_slice(call.headers);
            meta = &STATELESS_META;
        }
        let name = quoted(call.name);
        let params = ["{\"name\":", &name, ",\"arguments\":", call.arguments, meta, "}"].concat();
        let body = rpc::request(Some(id), "tools/call", &params);
        Outgoing { id: Some(id), headers, body }
    }

    /// Gives up the request with this id. `None` where the end of its connection says so.
    pub fn cancel(&self, id: u64) -> Option<Outgoing> {
        if *self == Self::Stateless {
            return None;
        }
        Some(self.notification(CANCELLED, &json!({"requestId": id}).to_string()))
    }

    /// The notification that ends the handshake.
    fn initialized(&self) -> Outgoing {
        self.notification("notifications/initialized", "{}")
    }

    fn notification(&self, method: &str, params: &str) -> Outgoing {
        let body = rpc::request(None, method, params);
        Outgoing { id: None, headers: self.headers(method, None), body }
    }

    /// Whether an answer means that the server no longer knows how it is spoken to, and did not
    /// look at the request: it forgot the session, or speaks another version now.
    pub fn is_lost(&self, answer: &Answer) -> bool {
        match (self, &answer.said) {
            (Self::Session { id, .. }, _) => id.is_some() && answer.status == 404,
            (Self::Stateless, Said::Error(error)) => error.code == UNSUPPORTED_VERSION,
            _ => false,
        }
    }

    fn add_meta(&self, params: &mut Map<String, Value>) {
        if *self == Self::Stateless {
            params.insert("_meta".to_owned(), Value::Object(stateless_meta()));
        }
    }

    fn headers(&self, method: &str, name: Option<&str>) -> Vec<(String, String)> {
        let version = match self {
            Self::Stateless => STATELESS,
            Self::Session { version, .. } => version,
        };
        let mut headers = vec![(VERSION_HEADER.to_owned(), version.to_owned())];
        match self {
            Self::Stateless => {
                headers.push((METHOD_HEADER.to_owned(), method.to_owned()));
                headers.extend(name.map(|name| (NAME_HEADER.to_owned(), encode(name))));
            }
            Self::Session { id, .. } => {
                headers.extend(id.iter().map(|id| (SESSION_HEADER.to_owned(), id.clone())));
            }
        }
        headers
    }
}

/// [`stateless_meta`] as the text of a member, which each call carries.
static STATELESS_META: LazyLock<String> =
    LazyLock::new(|| format!(",\"_meta\":{}", Value::Object(stateless_meta())));

fn stateless_meta() -> Map<String, Value> {
    let members = [
        (VERSION_KEY, Value::from(STATELESS)),
        (CAPABILITIES_KEY, json!({})),
        (CLIENT_INFO_KEY, client_info()),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn client_info() -> Value {
    json!({"name": "plimsoll-gateway", "version": env!("CARGO_PKG_VERSION")})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::RpcError;

    #[test]
    fn calls_are_written_in_both_eras() {
        let extra = [("mcp-param-x".to_owned(), "1".to_owned())];
        let arguments = r#"{"x": 1e400}"#;
        let call = Call { name: "a/b", arguments, headers: &extra };
        let stateless = Connected::Stateless.call_tool(7, call);
        let names: Vec<&str> = stateless.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-x"]);
        assert!(stateless.body.contains(r#""arguments":{"x": 1e400}"#), "{}", stateless.body);
        assert!(stateless.body.contains(VERSION_KEY) && stateless.body.contains(CAPABILITIES_KEY));
        let session = Connected::Session { version: "2025-11-25", id: Some("s1".to_owned()) }
            .call_tool(8, call);
        let headers = [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", "s1")];
        assert_eq!(
            session.headers,
            headers.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert_eq!(
            session.body,
            r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"a/b","arguments":{"x": 1e400}}}"#
        );
    }

    #[test]
    fn a_request_of_a_session_is_given_up_by_a_notification() {
        let session = Connected::Session { version: "2025-11-25", id: Some("s1".to_owned()) };
        let cancel = session.cancel(8).unwrap();
        assert_eq!(cancel.id, None);
        assert!(cancel.headers.contains(&("mcp-session-id".to_owned(), "s1".to_owned())));
        assert_eq!(
            cancel.body,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}"#
        );
        assert_eq!(Connected::Stateless.cancel(8), None);
    }

    #[test]
    fn a_session_is_lost_where_the_server_forgot_it() {
        let answer = |status, code| Answer {
            status,
            session: None,
            said: Said::Error(RpcError::new(code, "x")),
        };
        let session =
            |id: Option<&str>| Connected::Session { version: "v", id: id.map(str::to_owned) };
        assert!(session(Some("s")).is_lost(&answer(404, -32_600)));
        assert!(!session(Some("s")).is_lost(&answer(400, -32_600)));
        assert!(!session(None).is_lost(&answer(404, -32_600)));
        assert!(Connected::Stateless.is_lost(&answer(400, UNSUPPORTED_VERSION)));
        assert!(!Connected::Stateless.is_lost(&answer(404, -32_601)));
    }
}
