//! LLM routes.
use hyper::Response;

use crate::body::Body;
use crate::refusal::Voice;
use crate::router::Proxy;
use crate::service::{Call, json};

pub(crate) async fn serve(_call: Call, _proxy: &Proxy, _voice: Voice) -> Response<Body> {
    json(hyper::StatusCode::OK, "")
}
