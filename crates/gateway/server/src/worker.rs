//! The threads: accept connections, route requests, and connect layers and routes.

pub(crate) mod client_socket;
pub(crate) mod connection;
pub(crate) mod dispatch;
pub(crate) mod http2_streams;
pub(crate) mod identify;
pub(crate) mod server;
