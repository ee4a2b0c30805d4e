//! One `PUT`, over the transport of the load, which has TLS.

use std::time::Duration;

use plimsoll_transport::{SingleClient, SingleRequest};
use tokio::time::timeout;

use super::PushTarget;

/// Time for the whole exchange.
const WHOLE: Duration = Duration::from_secs(10);
/// Bytes of an error's text that are kept.
const ANSWER: usize = 300;

/// Why it failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum PutError {
    /// The connection, or a setting of it.
    #[error("{0}")]
    Io(String),
    /// There was no answer in time.
    #[error("no answer within {} s", WHOLE.as_secs())]
    TimedOut,
    /// The answer is no success.
    #[error("status {0}{1}")]
    Status(u16, String),
}

impl PutError {
    /// Whether another attempt may succeed.
    pub(super) const fn may_pass(&self) -> bool {
        !matches!(self, Self::Status(status, _) if *status < 500)
    }
}

/// Sends a page.
pub(super) async fn put(target: &PushTarget, path: &str, page: &str) -> Result<(), PutError> {
    let client = SingleClient::new(target.endpoint.clone(), target.tls).map_err(PutError::Io)?;
    let headers = [
        ("content-type", Some("text/plain; version=0.0.4; charset=utf-8")),
        ("authorization", target.authorization.as_deref()),
    ];
    let headers = headers.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let headers: Vec<_> = headers.collect();
    let body = page.as_bytes().to_vec();
    let request = SingleRequest { method: "PUT", path, headers: &headers, body };
    let fetched = timeout(WHOLE, client.fetch(request, ANSWER)).await;
    let response = fetched.map_err(|_| PutError::TimedOut)?.map_err(PutError::Io)?;
    if (200..300).contains(&response.status) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&response.body);
    let text = text.trim();
    let text = if text.is_empty() { String::new() } else { format!(": {text}") };
    Err(PutError::Status(response.status, text))
}
