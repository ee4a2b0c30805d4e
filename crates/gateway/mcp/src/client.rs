//! The gateway as a client of tool servers: requests and their answers.
//!
//! The caller owns the connection: a [`Handshake`] negotiates the protocol and returns a
//! [`Connected`], which writes requests; an [`AnswerReader`] reads each answer.

mod handshake;

use std::borrow::Cow;
use std::sync::LazyLock;

pub use handshake::{Handshake, Step};
use plimsoll_gateway_dialect::{EventSplitter, event_data};
use serde_json::{Map, Value, json};

use crate::header_value::encode;
use crate::object::quoted;
use crate::rpc::{self, CANCELLED, Reply, RpcError, UNSUPPORTED_VERSION, read_refusal, read_reply};
use crate::version::{
    CAPABILITIES_KEY, CLIENT_INFO_KEY, METHOD_HEADER, NAME_HEADER, SESSION_HEADER, STATELESS,
    VERSION_HEADER, VERSION_KEY,
};

/// The versions of MCP to use with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(serde::Serialize, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// the newest that the server supports
    #[default]
    Auto,
    /// versions with sessions, 2025-06-18 and 2025-11-25
    Sessions,
    /// the version without sessions, 2026-07-28
    Stateless,
}

/// The negotiated protocol of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connected {
    /// Requests are self-contained.
    Stateless,
    /// After a handshake.
    Session {
        /// The negotiated version.
        version: &'static str,
        /// The session id, if the server uses sessions.
        id: Option<String>,
    },
}

/// A message for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The id of a request; `None` for a notification.
    pub id: Option<u64>,
    /// Headers in addition to the common ones.
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

    /// Cancels the request with this id. `None` if closing the connection cancels it.
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

    /// Whether an answer means that the server did not process the request, because it lost the
    /// session or now speaks another version.
    pub fn is_lost(&self, answer: &Answer) -> bool {
        match (self, &answer.body) {
            (Self::Session { id, .. }, _) => id.is_some() && answer.status == 404,
            (Self::Stateless, ReplyBody::Error(error)) => error.code == UNSUPPORTED_VERSION,
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

/// [`stateless_meta`] as the text of a member, for every call.
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

/// The head of an HTTP response, reduced to the fields that MCP uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head<'a> {
    /// Its status.
    pub status: u16,
    /// Its `content-type`.
    pub content_type: &'a str,
    /// The session header.
    pub session: Option<&'a str>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The session header.
    pub session: Option<String>,
    /// The body.
    pub body: ReplyBody,
}

/// The body of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyBody {
    /// The result, an object as JSON.
    Result(String),
    /// An error of JSON-RPC.
    Error(RpcError),
    /// The server accepted a notification.
    Accepted,
    /// An error status without a usable body.
    Status,
}

/// Whether more of an answer must be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More may come.
    More,
    /// The answer is complete; the rest is not needed.
    Complete,
}

/// Reads one answer from the pieces of its body.
#[derive(Debug)]
pub struct AnswerReader {
    /// The id of the request; `None` for a notification.
    id: Option<u64>,
    status: u16,
    session: Option<String>,
    body: Body,
    /// Bytes that may still be read.
    left: usize,
    found: Option<Reply>,
}

#[derive(Debug)]
enum Body {
    Json(Vec<u8>),
    Events(EventSplitter),
    /// Ignored: another content type, or an error status.
    Ignored,
}

impl AnswerReader {
    /// The answer to a request with this id, or to a notification. At most `limit` bytes are read,
    /// even from a stream.
    pub fn new(id: Option<u64>, head: &Head<'_>, limit: usize) -> Self {
        let kind = head.content_type.split(';').next().unwrap_or_default().trim();
        let body = if kind.eq_ignore_ascii_case("application/json") {
            Body::Json(Vec::new())
        } else if kind.eq_ignore_ascii_case("text/event-stream") && is_success(head.status) {
            Body::Events(EventSplitter::with_limit(limit))
        } else {
            Body::Ignored
        };
        let session = head.session.map(str::to_owned);
        Self { id, status: head.status, session, body, left: limit, found: None }
    }

    /// Takes a piece of the body.
    ///
    /// # Errors
    /// The problem of an invalid response.
    pub fn feed(&mut self, piece: &[u8]) -> Result<Progress, &'static str> {
        self.left = self.left.checked_sub(piece.len()).ok_or(TOO_LARGE)?;
        let Some(id) = self.id else { return Ok(Progress::More) };
        match &mut self.body {
            Body::Ignored => {}
            Body::Json(bytes) => bytes.extend_from_slice(piece),
            Body::Events(stream) => {
                let mut events = Vec::new();
                let fed = stream.feed(piece, |event| {
                    events.extend(event_data(event).map(Cow::into_owned));
                    Ok(())
                });
                fed.map_err(|_| TOO_LARGE)?;
                self.read_events(events, id)?;
            }
        }
        Ok(if self.found.is_some() { Progress::Complete } else { Progress::More })
    }

    fn read_events(&mut self, events: Vec<Vec<u8>>, id: u64) -> Result<(), &'static str> {
        for data in events {
            // Bytes after the answer are ignored.
            if self.found.is_some() {
                break;
            }
            self.found = read_reply(&data, id)?;
        }
        Ok(())
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// The problem of an invalid response.
    pub fn finish(mut self) -> Result<Answer, &'static str> {
        let (status, session) = (self.status, self.session.take());
        let body = self.body()?;
        Ok(Answer { status, session, body })
    }

    fn body(self) -> Result<ReplyBody, &'static str> {
        let Some(id) = self.id else {
            return Ok(if is_success(self.status) {
                ReplyBody::Accepted
            } else {
                ReplyBody::Status
            });
        };
        if !is_success(self.status) {
            let error = match &self.body {
                Body::Json(bytes) => read_refusal(bytes),
                _ => None,
            };
            return Ok(error.map_or(ReplyBody::Status, ReplyBody::Error));
        }
        let reply = match self.body {
            Body::Json(bytes) => read_reply(&bytes, id)?,
            Body::Events(_) => self.found,
            Body::Ignored if self.status == 202 => {
                return Err("it accepted the request but did not answer");
            }
            Body::Ignored => return Err("its answer is neither JSON nor a stream of events"),
        };
        match reply {
            Some(Reply::Result(result)) => Ok(ReplyBody::Result(result)),
            Some(Reply::Error(error)) => Ok(ReplyBody::Error(error)),
            None => Err("its answer ended early"),
        }
    }
}

