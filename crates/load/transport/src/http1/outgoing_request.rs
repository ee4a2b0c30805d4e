//! A request that is being written.

use crate::buffers::EncodedRequest;

/// A request that is being written.
#[derive(Debug, Default)]
pub struct OutgoingRequest {
    request: EncodedRequest,
    /// Number of bytes written.
    sent: usize,
    /// Whether TLS has encrypted bytes that the kernel has not accepted yet.
    encrypted: bool,
}

impl OutgoingRequest {
    /// Creates a request without any bytes written.
    pub const fn new(request: EncodedRequest) -> Self {
        Self { request, sent: 0, encrypted: false }
    }

    /// Whether the kernel has accepted everything.
    pub const fn is_done(&self) -> bool {
        self.sent >= self.request.len() && !self.encrypted
    }

    /// The unwritten rest of head and body.
    pub fn rest(&self) -> [&[u8]; 2] {
        let EncodedRequest { head, body } = &self.request;
        let head_sent = self.sent.min(head.len());
        [&head[head_sent..], &body[self.sent - head_sent..]]
    }

    /// Records that this many bytes of the rest were written.
    pub const fn wrote(&mut self, bytes: usize) {
        self.sent += bytes;
    }

    /// Sets whether TLS has encrypted bytes that the kernel has not accepted yet.
    pub(crate) const fn set_encrypted(&mut self, encrypted: bool) {
        self.encrypted = encrypted;
    }

    /// The value last set.
    pub(crate) const fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// Whether it is partly written.
    pub(crate) const fn is_begun(&self) -> bool {
        !self.is_done() && (self.sent > 0 || self.encrypted)
    }

    /// Takes the buffers.
    pub(crate) fn take(&mut self) -> EncodedRequest {
        std::mem::take(self).request
    }
}
