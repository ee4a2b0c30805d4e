//! Unpredictable ids.

use plimsoll_gateway_store::RecordId;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::http::error_response::ErrorResponse;

/// An unpredictable id.
///
/// # Errors
/// The system provides no random numbers.
pub(crate) fn random_id() -> Result<RecordId, ErrorResponse> {
    let mut bytes = [0; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| ErrorResponse::internal_error("the system gives no random numbers"))?;
    Ok(RecordId(u128::from_be_bytes(bytes)))
}
