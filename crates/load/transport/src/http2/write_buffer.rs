//! Frames that are queued for writing.

use super::error::{ConnectionError, ErrorCode};
use super::frame;

/// Maximum number of pending acknowledgements while the target does not read. A target that keeps
/// sending and never reads would otherwise exhaust our memory.
const MAX_PENDING_ACKS: usize = 10_000;
/// Capacity kept by an empty buffer.
const KEPT_CAPACITY: usize = 256 * 1024;

/// Queued frames of all streams, in order.
#[derive(Debug, Default)]
pub(super) struct WriteBuffer {
    pub(super) bytes: Vec<u8>,
    written: usize,
    pending_acks: usize,
    /// Number of bytes queued and written before those in `bytes`.
    flushed: u64,
}

impl WriteBuffer {
    /// Bytes to be written.
    pub(super) fn pending(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// Records written bytes.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written < self.bytes.len() {
            return;
        }
        self.flushed += self.bytes.len() as u64;
        (self.written, self.pending_acks) = (0, 0);
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_CAPACITY);
    }

    /// All bytes queued since the connection's start.
    pub(super) const fn total_queued(&self) -> u64 {
        self.flushed + self.bytes.len() as u64
    }

    /// All bytes written since the connection's start.
    pub(super) const fn total_written(&self) -> u64 {
        self.flushed + self.written as u64
    }

    /// Queues an acknowledgement for the target.
    pub(super) fn acknowledge(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), ConnectionError> {
        self.pending_acks += 1;
        if self.pending_acks > MAX_PENDING_ACKS {
            let detail = "it sends many frames to acknowledge, and reads no acknowledgements";
            return Err(ConnectionError::new(ErrorCode::ENHANCE_YOUR_CALM, detail));
        }
        write(&mut self.bytes);
        Ok(())
    }

    pub(super) fn reset(&mut self, stream: u32, code: ErrorCode) {
        frame::reset(stream, code, &mut self.bytes);
    }

    /// Queues a window update, if one is due.
    pub(super) fn window_update(&mut self, stream: u32, by: Option<u32>) {
        if let Some(by) = by {
            frame::window_update(stream, by, &mut self.bytes);
        }
    }
}
