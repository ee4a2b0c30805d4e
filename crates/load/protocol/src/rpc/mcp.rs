//! MCP over Streamable HTTP: revisions with sessions (2025-06-18, 2025-11-25), and the revision
//! without (2026-07-28), whose requests repeat the session's state in `_meta` and in headers.
//!
//! Sources: the specification's pages on transports and on the base protocol in those revisions.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_measure::{Operation, named_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Params;

/// Versions that a server may choose for a session.
const KNOWN: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Whether a server may choose this version for a session.
pub(crate) fn is_known(version: &str) -> bool {
    KNOWN.contains(&version)
}

named_enum! {
    /// A revision of MCP.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
    pub enum Revision {
        /// With sessions.
        #[serde(rename = "2025-06-18")]
        V20250618 => "2025-06-18",
        /// With sessions.
        #[default]
        #[serde(rename = "2025-11-25")]
        V20251125 => "2025-11-25",
        /// Without sessions: every request describes itself.
        #[serde(rename = "2026-07-28")]
        V20260728 => "2026-07-28",
    }
}

impl Revision {
    /// Whether the revision has sessions.
    pub const fn has_sessions(self) -> bool {
        !matches!(self, Self::V20260728)
    }
}

/// A message to a tool server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Requested revision.
    pub revision: Revision,
    /// Version that the server chose for the session, once known.
    pub version: Option<Arc<str>>,
    /// Id of the session, if there is one.
    pub session: Option<Arc<str>>,
    /// Operation with its arguments.
    pub ask: Ask,
}

/// An operation of a tool server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Opens a session.
    Initialize,
    /// Confirms that the session is open.
    Initialized,
    /// Queries versions and capabilities; without sessions only.
    Discover,
    /// Checks that the server is reachable; with sessions only.
    Ping,
    /// Fetches a page of a list.
    List {
        /// Kind of list.
        list: List,
        /// Start of the page; `None` for the first one.
        cursor: Option<String>,
    },
    /// Calls a tool.
    Tool {
        /// Name of the tool.
        name: Arc<str>,
        /// Arguments, as a JSON object.
        arguments: String,
        /// Whether to request progress notifications.
        progress: bool,
    },
    /// Reads a resource.
    Resource {
        /// URI of the resource.
        uri: Arc<str>,
    },
    /// Fetches a prompt.
    Prompt {
        /// Name of the prompt.
        name: Arc<str>,
        /// Arguments, as a JSON object.
        arguments: String,
    },
    /// Cancels a request.
    Cancelled {
        /// Id of the request.
        request: u64,
    },
    /// Ends the session.
    EndSession,
}

/// A list of a tool server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum List {
    /// Tools.
    Tools,
    /// Resources.
    Resources,
    /// Templates of resources.
    ResourceTemplates,
    /// Prompts.
    Prompts,
}

impl Ask {
    /// The operation of this message.
    pub const fn operation(&self) -> Operation {
        match self {
            Self::Initialize => Operation::Initialize,
            Self::Initialized => Operation::Initialized,
            Self::Discover => Operation::Discover,
            Self::Ping => Operation::Ping,
            Self::List { list: List::Tools, .. } => Operation::ListTools,
            Self::List { list: List::Resources, .. } => Operation::ListResources,
            Self::List { list: List::ResourceTemplates, .. } => Operation::ListResourceTemplates,
            Self::List { list: List::Prompts, .. } => Operation::ListPrompts,
            Self::Tool { .. } => Operation::CallTool,
            Self::Resource { .. } => Operation::ReadResource,
            Self::Prompt { .. } => Operation::GetPrompt,
            Self::Cancelled { .. } => Operation::Cancelled,
            Self::EndSession => Operation::EndSession,
        }
    }

    const fn is_notification(&self) -> bool {
        matches!(self, Self::Initialized | Self::Cancelled { .. })
    }

