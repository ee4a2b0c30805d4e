//! The handshake: an HTTP/1.1 request for a WebSocket.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{
    CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Version};
use sha1_smol::Sha1;

use crate::fault::Fault;
use crate::log::WebSocketRecord;
use crate::overrides::{Accepted, RequestOverrides};
use crate::responder::Responder;
use crate::response_body::ServiceResult;

/// Appended to the key (RFC 6455, 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Bytes of a key.
const KEY_BYTES: usize = 16;

/// Answers a handshake. A requested status refuses it; other faults affect the turns.
pub(crate) async fn accept(
    mut responder: Responder,
    head: &Parts,
    overrides: &RequestOverrides,
) -> ServiceResult {
    responder.exchange.websocket(WebSocketRecord::default());
    let fault = overrides.fault.or(|| None).filter(|fault| matches!(fault, Fault::Status { .. }));
    let mut responder = match responder.unless_replaced(fault, Responder::error).await {
        Ok(responder) => responder,
        Err(replaced) => return replaced,
    };
    let accept = match check(head) {
        Ok(key) => accept_of(key),
        Err((status, problem)) => {
            if status == 426 {
                responder.headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
                responder.headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
            }
            return Ok(responder.error(status, problem));
        }
    };
    let headers = &mut responder.headers;
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    // The mock accepts the first subprotocol that the client offers.
    let offered = list_items(&head.headers, &SEC_WEBSOCKET_PROTOCOL).next();
    if let Some(chosen) = offered.and_then(|offered| HeaderValue::from_str(offered).ok()) {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, chosen);
    }
    let id = responder.request_id.as_ref();
    let request_id = id.map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
    let overrides = overrides.clone();
    responder.times.switch_to(Accepted { request_id, overrides });
    Ok(responder.switch())
}

/// The key of a valid handshake; else the status and the problem (RFC 6455, 4.2.1).
fn check(head: &Parts) -> Result<&str, (u16, &'static str)> {
    if head.method != Method::GET || head.version != Version::HTTP_11 {
        return Err((405, "Only GET requests over HTTP/1.1 open a WebSocket"));
    }
    if !has_word(&head.headers, &UPGRADE, "websocket")
        || !has_word(&head.headers, &CONNECTION, "upgrade")
    {
        return Err((426, "This path takes WebSocket connections only"));
    }
    if !has_word(&head.headers, &SEC_WEBSOCKET_VERSION, "13") {
        return Err((426, "The version of WebSocket must be 13"));
    }
    let key = head.headers.get(SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok());
    key.filter(|key| STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == KEY_BYTES))
        .ok_or((400, "Sec-WebSocket-Key must be 16 bytes in Base64"))
}

/// The words of a list in a header, which may have several lines.
fn list_items<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

fn accept_of(key: &str) -> String {
    STANDARD.encode(Sha1::from(format!("{key}{GUID}")).digest().bytes())
}

fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    list_items(headers, name).any(|found| found.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_the_rfc_has_the_accept_of_the_rfc() {
        // Section 1.3.
        assert_eq!(accept_of("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
