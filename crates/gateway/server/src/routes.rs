//! The routes and their handlers.

pub(crate) mod agent_routes;
pub(crate) mod builtin_routes;
pub(crate) mod llm;
pub(crate) mod policy_endpoint;
pub(crate) mod proxy;
pub(crate) mod store_error;
pub(crate) mod tools;
pub(crate) mod websocket;
