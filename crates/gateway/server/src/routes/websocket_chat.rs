//! A chat over a `WebSocket` (RFC 6455) that the gateway itself speaks.
//!
//! The client sends `{"message": "..."}`, and gets `{"type":"delta","text":...}` up to
//! `{"type":"done","usage":...}`, or `{"type":"error","error":{...}}`. Each message is a chat of
//! its own for rate limits, budgets, policy, cache, metrics and rows; the dialogue so far is sent
//! along.

mod answer;
mod chat_memory;
mod client;
mod session;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{
    AUTHORIZATION, CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::{HeaderMap, Response, StatusCode};
use tokio::task::spawn_local;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::http::connection_slot::ConnectionSlot;
use crate::http::error_response::{ErrorFormat, ErrorResponse};
use crate::http::normal_form::is_websocket;
use crate::http::respond::respond;
use crate::http::response_body::ResponseBody;
use crate::layers::cors::may_open_chat;
use crate::request_context::RoutedRequest;
use crate::routes::router::WebSocketChat;
use session::Session;

/// Bytes of the key of a handshake.
const KEY_BYTES: usize = 16;

/// Answers a handshake, and begins the chat.
pub(crate) fn serve(
    mut routed: RoutedRequest,
    chat: &WebSocketChat,
    format: ErrorFormat,
) -> Response<ResponseBody> {
    let cors = routed.context.config.layers.cors.as_ref();
    if !may_open_chat(cors, routed.request.headers()) {
        let error = ErrorResponse::forbidden(
            "a page of this origin may not open a chat: name it in `cors.origins`",
        );
        return respond(routed.context, Err(error), format);
    }
    let accept = match accept(routed.request.headers()) {
        Ok(accept) => accept,
        Err(error) => return respond(routed.context, Err(error), format),
    };
    let key = routed.request.headers().get(AUTHORIZATION).cloned();
    let session = match Session::new(&routed.context, chat, key) {
        Ok(session) => session,
        Err(no_room) => return respond(routed.context, Err(no_room.into()), format),
    };
    let upgrade = hyper::upgrade::on(&mut *routed.request);
    let slot = routed.request.extensions_mut().remove::<Arc<ConnectionSlot>>();
    spawn_local(async move {
        // If it fails, the connection broke.
        if let Ok(upgraded) = upgrade.await {
            session.run(upgraded, slot.as_deref()).await;
        }
        drop(slot);
    });
    let mut response = Response::new(ResponseBody::EMPTY);
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    respond(routed.context, Ok(response), format)
}

/// The accept for the key of a handshake (RFC 6455, 4.2).
fn accept(headers: &HeaderMap) -> Result<HeaderValue, ErrorResponse> {
    let version = headers.get(SEC_WEBSOCKET_VERSION).map(HeaderValue::as_bytes);
    if !is_websocket(headers) || version != Some(b"13") {
        let mut error = ErrorResponse::bad_request("this path takes WebSockets, version 13");
        error.status = StatusCode::UPGRADE_REQUIRED;
        error.headers.push((UPGRADE, HeaderValue::from_static("websocket")));
        error.headers.push((SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")));
        return Err(error);
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes).unwrap_or_default();
    if STANDARD.decode(key).map_or(0, |key| key.len()) != KEY_BYTES {
        return Err(ErrorResponse::bad_request("`sec-websocket-key` is not 16 bytes in Base64"));
    }
    HeaderValue::try_from(derive_accept_key(key))
        .map_err(|_| ErrorResponse::internal_error("there is no accept for this key"))
}
