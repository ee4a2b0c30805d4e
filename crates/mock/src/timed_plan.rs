//! Streams as sequences of steps with due times, sent by one body.

use std::fmt;
use std::task::Context;

/// How a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// All content and the final events were sent.
    Complete,
    /// With an error event.
    Error,
    /// The body ends properly, but the dialect's final events are missing.
    Truncated,
    /// The connection is closed, or reset.
    Disconnected {
        /// With a TCP reset.
        reset: bool,
    },
}

/// Steps with the same due time share a write, up to about this many bytes.
const LARGEST_WRITE: usize = 64 * 1024;

/// A sequence of steps. Due times are nanoseconds from the complete request.
pub(crate) trait TimedPlan: fmt::Debug {
    /// When the next step is due; `None` after the last one.
    fn due(&self) -> Option<u64>;
    /// Output tokens sent so far.
    fn tokens_sent(&self) -> u32;
    /// Whether the next step closes or resets the connection.
    fn disconnects(&self) -> bool;
    /// Takes the next step and writes its events; the last step returns the stream's end.
    fn advance(&mut self, in_flight: u64, out: &mut Vec<u8>) -> Option<StreamEnd>;
    /// Takes the steps that are due together. Returns their events, the tokens in them, and the
    /// stream's end if the last step was taken.
    fn advance_together(&mut self, in_flight: u64) -> (Vec<u8>, u32, Option<StreamEnd>) {
        let (due, before) = (self.due(), self.tokens_sent());
        let (mut out, mut end) = (Vec::with_capacity(256), None);
        while self.due() == due && !self.disconnects() && out.len() < LARGEST_WRITE {
            end = self.advance(in_flight, &mut out);
        }
        (out, self.tokens_sent() - before, end)
    }
    /// Takes the last step of a stream that disconnects; returns whether with a reset.
    fn disconnect(&mut self) -> bool {
        self.advance(0, &mut Vec::new()) == Some(StreamEnd::Disconnected { reset: true })
    }
    /// Whether the stream must end now, without its remaining steps. If not, wakes the task later.
    fn poll_stopped(&mut self, _: &mut Context<'_>) -> bool {
        false
    }
    /// The last event of a stopped stream; may be empty.
    fn farewell(&mut self) -> Vec<u8> {
        Vec::new()
    }
}
