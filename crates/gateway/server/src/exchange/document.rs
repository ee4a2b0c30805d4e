//! Applies the policy and scrubbing to documents that pass through the gateway. Changed documents
//! count as memory in use, like received ones.

use bytes::Bytes;
use hyper::HeaderMap;
use plimsoll_gateway_inspect::Source;

use crate::exchange::request_context::RequestContext;
use crate::http::error_response::ErrorResponse;
use crate::layers::LayerName as _;
use crate::layers::policy::PolicyLayer;
use crate::layers::{Reading, RequestFacts};

/// Applies the policy to a JSON document; `None` if nothing changes. An empty body is not a
/// document.
///
/// # Errors
/// `policy_blocked`, a document that the policy cannot read, or no memory for the changed one.
pub(crate) async fn redact(
    context: &mut RequestContext,
    document: &Bytes,
    source: Source,
) -> Result<Option<Bytes>, ErrorResponse> {
    if document.is_empty() {
        return Ok(None);
    }
    let facts = RequestFacts { metrics: context.worker.metrics(), info: &mut context.llm_info };
    let redacted = context.config.layers.request(facts, document, source).await?;
    redacted.map(|redacted| context.made(redacted)).transpose()
}

/// Applies the policy to a JSON document sent to or by a tool or agent.
///
/// # Errors
/// As [`redact`], with `content_blocked` for blocked content.
pub(crate) async fn check(
    context: &mut RequestContext,
    document: Bytes,
    source: Source,
) -> Result<Bytes, ErrorResponse> {
    match redact(context, &document, source).await {
        Ok(redacted) => Ok(redacted.unwrap_or(document)),
        Err(error) if error.kind == "policy_blocked" => {
            Err(ErrorResponse::content_blocked(error.message).by(PolicyLayer::NAME))
        }
        Err(error) => Err(error),
    }
}

/// Removes personal data from a whole document, if configured.
///
/// # Errors
/// The document is unreadable and must not pass, or the scrubbed one exceeds the memory budget.
pub(crate) async fn scrub(
    context: &RequestContext,
    document: Bytes,
    reading: Reading,
    source: Source,
) -> Result<Bytes, ErrorResponse> {
    match context.config.layers.answer(&document, reading, source).await? {
        Some(scrubbed) => context.made(scrubbed),
        None => Ok(document),
    }
}

/// Scrubs the whole response of an LLM or an agent, which is read according to its headers.
///
/// # Errors
/// As [`scrub`].
pub(crate) async fn scrub_response(
    context: &RequestContext,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Bytes, ErrorResponse> {
    let reading = context.config.layers.reading(headers, Reading::Json)?;
    scrub(context, body, reading, Source::Protocol).await
}
