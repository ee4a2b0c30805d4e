//! Rate limits in memory.

use crate::bounded_map::BoundedMap;
use crate::limit::{Charge, Decision, MAX_CHARGES};
use crate::limit_key::{Digest, KeyDigester};
use crate::{RateCounter, StoreError};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Parts with a lock each, so that workers seldom meet.
const SHARDS: usize = 64;

/// Counts of many subjects, shared by all workers of a process.
///
/// At most as many keys as it was made for: about 280 bytes each. A key that exists costs no
/// allocation. See [`new`](Self::new) for what happens when there are more keys.
#[derive(Debug)]
pub struct Limiter {
    digester: KeyDigester,
    shards: Box<[Shard]>,
}

/// On cache lines of its own: neighbours do not slow each other down.
#[derive(Debug)]
#[repr(align(128))]
struct Shard(Mutex<BoundedMap<RateCounter>>);

type Guard<'a> = MutexGuard<'a, BoundedMap<RateCounter>>;

/// Where one charge is counted.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    digest: Digest,
    shard: usize,
}

impl Limiter {
    /// For at most `keys` subjects at once, rounded up to a multiple of 64.
    ///
    /// A key whose limit is wholly free again makes room for a new one. When all keys are in use,
    /// the least used of eight is forgotten, and begins again with its whole limit: a flood of new
    /// keys does not wash out those that have used up much.
    pub fn new(keys: usize) -> Self {
        let room = keys.div_ceil(SHARDS);
        let shards = (0..SHARDS).map(|_| Shard(Mutex::new(BoundedMap::new(room)))).collect();
        Self { digester: KeyDigester::default(), shards }
    }

    /// Keys held now.
    pub fn keys(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// Checks a request against all its limits and counts it in all of them, or in none when one
    /// refuses.
    ///
    /// `now` is monotonic, in nanoseconds from any start. All shards concerned are locked, in
    /// ascending order, before the first count is read: no other check comes between. No charges,
    /// no limit: admitted.
    ///
    /// # Errors
    /// More than [`MAX_CHARGES`] limits.
    pub fn check(&self, now: u64, charges: &[Charge<'_>]) -> Result<Decision, StoreError> {
        if charges.len() > MAX_CHARGES {
            return Err(StoreError::TooManyLimits { count: charges.len(), max: MAX_CHARGES });
        }
        let mut places = [Place::default(); MAX_CHARGES];
        for (place, charge) in places.iter_mut().zip(charges) {
            *place = self.place(charge);
        }
        let mut locked = Locked::new(&self.shards, &places[..charges.len()]);
        let decision = peek(&mut locked, now, charges, &places);
        if decision.allowed {
            count(&mut locked, now, charges, &places);
        }
        Ok(decision)
    }

    fn place(&self, charge: &Charge<'_>) -> Place {
        let digest = self.digester.digest(charge.key, charge.limit.salt());
        Place { digest, shard: digest.shard(SHARDS) }
    }
}

fn lock(shard: &Shard) -> Guard<'_> {
    shard.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The decision that speaks for all.
fn peek(locked: &mut Locked<'_>, now: u64, charges: &[Charge<'_>], places: &[Place]) -> Decision {
    let mut spokesman: Option<Decision> = None;
    for (at, (charge, place)) in charges.iter().zip(places).enumerate() {
        let known =
            locked.bounded_map(place.shard).and_then(|bounded_map| bounded_map.find(place.digest));
        let decision = known.map_or_else(
            || RateCounter::new(charge.limit.algorithm()).peek(charge.limit, now),
            |slot| slot.value.peek(charge.limit, now),
        );
        if spokesman.is_none_or(|other| decision.outweighs(&other)) {
            spokesman = Some(Decision { charge: at, ..decision });
        }
    }
    spokesman.unwrap_or_else(|| Decision::uncounted(charges))
}

fn count(locked: &mut Locked<'_>, now: u64, charges: &[Charge<'_>], places: &[Place]) {
    for (charge, place) in charges.iter().zip(places) {
        let Some(bounded_map) = locked.bounded_map(place.shard) else { continue };
        let slot =
            bounded_map.slot(place.digest, now, || RateCounter::new(charge.limit.algorithm()));
        let told = slot.value.check(charge.limit, now);
        let reset = u64::try_from(told.reset.as_nanos()).unwrap_or(u64::MAX);
        slot.idle_from = now.saturating_add(reset);
        slot.used = u64::from(told.limit.saturating_sub(told.remaining));
    }
}

/// The shards of one check, each locked once.
struct Locked<'a> {
    shards: [usize; MAX_CHARGES],
    guards: [Option<Guard<'a>>; MAX_CHARGES],
}

impl<'a> Locked<'a> {
    fn new(all: &'a [Shard], places: &[Place]) -> Self {
        let mut shards = [usize::MAX; MAX_CHARGES];
        for (shard, place) in shards.iter_mut().zip(places) {
            *shard = place.shard;
        }
        // Everybody locks in the same order, so that nobody waits for each other.
        shards[..places.len()].sort_unstable();
        let mut guards = [const { None }; MAX_CHARGES];
        for at in 0..places.len() {
            if at == 0 || shards[at - 1] != shards[at] {
                guards[at] = all.get(shards[at]).map(lock);
            }
        }
        Self { shards, guards }
    }

    fn bounded_map(&mut self, shard: usize) -> Option<&mut BoundedMap<RateCounter>> {
        // The first of equal numbers holds the lock.
        let at = self.shards.iter().position(|&held| held == shard)?;
        self.guards[at].as_deref_mut()
    }
}
