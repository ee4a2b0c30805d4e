//! The versions of MCP that the gateway speaks, newest first.

/// The newest version, whose requests are self-contained.
pub const STATELESS: &str = "2026-07-28";

/// The newest version with sessions.
pub const LATEST_WITH_SESSIONS: &str = "2025-11-25";

/// The versions with sessions. Older ones have batches or another transport.
pub const WITH_SESSIONS: [&str; 2] = [LATEST_WITH_SESSIONS, "2025-06-18"];

/// All versions.
pub const ALL: [&str; 3] = [STATELESS, WITH_SESSIONS[0], WITH_SESSIONS[1]];

/// A supported version with sessions.
pub fn with_sessions(version: &str) -> Option<&'static str> {
    WITH_SESSIONS.into_iter().find(|known| *known == version)
}

/// Header with the version.
pub const VERSION_HEADER: &str = "mcp-protocol-version";
/// Header with the session, in versions that have some.
pub const SESSION_HEADER: &str = "mcp-session-id";
/// Header that repeats the method, in versions without sessions.
pub const METHOD_HEADER: &str = "mcp-method";
/// Header that repeats the name of the tool, in versions without sessions.
pub const NAME_HEADER: &str = "mcp-name";

/// Member of `_meta` with the version, in versions without sessions.
pub const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// Member of `_meta` with the client's capabilities.
pub const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
/// Member of `_meta` with the name of the client.
pub const CLIENT_INFO_KEY: &str = "io.modelcontextprotocol/clientInfo";
