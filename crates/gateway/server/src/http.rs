//! HTTP: the normal form of requests, bodies in both directions, errors. It depends on no other
//! part of the gateway.

pub(crate) mod body_filter;
pub(crate) mod content;
pub(crate) mod decode;
pub(crate) mod error_response;
pub(crate) mod header_list;
pub mod normal_form;
pub(crate) mod request_body;
pub(crate) mod smuggling;
pub(crate) mod whole_body;
