//! The layers: what each does with a request or an answer, where its section enables it.

pub(crate) mod admin;
pub(crate) mod agent_layer;
pub(crate) mod auth;
pub(crate) mod budget;
pub(crate) mod cors;
pub(crate) mod document;
pub(crate) mod fault_injection;
pub(crate) mod forwarded;
pub(crate) mod identify;
pub(crate) mod identity;
pub(crate) mod jwt;
pub(crate) mod metrics;
pub(crate) mod offload;
pub(crate) mod policy;
pub(crate) mod rate_limit;
pub(crate) mod request_log;
pub(crate) mod scrub;
pub(crate) mod tenant;
pub(crate) mod tool_server;
