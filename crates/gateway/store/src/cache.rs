//! Cached answers with single flight.

use crate::flight::{Boarding, Landing, Seat, Wait};
use crate::{Answer, CacheKey, Store};
use std::sync::Arc;
use std::time::Duration;

/// What somebody who wants an answer is told.
#[derive(Debug)]
pub enum Lookup {
    /// Here it is.
    Hit(Arc<Answer>),
    /// Fetch it; others may be waiting.
    Lead(Lead),
    /// Somebody is fetching it.
    Follow(Follow),
}

/// The duty to fetch an answer. Dropped before [`fill`](Self::fill) or [`alone`](Self::alone), because the
/// fetch failed or was cancelled, it passes to one of those who wait.
#[derive(Debug)]
#[must_use]
pub struct Lead {
    seat: Seat,
    store: Store,
}

/// A place among those who wait. It can be dropped at any time.
#[derive(Debug)]
#[must_use]
pub struct Follow {
    wait: Wait,
    store: Store,
}

/// What waiting ended with.
#[derive(Debug)]
pub enum Followed {
    /// The leader's answer.
    Answer(Arc<Answer>),
    /// The leader failed: fetch it, for the others too.
    Lead(Lead),
    /// The answer cannot be shared: fetch it for yourself.
    Alone,
}

impl Lead {
    /// Keeps the answer for `ttl` and gives it to all who wait. `now` as in [`Store::check`].
    pub async fn fill(self, now: u64, answer: Answer, ttl: Duration) {
        let answer = Arc::new(answer);
        match &self.store {
            Store::MemoryStore(store) => store.keep(now, self.seat.key(), Arc::clone(&answer), ttl),
            Store::Redis(store) => Box::pin(store.keep(&self.seat.key(), &answer, ttl)).await,
        }
        // Stored before the flight ends: see `Flights::board`.
        self.seat.land(Some(answer));
    }

    /// The answer cannot be kept (an error, too large, not to be stored): all who wait fetch for themselves.
    pub fn alone(self) {
        self.seat.land(None);
    }
}

impl Follow {
    /// Waits until the leader has the answer, or has failed. There is no limit of time here: the caller has
    /// one.
    ///
    /// # Cancel safety
    /// Dropped while it waits, it gives up the place; if it was just chosen to lead, another is chosen.
    pub async fn wait(self) -> Followed {
        match self.wait.landing().await {
            Landing::Answer(answer) => Followed::Answer(answer),
            Landing::Lead(seat) => Followed::Lead(Lead { seat, store: self.store }),
            Landing::Alone => Followed::Alone,
        }
    }
}

/// Finds an answer, or takes part in fetching it.
pub(crate) async fn lookup(store: &Store, now: u64, key: CacheKey) -> Lookup {
    match store {
        Store::MemoryStore(embedded) => {
            if let Some(answer) = embedded.cached(now, &key) {
                return Lookup::Hit(answer);
            }
            let look = || embedded.answers.find(&key, now);
            told(store, embedded.flights.board(key, look))
        }
        Store::Redis(redis) => Box::pin(lookup_in_redis(store, redis, key)).await,
    }
}

async fn lookup_in_redis(store: &Store, redis: &crate::RedisStore, key: CacheKey) -> Lookup {
    let flights = &redis.backend.flights;
    let before = flights.ended(&key);
    let found = redis.cached(&key).await;
    redis.backend.tally.looked_up(found.is_some());
    if let Some(answer) = found {
        return Lookup::Hit(answer);
    }
    match flights.board(key, || None) {
        // A flight ended since Redis was asked: it may have been this one.
        Boarding::Lead(seat) if flights.ended(&key) != before => match redis.cached(&key).await {
            Some(answer) => {
                seat.land(Some(Arc::clone(&answer)));
                Lookup::Hit(answer)
            }
            None => told(store, Boarding::Lead(seat)),
        },
        boarding => told(store, boarding),
    }
}

fn told(store: &Store, boarding: Boarding) -> Lookup {
    match boarding {
        Boarding::Lead(seat) => Lookup::Lead(Lead { seat, store: store.clone() }),
        Boarding::Follow(wait) => Lookup::Follow(Follow { wait, store: store.clone() }),
        Boarding::Here(answer) => Lookup::Hit(answer),
    }
}
