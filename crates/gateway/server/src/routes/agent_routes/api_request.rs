//! The requests of the layer: their JSON bodies, ids and errors.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Method;
use hyper::body::{Body as _, Incoming};
use hyper::http::request::Parts;
use plimsoll_gateway_inspect::Source;
use plimsoll_gateway_store::RecordId;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::exchange::document;
use crate::exchange::request_context::{RequestContext, RoutedRequest};
use crate::exchange::respond::{expect_method, expect_plain, json_body};
use crate::http::error_response::{ErrorResponse, no_such};
use crate::layers::agent_layer::AgentLayer;

/// A request of the layer.
pub(super) struct ApiRequest {
    pub(super) head: Parts,
    /// `None` once it was read.
    body: Option<Incoming>,
    pub(super) context: Box<RequestContext>,
    /// The last parameter of the path.
    pub(super) parameter: Option<String>,
}

impl ApiRequest {
    pub(super) fn new(routed: RoutedRequest) -> Self {
        let RoutedRequest { request, context, parameter } = routed;
        let (head, body) = request.into_parts();
        Self { head, body: Some(body), context, parameter }
    }

    /// Checks that it is a `GET`.
    ///
    /// # Errors
    /// It has another method.
    pub(super) fn expect_get(&self) -> Result<(), ErrorResponse> {
        expect_method(&self.head.method, &Method::GET)
    }

    /// The whole body of a `POST`.
    ///
    /// # Errors
    /// Another method; a body that is not JSON by its type, encoded, too large or too slow.
    pub(super) async fn post(&mut self) -> Result<Bytes, ErrorResponse> {
        expect_method(&self.head.method, &Method::POST)?;
        expect_plain(&self.head.headers)?;
        let Some(body) = self.body.take() else { return Ok(Bytes::new()) };
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        json_body(&mut self.context, &self.head, body).await
    }

    /// Like [`Self::post`], after the policy's check and redactions.
    ///
    /// # Errors
    /// As [`Self::post`] and [`document::check`].
    pub(super) async fn post_judged(&mut self) -> Result<Bytes, ErrorResponse> {
        let body = self.post().await?;
        document::check(&mut self.context, body, Source::Protocol).await
    }

    /// The id in the path.
    pub(super) fn id(&self) -> Option<RecordId> {
        self.parameter.as_deref().and_then(RecordId::parse)
    }

    /// The layer's settings.
    ///
    /// # Errors
    /// The configuration in force has no such layer.
    pub(super) fn layer(&self) -> Result<Arc<AgentLayer>, ErrorResponse> {
        layer(&self.context)
    }
}

/// The layer's settings.
///
/// # Errors
/// The configuration in force has no such layer.
pub(super) fn layer(context: &RequestContext) -> Result<Arc<AgentLayer>, ErrorResponse> {
    context.config.layers.agents.clone().ok_or_else(|| ErrorResponse::not_found(no_such("route")))
}

/// Reads a JSON object; an empty body counts as an empty object.
///
/// # Errors
/// It is not an object, or has another form.
pub(super) fn object<T: DeserializeOwned>(body: &[u8]) -> Result<T, ErrorResponse> {
    let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
    // serde would also read an array with the members in order.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(ErrorResponse::bad_request("the body is not a JSON object"));
    }
    serde_json::from_slice(body).map_err(|error| {
        // Errors about a value repeat it.
        let place = format!("line {}, column {}", error.line(), error.column());
        let message = match error.classify() {
            Category::Data => "the body does not match the schema of this route",
            _ => "the body is not JSON",
        };
        ErrorResponse::bad_request(format!("{message}: {place}"))
    })
}
