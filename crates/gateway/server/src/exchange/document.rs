//! Documents on their way through the gateway: judged by the policy, and without personal data.
//! What the gateway changes in one counts as held, as what came does.

use bytes::Bytes;
use hyper::HeaderMap;
use plimsoll_gateway_inspect::Source;

use crate::exchange::request_context::RequestContext;
use crate::http::error_response::ErrorResponse;
use crate::layers::LayerName as _;
use crate::layers::policy::PolicyLayer;
use crate::layers::{Reading, RequestFacts};

/// A JSON document as the policy lets it pass; `None` where nothing in it changes. Nothing at all
/// is no document.
///
/// # Errors
/// `policy_blocked`, what the policy cannot read, and no room for what it changed.
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

/// A JSON document for a tool or an agent, or of one, as the policy lets it pass.
///
/// # Errors
/// Those of [`redact`], with `content_blocked` for what the policy blocks.
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

/// A whole document without personal data, where the configuration says so.
///
/// # Errors
/// It cannot be read, and must not pass; there is no room for what is left of it.
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

/// The same for the whole response of an LLM or an agent, which is read as its headers say.
///
/// # Errors
/// Those of [`scrub`].
pub(crate) async fn scrub_response(
    context: &RequestContext,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Bytes, ErrorResponse> {
    let reading = context.config.layers.reading(headers, Reading::Json)?;
    scrub(context, body, reading, Source::Protocol).await
}
