//! A counter that starts again with every window.

use super::{admitted, refused};
use crate::{Decision, Limit};

/// Windows are aligned to the start of the clock: the n-th is `[n·W, (n+1)·W)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedWindow {
    window: u64,
    count: u32,
}

impl FixedWindow {
    fn aged(self, limit: &Limit, now: u64) -> Self {
        let window = now / limit.window_nanos();
        if window > self.window { Self { window, count: 0 } } else { self }
    }

    /// The decision for a request at this time.
    pub fn peek(&self, limit: &Limit, now: u64) -> Decision {
        let aged = self.aged(limit, now);
        let length = u128::from(limit.window_nanos());
        let end = (u128::from(aged.window) + 1) * length;
        let left = end.saturating_sub(u128::from(now)).min(length);
        match limit.requests().checked_sub(aged.count) {
            Some(free @ 1..) => admitted(limit, u128::from(free - 1), left),
            _ => refused(limit, left, left),
        }
    }

    /// Counts a request.
    pub fn charge(&mut self, limit: &Limit, now: u64) {
        *self = self.aged(limit, now);
        self.count = self.count.saturating_add(1);
    }
}
