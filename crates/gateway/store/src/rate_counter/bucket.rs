//! A bucket of tokens, kept as the debt of tokens taken and not yet filled up.

use super::{admitted, refused};
use crate::{Decision, Limit};

/// The bucket holds as many tokens as the limit and gains `limit / W` per unit of time.
///
/// In units of 1/W of a token everything is a whole number: a request takes W, a nanosecond gives
/// back `limit`, and the bucket is empty at a debt of `limit · W`. Nothing is rounded, so that no
/// rate drifts.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokenBucket {
    debt: u128,
    at: u64,
}

impl TokenBucket {
    fn aged(self, limit: &Limit, now: u64) -> Self {
        let given = u128::from(now.saturating_sub(self.at)) * u128::from(limit.requests());
        Self { debt: self.debt.saturating_sub(given), at: now.max(self.at) }
    }

    /// The decision for a request at this time.
    pub fn peek(&self, limit: &Limit, now: u64) -> Decision {
        let debt = self.aged(limit, now).debt;
        let rate = u128::from(limit.requests());
        let token = u128::from(limit.window_nanos());
        let after = debt + token;
        match (rate * token).checked_sub(after) {
            Some(left) => admitted(limit, left / token, after.div_ceil(rate)),
            None => refused(limit, debt.div_ceil(rate), (after - rate * token).div_ceil(rate)),
        }
    }

    /// Counts a request.
    pub fn charge(&mut self, limit: &Limit, now: u64) {
        *self = self.aged(limit, now);
        self.debt += u128::from(limit.window_nanos());
    }
}
