//! Ids that nobody can guess.

use plimsoll_gateway_store::RecordId;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::http::error_response::ErrorResponse;

/// An id that nobody can guess.
///
/// # Errors
/// The system gives no random numbers.
pub(crate) fn random_id() -> Result<RecordId, ErrorResponse> {
    let mut bytes = [0; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| ErrorResponse::internal_error("the system gives no random numbers"))?;
    Ok(RecordId(u128::from_be_bytes(bytes)))
}
