//! Streams as sequences of steps with due times, sent by one body.

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

/// A sequence of steps. Due times are nanoseconds from the complete request.
pub(crate) trait TimedPlan {
    /// When the next step is due; `None` after the last one.
    fn due(&self) -> Option<u64>;
    /// Output tokens sent so far.
    fn tokens_sent(&self) -> u32;
    /// Whether the next step closes or resets the connection.
    fn disconnects(&self) -> bool;
    /// Takes the next step and writes its events; the last step returns the stream's end.
    fn advance(&mut self, in_flight: u64, out: &mut Vec<u8>) -> Option<StreamEnd>;
    /// Whether the stream must end now, without its remaining steps. If not, wakes the task later.
    fn poll_stopped(&mut self, _: &mut Context<'_>) -> bool {
        false
    }
    /// The last event of a stopped stream; may be empty.
    fn farewell(&mut self) -> Vec<u8> {
        Vec::new()
    }
}
