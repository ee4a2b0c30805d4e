//! HTTP as clients speak it: connections, the normal form of requests, bodies both ways, errors.

pub(crate) mod body_filter;
pub(crate) mod client_socket;
pub(crate) mod connection;
pub(crate) mod connection_slot;
pub(crate) mod content;
pub(crate) mod decode;
pub(crate) mod error_response;
pub(crate) mod headers;
pub(crate) mod http2_streams;
pub mod normal_form;
pub(crate) mod request_body;
pub(crate) mod respond;
pub(crate) mod response_body;
pub(crate) mod smuggling;
pub(crate) mod tls;
pub(crate) mod whole_body;