    /// The name repeated in the `Mcp-Name` header.
    fn name(&self) -> Option<&str> {
        match self {
            Self::Tool { name, .. } | Self::Prompt { name, .. } => Some(name),
            Self::Resource { uri } => Some(uri),
            _ => None,
        }
    }
}

const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

impl Call {
    /// Headers of this request only.
    pub(super) fn headers(&self) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        let mut add = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        if !matches!(self.ask, Ask::EndSession) {
            add("content-type", "application/json");
            add("accept", "application/json, text/event-stream");
        }
        if !self.revision.has_sessions() {
            add("mcp-protocol-version", self.revision.name());
            add("mcp-method", self.ask.operation().name());
            if let Some(name) = self.ask.name() {
                add("mcp-name", &header_value(name));
            }
            return headers;
        }
        if let Some(session) = &self.session {
            add("mcp-session-id", session);
        }
        if !matches!(self.ask, Ask::Initialize) {
            add(
                "mcp-protocol-version",
                self.version.as_deref().unwrap_or_else(|| self.revision.name()),
            );
        }
        headers
    }

    /// Appends the body.
    pub(super) fn write_body(&self, id: u64, out: &mut Vec<u8>) {
        if matches!(self.ask, Ask::EndSession) {
            return;
        }
        let sent = (!self.ask.is_notification()).then_some(id);
        Params::message(out, sent, self.ask.operation().name(), |params| {
            self.write_params(id, params);
        });
    }

    fn write_params(&self, id: u64, params: &mut Params<'_>) {
        let mut progress_token = None;
        match &self.ask {
            Ask::Initialize => {
                params.text("protocolVersion", self.revision.name());
                params.object("capabilities", |_| {});
                params.object("clientInfo", client_info);
            }
            Ask::List { cursor, .. } => params.optional("cursor", cursor.as_deref()),
            Ask::Tool { name, arguments, progress } => {
                params.text("name", name);
                params.json("arguments", arguments);
                progress_token = progress.then_some(id);
            }
            Ask::Resource { uri } => params.text("uri", uri),
            Ask::Prompt { name, arguments } => {
                params.text("name", name);
                params.json("arguments", arguments);
            }
            Ask::Cancelled { request } => {
                params.number("requestId", *request);
                params.text("reason", "The client no longer waits");
            }
            Ask::Initialized | Ask::Discover | Ask::Ping | Ask::EndSession => {}
        }
        let stateless = !self.revision.has_sessions();
        if stateless || progress_token.is_some() {
            params.object("_meta", |meta| write_meta(meta, stateless, progress_token));
        }
    }
}

fn write_meta(meta: &mut Params<'_>, stateless: bool, progress_token: Option<u64>) {
    if let Some(token) = progress_token {
        meta.number("progressToken", token);
    }
    if stateless {
        meta.text(PROTOCOL_VERSION, Revision::V20260728.name());
        meta.object(CLIENT_INFO, client_info);
        meta.object(CLIENT_CAPABILITIES, |_| {});
    }
}

fn client_info(params: &mut Params<'_>) {
    params.text("name", "plimsoll");
    params.text("version", env!("CARGO_PKG_VERSION"));
}

/// Encodes a value for a header: unchanged, or in base64 (RFC 4648, section 4) if it has characters
/// other than visible ASCII and inner spaces, or looks like base64.
fn header_value(value: &str) -> String {
    let plain = value.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    let encoded = value.starts_with("=?base64?") && value.ends_with("?=");
    if plain && value.trim() == value && !encoded {
        return value.to_owned();
    }
    format!("=?base64?{}?=", STANDARD.encode(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_header_can_carry_are_encoded() {
        // Encoded with coreutils' base64.
        for (name, value) in [
            ("echo", "echo"),
            ("two words", "two words"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("a\nb", "=?base64?YQpi?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
            ("", ""),
        ] {
            assert_eq!(header_value(name), value, "{name:?}");
        }
    }
}
