//! One `PUT`, over the transport of the load, which has TLS.

use std::ops::ControlFlow;
use std::time::Duration;

use plimsoll_measure::Moment;
use plimsoll_transport::{EncodedRequest, ResponseHandler, ResponseHead, RxTime, SingleRequest};
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
    let mut answer = Answer::default();
    let exchanged = timeout(WHOLE, exchange(target, path, page, &mut answer));
    exchanged.await.map_err(|_| PutError::TimedOut)?.map_err(PutError::Io)?;
    if (200..300).contains(&answer.status) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&answer.text);
    let text = text.trim();
    let text = if text.is_empty() { String::new() } else { format!(": {text}") };
    Err(PutError::Status(answer.status, text))
}

async fn exchange(
    target: &PushTarget,
    path: &str,
    page: &str,
    answer: &mut Answer,
) -> Result<(), String> {
    let headers = [
        ("content-type", Some("text/plain; version=0.0.4; charset=utf-8")),
        ("authorization", target.authorization.as_deref()),
    ];
    let headers = headers.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let request = SingleRequest {
        endpoint: target.endpoint.clone(),
        tls: target.tls,
        method: "PUT",
        path,
        headers: &headers.collect::<Vec<_>>(),
        body: page.as_bytes().to_vec(),
    };
    request.send(answer).await
}

/// The status, and the beginning of the text.
#[derive(Default)]
struct Answer {
    status: u16,
    text: Vec<u8>,
}

impl ResponseHandler for Answer {
    fn sent(&mut self, _: Moment, _: EncodedRequest) {}

    fn received(&mut self, _: usize, _: RxTime) {}

    fn head(&mut self, head: &ResponseHead<'_>) {
        self.status = head.status;
    }

    fn body(&mut self, bytes: &[u8], _: Moment) -> ControlFlow<()> {
        let room = ANSWER.saturating_sub(self.text.len()).min(bytes.len());
        self.text.extend_from_slice(bytes.get(..room).unwrap_or_default());
        if self.text.len() < ANSWER { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
