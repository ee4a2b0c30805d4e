//! Chats sent by the gateway itself: paid for, translated, read as a whole.

use std::rc::Rc;

use bytes::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method, Request, Uri, Version};
use plimsoll_gateway_dialect::{Dialect, Translator, Usage, estimated_tokens};
use serde_json::Value;

use super::request::LlmRequest;
use super::send::send_upstream;
use crate::base::clock;
use crate::exchange::request_context::RequestContext;
use crate::http::error_response::ErrorResponse;
use crate::upstream::proxy::Proxy;

/// Sends a chat in OpenAI's dialect and returns the completion in the same dialect. Only the key of
/// the client's headers is forwarded.
///
/// # Errors
/// The budget is spent; the upstream is unreachable, refuses, or does not answer with a completion.
pub(crate) async fn complete(
    context: &mut RequestContext,
    proxy: &Proxy,
    body: Bytes,
    model: &str,
    headers: &HeaderMap,
) -> Result<Value, ErrorResponse> {
    let translator = Translator::between(Dialect::OpenAi, proxy.upstream.dialect);
    let chat = LlmRequest::chat(body, model, translator);
    let mut reservation = match &context.config.layers.budgets {
        None => None,
        Some(budgets) => {
            let (store, identity) = (&context.worker.store, &context.identity);
            Some(budgets.reserve(store, identity, chat.demand()).await?)
        }
    };
    if let Some(reservation) = &mut reservation {
        reservation.risk();
    }
    let upstream = send_upstream(context, &mut head(headers), &chat, proxy).await?;
    let status = upstream.response.status();
    let (_, mut body) = upstream.collect(context).await?;
    let usage = Usage::from_body(chat.upstream_endpoint(), &body).ok().flatten();
    observe(context, usage.filter(|_| status.is_success()));
    if let Some(reservation) = reservation {
        match (status.is_success(), usage) {
            (false, _) => reservation.release(),
            (true, Some(_)) => {
                reservation.settle(usage, estimated_tokens(usage, &body)).await;
            }
            // The cost is unknown, so the full reservation is charged.
            (true, None) => drop(reservation),
        }
    }
    if !status.is_success() {
        return Err(ErrorResponse::bad_gateway(format!("the provider answered {status}")));
    }
    if let Some(translator) = chat.translator {
        let translated = translator.response(&body, clock::unix_ms() / 1_000);
        body =
            Bytes::from(translated.map_err(|error| ErrorResponse::bad_gateway(error.to_string()))?);
    }
    serde_json::from_slice(&body)
        .map_err(|_| ErrorResponse::bad_gateway("the provider's response is not JSON"))
}

fn head(headers: &HeaderMap) -> hyper::http::request::Parts {
    let mut parts = Request::new(()).into_parts().0;
    (parts.method, parts.version) = (Method::POST, Version::HTTP_11);
    parts.uri = Uri::from_static("/v1/chat/completions");
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let key = headers.get(AUTHORIZATION).cloned();
    parts.headers.extend(key.map(|key| (AUTHORIZATION, key)));
    parts
}

/// Adds to the usage of the request, which may make several chats.
fn observe(context: &mut RequestContext, usage: Option<Usage>) {
    let Some(usage) = usage else { return };
    let observed = Rc::clone(context.usage.get_or_insert_default());
    let before = observed.usage.get().unwrap_or_default();
    observed.usage.set(Some(Usage {
        prompt: before.prompt.saturating_add(usage.prompt),
        completion: before.completion.saturating_add(usage.completion),
        cached: before.cached.saturating_add(usage.cached),
    }));
}
