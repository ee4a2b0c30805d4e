//! The routes: which handler a path has, and what each handler does.

pub(crate) mod agent_route;
pub(crate) mod agent_routes;
pub(crate) mod builtin_routes;
pub(crate) mod llm;
pub(crate) mod llm_info;
pub(crate) mod policy_endpoint;
pub(crate) mod proxy;
pub(crate) mod router;
pub(crate) mod store_error;
pub(crate) mod tool_route;
pub(crate) mod tools;
pub(crate) mod websocket;
