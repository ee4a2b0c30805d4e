//! The exact log of the requests that were admitted.

use super::{admitted, refused};
use crate::{Decision, Limit};
use std::collections::VecDeque;

/// A request at time t counts at t <= now < t + W: never more than the limit in any window of that
/// length.
///
/// Costs 8 bytes for each request admitted within the window; nothing for those refused.
#[derive(Clone, Debug, Default)]
pub struct SlidingLog {
    /// In ascending order.
    times: VecDeque<u64>,
}

impl SlidingLog {
    /// The decision for a request at this time.
    pub fn peek(&self, limit: &Limit, now: u64) -> Decision {
        let now = self.now(now);
        let window = limit.window_nanos();
        let gone = self.times.partition_point(|&time| expired(time, window, now));
        let live = self.times.len() - gone;
        let allowed = limit.requests() as usize;
        let until = |time: Option<&u64>| {
            u128::from(time.map_or(0, |time| window.saturating_sub(now - time)))
        };
        if live < allowed {
            return admitted(limit, (allowed - live - 1) as u128, u128::from(window));
        }
        // As many must expire as leave room for one.
        let last_to_go = self.times.get(self.times.len() - allowed);
        refused(limit, until(self.times.back()), until(last_to_go))
    }

    /// Counts a request.
    pub fn charge(&mut self, limit: &Limit, now: u64) {
        let now = self.now(now);
        let window = limit.window_nanos();
        while self.times.front().is_some_and(|&time| expired(time, window, now)) {
            self.times.pop_front();
        }
        self.times.push_back(now);
    }

    fn now(&self, now: u64) -> u64 {
        self.times.back().map_or(now, |&last| last.max(now))
    }
}

/// `time` is not after `now`.
fn expired(time: u64, window: u64, now: u64) -> bool {
    now - time >= window
}
