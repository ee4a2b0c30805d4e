//! The routes of the tools.

/// A route of the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolRoute {
    /// The servers, for those who may administrate.
    Servers,
    /// The tools that the tenant may call.
    List,
    /// A call.
    Call,
    /// The tools that a tenant may call.
    Policies,
    /// MCP over Streamable HTTP.
    Mcp,
    /// MCP without a handshake.
    Message,
}

impl ToolRoute {
    /// All routes with their paths.
    pub(crate) const PATHS: [(&'static str, Self); 6] = [
        ("/v1/mcp/servers", Self::Servers),
        ("/v1/mcp/tools", Self::List),
        ("/v1/mcp/tools/call", Self::Call),
        ("/v1/policies/{tenant}", Self::Policies),
        ("/mcp", Self::Mcp),
        ("/mcp/message", Self::Message),
    ];
}
