//! Answers to errors of the session and approval store.

use plimsoll_gateway_store::RecordError;

use crate::http::error_response::ErrorResponse;

/// The answer to an error of the store; `missing` is the answer for absent records.
pub(crate) fn store_error(
    error: RecordError,
    missing: impl FnOnce(&'static str) -> ErrorResponse,
) -> ErrorResponse {
    match error {
        RecordError::NotFound => missing("it never existed, has ended, or is another caller's"),
        RecordError::CallLimit => ErrorResponse::tool_call_limit(error.to_string()),
        RecordError::TooLarge { .. } => ErrorResponse::request_too_large(error.to_string()),
        RecordError::AlreadyDecided(_) => ErrorResponse::already_decided(error.to_string()),
        RecordError::Unavailable => ErrorResponse::store_unavailable(error.to_string()),
        _ => ErrorResponse::store_full(error.to_string()),
    }
}
