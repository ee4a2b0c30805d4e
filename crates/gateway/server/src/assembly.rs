//! The configuration as a whole: the file, its checks, and the routes and layers made from it.

pub(crate) mod agent_route;
pub(crate) mod check;
pub(crate) mod config;
pub(crate) mod overrides;
pub(crate) mod preset;
pub(crate) mod router;
pub mod spec;
pub(crate) mod tool_route;
