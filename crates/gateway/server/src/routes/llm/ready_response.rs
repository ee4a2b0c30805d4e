//! A response that is ready to be sent.

use hyper::Response;
use hyper::http::response::Parts;

use crate::exchange::request_context::RequestContext;
use crate::exchange::respond::{Header, finish, with_headers};
use crate::exchange::response_body::ResponseBody;

/// A response without its final headers and context.
pub(super) struct ReadyResponse {
    pub(super) response: Response<ResponseBody>,
    pub(super) headers: Vec<Header>,
}

impl ReadyResponse {
    pub(super) fn new(parts: Parts, body: ResponseBody) -> Self {
        Self { response: Response::from_parts(parts, body), headers: Vec::new() }
    }

    /// Adds the context, which finishes with the body.
    pub(super) fn into_response(self, mut context: Box<RequestContext>) -> Response<ResponseBody> {
        let mut response = with_headers(self.response, self.headers);
        context.status = response.status();
        match response.body_mut() {
            ResponseBody::Proxy(body) => body.set_context(context),
            ResponseBody::Frames(frames) => {
                for frame in frames.iter() {
                    context.count_sent(frame.len());
                }
                context.finish(true);
            }
            ResponseBody::Full(_) => finish(&mut context, &response),
        }
        response
    }
}
