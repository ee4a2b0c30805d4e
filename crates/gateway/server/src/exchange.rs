//! One exchange with a client: its context, the forwarding to an upstream, the response. Also the
//! state that exchanges share.

pub(crate) mod connection_slot;
pub(crate) mod document;
pub(crate) mod forward;
pub(crate) mod headers;
pub(crate) mod proxy_body;
pub(crate) mod random_id;
pub(crate) mod request_context;
pub(crate) mod respond;
pub(crate) mod response_body;
pub(crate) mod state;
pub(crate) mod worker;
