//! Bytes that wait to be written.

use super::error::{Code, Violation};
use super::frame;

/// Answers that may wait while the target reads nothing: one that keeps asking and never listens gives up memory of
/// ours otherwise.
const MAX_ANSWERS: usize = 10_000;
/// Room that is kept when nothing waits.
const KEPT: usize = 256 * 1024;

/// The frames of all streams, in order.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) bytes: Vec<u8>,
    written: usize,
    answers: usize,
    /// Bytes that were queued, from the connection's start.
    queued: u64,
}

impl Output {
    /// What is to be written.
    pub(super) fn pending(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// So much of it was.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written < self.bytes.len() {
            return;
        }
        self.queued += self.bytes.len() as u64;
        (self.written, self.answers) = (0, 0);
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
    }

    /// Bytes queued up to now, counted from the connection's start.
    pub(super) const fn end(&self) -> u64 {
        self.queued + self.bytes.len() as u64
    }

    /// Bytes written up to now, counted likewise.
    pub(super) const fn start(&self) -> u64 {
        self.queued + self.written as u64
    }

    /// Adds a frame that the target asked for.
    pub(super) fn answer(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Violation> {
        self.answers += 1;
        if self.answers > MAX_ANSWERS {
            let detail = "it asks and asks, and does not read the answers";
            return Err(Violation::new(Code::ENHANCE_YOUR_CALM, detail));
        }
        write(&mut self.bytes);
        Ok(())
    }

    pub(super) fn reset(&mut self, stream: u32, code: Code) {
        frame::reset(stream, code, &mut self.bytes);
    }

    /// Tells of room in a window, where there is something to tell.
    pub(super) fn room(&mut self, stream: u32, by: Option<u32>) {
        if let Some(by) = by {
            frame::window_update(stream, by, &mut self.bytes);
        }
    }
}