const TOO_LARGE: &str = "its answer is larger than allowed";

const fn is_success(status: u16) -> bool {
    status >= 200 && status < 300
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
            body: ReplyBody::Error(RpcError::new(code, "x")),
        };
        let session =
            |id: Option<&str>| Connected::Session { version: "v", id: id.map(str::to_owned) };
        assert!(session(Some("s")).is_lost(&answer(404, -32_600)));
        assert!(!session(Some("s")).is_lost(&answer(400, -32_600)));
        assert!(!session(None).is_lost(&answer(404, -32_600)));
        assert!(Connected::Stateless.is_lost(&answer(400, UNSUPPORTED_VERSION)));
        assert!(!Connected::Stateless.is_lost(&answer(404, -32_601)));
    }

    const JSON: &str = "application/json; charset=utf-8";
    const EVENTS: &str = "text/event-stream";

    fn read(status: u16, content_type: &str, pieces: &[&str]) -> Result<ReplyBody, &'static str> {
        let head = Head { status, content_type, session: None };
        let mut reader = AnswerReader::new(Some(1), &head, 1_000);
        for piece in pieces {
            reader.feed(piece.as_bytes())?;
        }
        reader.finish().map(|answer| answer.body)
    }

    #[test]
    fn answers_are_read_as_json_and_as_events() {
        let result = Ok(ReplyBody::Result("{}".to_owned()));
        let good = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let progress = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n";
        let refusal = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#;
        let refused = Ok(ReplyBody::Error(RpcError::new(-32_600, "no")));
        let event = format!("event: message\ndata: {good}\n\n");
        for (status, kind, pieces, expected) in [
            (200, JSON, vec![&good[..10], &good[10..]], result.clone()),
            (200, EVENTS, vec![progress, &event[..20], &event[20..]], result.clone()),
            (200, EVENTS, vec![&*event, "data: garbage\n\n"], result),
            (200, EVENTS, vec![progress], Err("its answer ended early")),
            (200, EVENTS, vec!["data: garbage\n\n"], Err("its response is not a JSON-RPC message")),
            (200, JSON, vec!["<html>"], Err("its response is not a JSON-RPC message")),
            (200, JSON, vec![], Err("its response is not a JSON-RPC message")),
            (
                200,
                "text/html",
                vec![good],
                Err("its answer is neither JSON nor a stream of events"),
            ),
            (202, "", vec![], Err("it accepted the request but did not answer")),
            (404, JSON, vec![refusal], refused.clone()),
            (500, JSON, vec![refusal], refused),
            (500, JSON, vec!["{}"], Ok(ReplyBody::Status)),
            (302, "text/html", vec!["moved"], Ok(ReplyBody::Status)),
            (503, EVENTS, vec![&*event], Ok(ReplyBody::Status)),
        ] {
            assert_eq!(read(status, kind, &pieces), expected, "{status} {kind} {pieces:?}");
        }
    }

    #[test]
    fn a_large_answer_is_given_up_also_if_it_is_a_stream() {
        let comments = ": x\n\n".repeat(100);
        for kind in [JSON, EVENTS, "text/html"] {
            assert_eq!(
                read(200, kind, &[comments.as_str(); 3]),
                Err("its answer is larger than allowed"),
                "{kind}"
            );
        }
    }

    #[test]
    fn a_notification_is_taken_or_refused() {
        for (status, body) in
            [(202, ReplyBody::Accepted), (200, ReplyBody::Accepted), (400, ReplyBody::Status)]
        {
            let head = Head { status, ..Head::default() };
            let answer = AnswerReader::new(None, &head, 10).finish().unwrap();
            assert_eq!(answer.body, body, "{status}");
        }
    }

    /// A comment, a notification, an event without data, the answer in two lines, and a cut event.
    const STREAM: &[u8] = b": ping\r\n\r\ndata:{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\nid: 7\ndata\n\n\
        event: message\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\r\ndata: \"result\":{}}\r\n\r\ndata: cut";

    #[test]
    fn events_are_read_across_any_pieces() {
        let head = Head { status: 200, content_type: "text/event-stream", session: None };
        for size in [1, 2, 3, 7, STREAM.len()] {
            let mut reader = AnswerReader::new(Some(7), &head, 1_000);
            let mut progress = Progress::More;
            for piece in STREAM.chunks(size) {
                progress = reader.feed(piece).unwrap();
            }
            assert_eq!(progress, Progress::Complete, "{size}");
            assert_eq!(reader.finish().unwrap().body, ReplyBody::Result("{}".to_owned()), "{size}");
        }
    }
}
