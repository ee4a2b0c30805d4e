//! Filters that a response body passes on its way to the client.

use std::error::Error;

use bytes::Bytes;

/// An error that ends a body early.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// An error with a last message: these bytes are sent before the body is aborted.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub(crate) struct LastWords {
    pub(crate) bytes: Bytes,
    pub(crate) source: BoxError,
}

/// Observes a response body and may change it.
pub(crate) trait BodyFilter {
    /// Takes a chunk of the body and returns the bytes to send; an empty result sends none.
    ///
    /// # Errors
    /// The response cannot go on and is aborted.
    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, BoxError>;

    /// Ends the body. Returns the bytes that the filter still holds.
    ///
    /// # Errors
    /// The body turned out to be incomplete; the response is aborted instead of ended.
    fn end(&mut self) -> Result<Bytes, BoxError> {
        Ok(Bytes::new())
    }

    /// The bytes that the filter holds, beyond those in transit.
    fn buffered_bytes(&self) -> usize {
        0
    }

    /// Whether the filter passes every byte unchanged, so that the body's length stays known.
    fn is_transparent(&self) -> bool {
        false
    }
}
