//! Building responses, and finishing the context of a request with them.

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Response, StatusCode};

use crate::exchange::request_context::RequestContext;
use crate::exchange::response_body::ResponseBody;
use crate::http::content::{MediaType, is_encoded};
use crate::http::error_response::{ErrorFormat, ErrorResponse};
use crate::http::request_body;

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
    if let Some(layer) = error.refused_by {
        context.refused_by = Some(layer);
        context.worker.metrics().count_refusal(layer);
    }
    let response = error_response(error, format);
    let id = context.config.request_id().cloned().zip(context.request_id.clone());
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

/// Reads the JSON body of a `POST` as a whole.
///
/// # Errors
/// Another method; a body that is not JSON by its type, encoded, too large or too slow; too little
/// memory for another message.
pub(crate) async fn json_body(
    context: &mut RequestContext,
    head: &Parts,
    body: Incoming,
) -> Result<Bytes, ErrorResponse> {
    expect_method(&head.method, &Method::POST)?;
    expect_json(&head.headers)?;
    expect_plain(&head.headers)?;
    if context.worker.state.memory.is_short() {
        return Err(request_body::no_memory());
    }
    let body = request_body::collect(context.body_bounds(), body).await?;
    context.bytes_received = body.len() as u64;
    Ok(body)
}

/// Checks the method. `HEAD` counts as a `GET`.
pub(crate) fn expect_method(found: &Method, wanted: &Method) -> Result<(), ErrorResponse> {
    if found == wanted || (wanted == Method::GET && found == Method::HEAD) {
        return Ok(());
    }
    Err(ErrorResponse::wrong_method(wanted))
}

/// Checks that the body has no content encoding and no `content-transfer-encoding` of mail, which
/// some readers undo.
pub(crate) fn expect_plain(headers: &HeaderMap) -> Result<(), ErrorResponse> {
    let mail = const { HeaderName::from_static("content-transfer-encoding") };
    if is_encoded(headers) || headers.contains_key(mail) {
        let message = "send the body without `content-encoding`";
        return Err(ErrorResponse::unsupported_media_type(message));
    }
    Ok(())
}

/// Checks that the body's content type is JSON in UTF-8, or missing, so that the gateway and the
/// upstream read the same text. Pages of other sites, for which a browser may send a body without a
/// type, must set it.
pub(crate) fn expect_json(headers: &HeaderMap) -> Result<(), ErrorResponse> {
    // Fast path for the usual value.
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    if types.next().is_some_and(|kind| kind == "application/json") && types.next().is_none() {
        return Ok(());
    }
    let readable = match MediaType::read(headers) {
        Some(kind) => kind.is_plain_json(),
        None => !headers.contains_key(ORIGIN),
    };
    if readable {
        return Ok(());
    }
    Err(ErrorResponse::unsupported_media_type("send `content-type: application/json`, in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A browser lets a page from elsewhere send a body without a type.
    #[test]
    fn a_body_without_a_type_is_json_unless_a_page_from_elsewhere_sent_it() {
        let mut headers = HeaderMap::new();
        assert!(expect_json(&headers).is_ok());
        headers.insert(ORIGIN, HeaderValue::from_static("https://evil.example"));
        assert!(expect_json(&headers).is_err());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        assert!(expect_json(&headers).is_ok());
        headers.append(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-7"));
        assert!(expect_json(&headers).is_err());
    }
}
