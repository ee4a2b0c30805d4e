//! Tools behind the gateway: the Model Context Protocol (MCP) as server and client, the tool
//! registry and its allow lists; no I/O.
//!
//! | task | entry point |
//! |---|---|
//! | read a JSON-RPC message, write its answer | [`rpc`] |
//! | talk to a tool server | [`client`] |
//! | serve clients as a tool server | [`mcp_server`] |
//! | list all servers and tools | [`Registry`] |
//! | check permissions | [`AllowLists`] |
//! | run a tool without I/O | [`LocalTool`] |
//!
//! MCP has two eras. Versions up to 2025-11-25 have sessions: a handshake, then a header that names
//! the session. From 2026-07-28 on requests are self-contained. Sources: the published
//! specification and the official Python SDK, version 2.3:
//! <https://modelcontextprotocol.io/specification>.

mod allow;
pub mod client;
mod header_value;
mod local;
pub mod mcp_server;
mod name;
mod object;
mod param_headers;
mod registry;
pub mod rpc;
mod tool;
pub mod version;

pub use allow::AllowLists;
pub use local::LocalTool;
pub use name::{LOCAL, is_server_name, is_tool_name};
pub use object::read_object;
pub use registry::{Collision, Provider, RegisteredTool, Registry, ServerState, ToolServer};
pub use tool::{Tool, ToolResult, ToolTable};
