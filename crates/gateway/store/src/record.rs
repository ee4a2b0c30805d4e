//! Errors of sessions and approvals.

use crate::{ApprovalState, StoreError};

/// Why an operation on a session or an approval failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It never existed, has ended or expired, or has another owner. One answer for all cases, so
    /// that records of other owners stay hidden.
    #[error("there is no such record")]
    NotFound,
    /// The session has made all of its tool calls.
    #[error("the session has made all of its tool calls")]
    CallLimit,
    /// The maximum of live records is reached. Live ones are never evicted.
    #[error("no further record is held: all room is taken by live ones")]
    Full,
    /// The payload is too large.
    #[error("{bytes} bytes are too large for a record: at most {max}")]
    TooLarge {
        /// The size of the payload in bytes.
        bytes: usize,
        /// The maximum in bytes.
        max: usize,
    },
    /// The approval has an outcome already.
    #[error("the approval has an outcome already: {0}")]
    AlreadyDecided(ApprovalState),
    /// Redis did not answer in time. Sessions and approvals are never admitted uncounted, so this
    /// error occurs even if the store is open on loss.
    #[error("the shared store did not answer in time")]
    Unavailable,
}

impl From<StoreError> for RecordError {
    fn from(_: StoreError) -> Self {
        Self::Unavailable
    }
}

/// Whether a payload fits.
pub(crate) const fn check_size(bytes: usize, max: usize) -> Result<(), RecordError> {
    if bytes > max { Err(RecordError::TooLarge { bytes, max }) } else { Ok(()) }
}
