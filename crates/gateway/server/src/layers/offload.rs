//! Judges large texts on another thread, so that the worker is not blocked.

use std::sync::Arc;

use bytes::Bytes;
use plimsoll_gateway_inspect::{FileRule, Inspector, Judgement, Source, Unread, Unreadable};
use tokio::task::spawn_blocking;

use crate::http::error_response::ErrorResponse;

/// Bodies up to this size are judged on the worker. The slowest texts take about 0.4 us per byte,
/// so other requests wait for at most 7 ms.
const AT_ONCE: usize = 16 << 10;

/// Runs work on a number of bytes: immediately, or on another thread.
///
/// # Errors
/// The thread panicked.
pub(crate) async fn run<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ErrorResponse> {
    if bytes <= AT_ONCE {
        return Ok(work());
    }
    let done = spawn_blocking(work).await;
    done.map_err(|_| ErrorResponse::internal_error("the texts could not be judged"))
}

/// Judges every text of a JSON document.
///
/// # Errors
/// As [`run`]; the inner result has the errors of [`Inspector::document`].
pub(crate) async fn check_document(
    inspector: &Arc<Inspector>,
    body: &Bytes,
    source: Source,
) -> Result<Result<Judgement, Unreadable>, ErrorResponse> {
    let (inspector, body) = (Arc::clone(inspector), body.clone());
    run(body.len(), move || judge(&inspector, &body, source)).await
}

fn judge(inspector: &Inspector, body: &[u8], source: Source) -> Result<Judgement, Unreadable> {
    let text = simdutf8::basic::from_utf8(body).map_err(|_| Unreadable::NotUtf8)?;
    inspector.document(text, source)
}

/// The rule for content other than text.
pub(crate) fn file_rule(unreadable: Unread, pass_types: &[String]) -> FileRule {
    let pass_types = pass_types.iter().map(|kind| kind.to_ascii_lowercase()).collect();
    FileRule { unreadable, pass_types }
}
