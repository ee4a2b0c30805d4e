//! Errors of the store.

use std::time::Duration;

/// An error of the store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A window outside the supported range. Remedy: between a millisecond and 366 days.
    #[error("a window of {0:?} cannot be counted: write one between 1ms and 366 days")]
    Window(Duration),
    /// Too many limits for one check. Remedy: at most [`MAX_CHARGES`](crate::MAX_CHARGES) limits
    /// per request.
    #[error("{count} limits for one request: at most {max} are checked at once")]
    TooManyLimits {
        /// The number of requested limits.
        count: usize,
        /// The maximum of one check.
        max: usize,
    },
    /// The address of Redis is invalid. The message omits it, because it may contain a password.
    /// Remedy: write `redis://HOST:PORT` or `redis://HOST:PORT/DB`.
    #[error("the address of Redis cannot be read: write it like redis://127.0.0.1:6379")]
    Address,
    /// Redis did not answer in time and the store is closed on loss. Remedy: answer 503; look at
    /// Redis, or choose to be open on loss.
    #[error("the shared store did not answer in time")]
    Unavailable,
}
