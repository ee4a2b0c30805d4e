//! Tool servers: the known ones, their links, and exchanges with them.

mod connection;
mod directory;
mod exchange;
mod failure;
mod layer;
mod link;
mod running_calls;
mod spec;

use std::sync::Arc;

use plimsoll_gateway_mcp::Registry;

pub(crate) use connection::ToolConnections;
pub(crate) use directory::ToolDirectory;
pub(crate) use exchange::{Services, Trace};
pub(crate) use failure::Failure;
pub(crate) use layer::{CALLS, ToolLayer};
pub(crate) use link::ServerLink;
pub(crate) use running_calls::RunningCall;
pub use spec::{ToolServerSpec, ToolsSpec};

/// All servers and tools.
pub(crate) type ToolRegistry = Registry<Arc<ServerLink>>;
