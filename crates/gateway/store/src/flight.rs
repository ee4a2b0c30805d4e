//! One fetches, the others wait: requests for the same answer at the same time, across worker threads.

use crate::{Answer, CacheKey};
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::Notify;

const SHARDS: usize = 16;

/// All fetches under way in a process.
#[derive(Debug)]
pub(crate) struct Flights {
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
}

#[derive(Debug, Default)]
struct Shard {
    flights: HashMap<CacheKey, Entry>,
    /// Flights that ended here: who compares two readings knows whether one ended between.
    ended: u64,
}

#[derive(Debug)]
struct Entry {
    flight: Arc<Flight>,
    led: bool,
    followers: usize,
}

/// One fetch. Notify and not watch: when a leader fails exactly one follower must wake, and a wake-up that
/// reaches a follower that has gone away must pass on to the next. That is what `notify_one` promises.
#[derive(Debug, Default)]
struct Flight {
    /// Set once at the end: the answer, or none when everybody must fetch alone.
    outcome: OnceLock<Option<Arc<Answer>>>,
    wake: Notify,
}

/// What somebody who wants an answer is told.
#[derive(Debug)]
pub(crate) enum Boarding {
    /// Fetch it.
    Lead(Seat),
    /// Wait for it.
    Follow(Wait),
    /// It has just come.
    Here(Arc<Answer>),
}

/// What waiting ends with.
#[derive(Debug)]
pub(crate) enum Landing {
    /// The leader's answer.
    Answer(Arc<Answer>),
    /// The leader failed: fetch it now, for the others too.
    Lead(Seat),
    /// The leader has found that the answer cannot be shared.
    Alone,
}

impl Flights {
    pub(crate) fn new() -> Arc<Self> {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Arc::new(Self { hasher: RandomState::new(), shards })
    }

    fn shard(&self, key: &CacheKey) -> MutexGuard<'_, Shard> {
        let at = self.hasher.hash_one(key) % self.shards.len() as u64;
        let shard = &self.shards[usize::try_from(at).unwrap_or(0)];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Flights that ended among the keys near this one.
    pub(crate) fn ended(&self, key: &CacheKey) -> u64 {
        self.shard(key).ended
    }

    /// Leads or follows. `look` is asked once more, under the lock, before a new flight begins: a leader
    /// stores its answer before its flight ends, so that nobody who just missed it fetches again.
    pub(crate) fn board(
        self: &Arc<Self>,
        key: CacheKey,
        look: impl FnOnce() -> Option<Arc<Answer>>,
    ) -> Boarding {
        let mut shard = self.shard(&key);
        let Some(entry) = shard.flights.get_mut(&key) else {
            if let Some(answer) = look() {
                return Boarding::Here(answer);
            }
            let flight = Arc::<Flight>::default();
            let entry = Entry { flight: Arc::clone(&flight), led: true, followers: 0 };
            shard.flights.insert(key, entry);
            return Boarding::Lead(Seat { flights: Arc::clone(self), key, flight });
        };
        let flight = Arc::clone(&entry.flight);
        if entry.led {
            entry.followers += 1;
            return Boarding::Follow(Wait {
                flights: Arc::clone(self),
                key,
                flight,
                counted: true,
            });
        }
        entry.led = true;
        Boarding::Lead(Seat { flights: Arc::clone(self), key, flight })
    }

    /// Fetches under way.
    pub(crate) fn under_way(&self) -> usize {
        let locked = self.shards.iter().map(|s| s.lock().unwrap_or_else(PoisonError::into_inner));
        locked.map(|shard| shard.flights.len()).sum()
    }
}

impl Shard {
    /// The entry of this very flight; a later one of the same key is somebody else's.
    fn of(&mut self, key: &CacheKey, flight: &Arc<Flight>) -> Option<&mut Entry> {
        self.flights.get_mut(key).filter(|entry| Arc::ptr_eq(&entry.flight, flight))
    }

    fn end(&mut self, key: &CacheKey) {
        self.flights.remove(key);
        self.ended += 1;
    }
}

/// The duty to fetch. Dropped without an end, it passes to one of those who wait.
#[derive(Debug)]
pub(crate) struct Seat {
    flights: Arc<Flights>,
    key: CacheKey,
    flight: Arc<Flight>,
}

impl Seat {
    pub(crate) fn key(&self) -> CacheKey {
        self.key
    }

    /// Ends the flight for all: with the answer, or with none when it cannot be shared.
    pub(crate) fn land(self, outcome: Option<Arc<Answer>>) {
        // Set before the entry goes: who finds no entry finds the answer where it was stored.
        let _ = self.flight.outcome.set(outcome);
        self.flights.shard(&self.key).end(&self.key);
        self.flight.wake.notify_waiters();
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.flight.outcome.get().is_some() {
            return;
        }
        let mut shard = self.flights.shard(&self.key);
        let Some(entry) = shard.of(&self.key, &self.flight) else { return };
        entry.led = false;
        if entry.followers == 0 {
            shard.end(&self.key);
        } else {
            self.flight.wake.notify_one();
        }
    }
}

/// A place among those who wait. Dropping it gives it up.
#[derive(Debug)]
pub(crate) struct Wait {
    flights: Arc<Flights>,
    key: CacheKey,
    flight: Arc<Flight>,
    counted: bool,
}

impl Wait {
    /// Waits for the leader's end, however it ends.
    pub(crate) async fn landing(mut self) -> Landing {
        let flight = Arc::clone(&self.flight);
        loop {
            // Listens before it looks, so that no wake-up falls between the two.
            let mut woken = std::pin::pin!(flight.wake.notified());
            woken.as_mut().enable();
            if let Some(outcome) = flight.outcome.get() {
                return outcome.clone().map_or(Landing::Alone, Landing::Answer);
            }
            if let Some(seat) = self.take_over() {
                return Landing::Lead(seat);
            }
            woken.await;
        }
    }

    /// Takes the lead if nobody has it.
    fn take_over(&mut self) -> Option<Seat> {
        let mut shard = self.flights.shard(&self.key);
        let entry = shard.of(&self.key, &self.flight).filter(|entry| !entry.led)?;
        entry.led = true;
        entry.followers -= 1;
        self.counted = false;
        drop(shard);
        let flight = Arc::clone(&self.flight);
        Some(Seat { flights: Arc::clone(&self.flights), key: self.key, flight })
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if !self.counted {
            return;
        }
        let mut shard = self.flights.shard(&self.key);
        let Some(entry) = shard.of(&self.key, &self.flight) else { return };
        entry.followers -= 1;
        if !entry.led && entry.followers == 0 {
            shard.end(&self.key);
        }
    }
}
