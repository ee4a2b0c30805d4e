//! Two counters that stand for a window that slides.

use super::{admitted, refused};
use crate::{Decision, Limit};

/// The estimate of the requests in the last W is `previous · (W - e) / W + current`, where e is the time
/// since the current window began: it takes the requests of the window before as evenly spread.
///
/// Exact where they were. Where they were not, it is off by the unevenness: a client that sends a whole
/// limit just before the end of a window and then all it is given reaches almost twice the limit in a window
/// of the same length, as with fixed windows; one that sends at the start of a window is held back longer
/// than it must. Who needs a bound for hostile traffic takes [`Log`](super::Log). Requests that are refused
/// are not counted. Windows are aligned to the start of the clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sliding {
    window: u64,
    current: u32,
    previous: u32,
}

impl Sliding {
    fn aged(self, limit: &Limit, now: u64) -> Self {
        let window = now / limit.window_nanos();
        match window.checked_sub(self.window) {
            None | Some(0) => self,
            Some(1) => Self { window, current: 0, previous: self.current },
            Some(_) => Self { window, current: 0, previous: 0 },
        }
    }

    /// What a request would be told.
    pub fn peek(&self, limit: &Limit, now: u64) -> Decision {
        let aged = self.aged(limit, now);
        let length = u128::from(limit.window_nanos());
        let start = u128::from(aged.window) * length;
        let left = length - u128::from(now).saturating_sub(start).min(length);
        // All in units of 1/W of a request, so that nothing is rounded.
        let load = u128::from(aged.previous) * left + u128::from(aged.current) * length;
        let after = load + length;
        if let Some(free) = (u128::from(limit.requests()) * length).checked_sub(after) {
            return admitted(limit, free / length, left + length);
        }
        let reset = if aged.current > 0 { left + length } else { left };
        refused(limit, reset, aged.wait(limit.requests(), length, left))
    }

    /// The time until the estimate leaves room for one, when it does not now.
    fn wait(self, requests: u32, length: u128, left: u128) -> u128 {
        match requests.checked_sub(self.current) {
            // Room within this window, as soon as the one before weighs little enough.
            Some(free @ 1..) => left.saturating_sub(weight(free - 1, self.previous, length)),
            // In the next window, in which the current one is the one before.
            _ => left + length - weight(requests - 1, self.current, length),
        }
    }

    /// Counts a request.
    pub fn charge(&mut self, limit: &Limit, now: u64) {
        *self = self.aged(limit, now);
        self.current = self.current.saturating_add(1);
    }
}

/// The part of a window with which `count` requests weigh no more than `free`.
fn weight(free: u32, count: u32, length: u128) -> u128 {
    (u128::from(free) * length / u128::from(count.max(1))).min(length)
}
