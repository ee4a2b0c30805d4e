//! Building responses, and finishing the context of a request with them.

use bytes::Bytes;
use hyper::body::Body as _;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Response, StatusCode};

use crate::content::is_encoded;
use crate::error_response::{ErrorFormat, ErrorResponse};
use crate::request_context::RequestContext;
use crate::response_body::ResponseBody;

/// The response of a handler, or the error to respond with.
pub(crate) type HandlerResult = Result<Response<ResponseBody>, ErrorResponse>;

/// A header to add to a response.
pub(crate) type Header = (HeaderName, HeaderValue);

/// Adds headers to a response.
pub(crate) fn with_headers(
    mut response: Response<ResponseBody>,
    headers: Vec<Header>,
) -> Response<ResponseBody> {
    for (name, value) in headers {
        response.headers_mut().insert(name, value);
    }
    response
}

/// Finishes the context with a response that is complete in memory.
pub(crate) fn finish(context: &mut RequestContext, response: &Response<ResponseBody>) {
    context.status = response.status();
    context.bytes_sent = response.body().size_hint().exact().unwrap_or(0);
    context.finish(true);
}

/// Responds with a handler's result, and finishes the context with it.
pub(crate) fn respond(
    mut context: Box<RequestContext>,
    result: HandlerResult,
    format: ErrorFormat,
) -> Response<ResponseBody> {
    match result {
        Ok(response) => {
            finish(&mut context, &response);
            response
        }
        Err(error) => respond_error(context, error, format),
    }
}

/// Responds with an error, and finishes the context with it.
pub(crate) fn respond_error(
    mut context: Box<RequestContext>,
    error: ErrorResponse,
    format: ErrorFormat,
) -> Response<ResponseBody> {
    context.worker.metrics().count_error(error.kind);
    let response = error_response(error, format);
    let id = context.config.request_id.clone().zip(context.request_id.clone());
    finish(&mut context, &response);
    with_headers(response, id.into_iter().collect())
}

fn error_response(error: ErrorResponse, format: ErrorFormat) -> Response<ResponseBody> {
    let (body, media_type) = error.body(format);
    let mut response = Response::new(ResponseBody::Full(Bytes::from(body)));
    *response.status_mut() = error.status_in(format);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().extend(error.headers);
    response
}

/// A response with JSON.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::Full(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Checks the method. `HEAD` counts as a `GET`.
pub(crate) fn expect_method(found: &Method, wanted: &Method) -> Result<(), ErrorResponse> {
    if found == wanted || (wanted == Method::GET && found == Method::HEAD) {
        return Ok(());
    }
    Err(ErrorResponse::wrong_method(wanted))
}

/// Checks that the body is not encoded.
pub(crate) fn expect_plain(headers: &HeaderMap) -> Result<(), ErrorResponse> {
    if is_encoded(headers) {
        let message = "send the body without `content-encoding`";
        return Err(ErrorResponse::unsupported_media_type(message));
    }
    Ok(())
}

/// Checks that the body's content type is JSON, or missing.
pub(crate) fn expect_json(headers: &HeaderMap) -> Result<(), ErrorResponse> {
    let media_type = headers.get(CONTENT_TYPE).map(|value| value.as_bytes().to_ascii_lowercase());
    match media_type {
        Some(media_type) if !media_type.starts_with(b"application/json") => {
            Err(ErrorResponse::unsupported_media_type("send `content-type: application/json`"))
        }
        _ => Ok(()),
    }
}
