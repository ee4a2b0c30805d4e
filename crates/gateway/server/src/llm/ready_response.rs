//! A response that is ready to be sent.

use hyper::Response;
use hyper::http::response::Parts;

use crate::body::Body;
use crate::request_context::RequestContext;
use crate::respond::{Header, finish, with_headers};

/// A response that only lacks some headers and its context.
pub(super) struct ReadyResponse {
    pub(super) response: Response<Body>,
    pub(super) headers: Vec<Header>,
}

impl ReadyResponse {
    pub(super) fn new(parts: Parts, body: Body) -> Self {
        Self { response: Response::from_parts(parts, body), headers: Vec::new() }
    }

    /// The complete response; the context is finished with its body.
    pub(super) fn into_response(self, mut context: RequestContext) -> Response<Body> {
        let mut response = with_headers(self.response, self.headers);
        context.status = response.status();
        match response.body_mut() {
            Body::Proxy(body) => body.set_context(context),
            Body::Frames(frames) => {
                for frame in frames.iter() {
                    context.count_sent(frame.len());
                }
                context.finish(true);
            }
            Body::Full(_) => finish(&mut context, &response),
        }
        response
    }
}
