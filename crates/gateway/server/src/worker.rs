//! The threads: connections are accepted, requests get their route, and layers and routes are wired
//! together.

pub(crate) mod client_socket;
pub(crate) mod connection;
pub(crate) mod dispatch;
pub(crate) mod http2_streams;
pub(crate) mod identify;
pub(crate) mod server;
