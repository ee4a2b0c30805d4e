//! Rate limits in memory.

use crate::bounded_map::BoundedMap;
use crate::limit::{Charge, Decision, MAX_CHARGES};
use crate::limit_key::{Digest, KeyDigester};
use crate::{RateCounter, StoreError};
use parking_lot::Mutex;

/// Counts of many subjects, shared by all workers of a process.
///
/// The number of keys is bounded, at about 280 bytes each. An existing key needs no allocation. See
/// [`new`](Self::new) for the behaviour when there are more keys.
#[derive(Debug)]
pub struct Limiter {
    digester: KeyDigester,
    counters: Mutex<BoundedMap<RateCounter>>,
}

impl Limiter {
    /// A limiter for at most `keys` subjects.
    ///
    /// A key whose whole limit is available makes room for a new one. If no such key is found, the
    /// least used of eight is evicted and later starts with its whole limit: a flood of new keys
    /// does not evict heavy users.
    pub fn new(keys: usize) -> Self {
        let counters = Mutex::new(BoundedMap::new(keys));
        Self { digester: KeyDigester::default(), counters }
    }

    /// The number of stored keys.
    pub fn keys(&self) -> usize {
        self.counters.lock().len()
    }

    /// Checks a request against all its limits and counts it in all of them, or in none when one
    /// refuses.
    ///
    /// `now` is monotonic, in nanoseconds from any start. Check and count are atomic. Without
    /// charges the request is admitted.
    ///
    /// # Errors
    /// More than [`MAX_CHARGES`] limits.
    pub fn check(&self, now: u64, charges: &[Charge<'_>]) -> Result<Decision, StoreError> {
        if charges.len() > MAX_CHARGES {
            return Err(StoreError::TooManyLimits { count: charges.len(), max: MAX_CHARGES });
        }
        let mut digests = [Digest::default(); MAX_CHARGES];
        for (digest, charge) in digests.iter_mut().zip(charges) {
            *digest = self.digester.digest(charge.key, charge.limit.salt());
        }
        let mut counters = self.counters.lock();
        let decision = peek(&counters, now, charges, &digests);
        if decision.allowed {
            count(&mut counters, now, charges, &digests);
        }
        Ok(decision)
    }
}

/// The decision to report for all limits.
fn peek(
    counters: &BoundedMap<RateCounter>,
    now: u64,
    charges: &[Charge<'_>],
    digests: &[Digest],
) -> Decision {
    let mut spokesman: Option<Decision> = None;
    for (at, (charge, digest)) in charges.iter().zip(digests).enumerate() {
        let decision = counters.find(*digest).map_or_else(
            || RateCounter::new(charge.limit.algorithm()).peek(charge.limit, now),
            |slot| slot.value.peek(charge.limit, now),
        );
        if spokesman.is_none_or(|other| decision.outweighs(&other)) {
            spokesman = Some(Decision { charge: at, ..decision });
        }
    }
    spokesman.unwrap_or_else(|| Decision::uncounted(charges))
}

fn count(
    counters: &mut BoundedMap<RateCounter>,
    now: u64,
    charges: &[Charge<'_>],
    digests: &[Digest],
) {
    for (charge, digest) in charges.iter().zip(digests) {
        let slot = counters.slot(*digest, now, || RateCounter::new(charge.limit.algorithm()));
        let told = slot.value.check(charge.limit, now);
        let reset = u64::try_from(told.reset.as_nanos()).unwrap_or(u64::MAX);
        slot.idle_from = now.saturating_add(reset);
        slot.used = u64::from(told.limit.saturating_sub(told.remaining));
    }
}
