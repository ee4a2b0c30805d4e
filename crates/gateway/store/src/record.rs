//! Why an operation on a session or an approval was not done.

use crate::{ApprovalState, StoreError};

/// Why an operation on a session or an approval was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It never existed, has ended or expired, or belongs to somebody else: the same answer for
    /// all, so that nobody learns of what is not theirs.
    #[error("there is no such record")]
    NotFound,
    /// The session has made all of its tool calls.
    #[error("the session has made all of its tool calls")]
    CallLimit,
    /// As many live ones are held as may be. Nothing live is ever driven out for a new one.
    #[error("no further record is held: all room is taken by live ones")]
    Full,
    /// What shall be kept with it is too large.
    #[error("{bytes} bytes are too large for a record: at most {max}")]
    TooLarge {
        /// Bytes that were offered.
        bytes: usize,
        /// The most that are kept.
        max: usize,
    },
    /// The approval has an outcome already.
    #[error("the approval has an outcome already: {}", .0.name())]
    AlreadyDecided(ApprovalState),
    /// Redis did not answer in time. Sessions and approvals never pass uncounted: this is the
    /// error whatever is chosen for the loss of Redis.
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
