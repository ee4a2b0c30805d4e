//! `POST /api/request`.
use hyper::Response;

use crate::body::Body;
use crate::service::{Call, json};

pub(crate) async fn serve(_call: Call) -> Response<Body> {
    json(hyper::StatusCode::OK, "")
}
