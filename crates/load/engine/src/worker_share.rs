//! The part of the load that one worker generates.

use std::num::NonZero;
use std::thread;

use plimsoll_measure::Stripe;
use plimsoll_plan::Plan;

/// The part of one worker in the load of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkerShare {
    /// Its part of the virtual users.
    pub(crate) users: Stripe,
    /// Its part of the arrivals; `None` where there are fewer slots than workers, and the others
    /// have all of them.
    pub(crate) arrivals: Option<Stripe>,
}

impl WorkerShare {
    /// The undivided load.
    pub(crate) const WHOLE: Self = Self { users: Stripe::WHOLE, arrivals: Some(Stripe::WHOLE) };

    /// The part of worker `index` of `count`, of a shard of a run with at most `max_in_flight`
    /// requests in flight. The slots of all workers of all shards add up to exactly that, and no
    /// worker has arrivals without a slot.
    pub(crate) fn new(shard: Stripe, index: u16, count: u16, max_in_flight: u64) -> Self {
        let (index, count) = (u64::from(index), u64::from(count));
        let with_slots = count.min(shard.share(max_in_flight));
        Self {
            users: shard.divide(index, count).unwrap_or(shard),
            arrivals: shard.divide(index, with_slots),
        }
    }

    /// Its slots of `max_in_flight`.
    pub(crate) const fn max_in_flight(&self, total: u64) -> u64 {
        match self.arrivals {
            Some(stripe) => stripe.share(total),
            None => 0,
        }
    }
}

// How many workers a run has.

/// Number of workers: the configured number, or one for each core that this process may use.
pub(crate) fn worker_count(plan: &Plan) -> u16 {
    plan.limits.workers.unwrap_or_else(cores).max(1)
}

/// Cores that this process may use.
pub(crate) fn cores() -> u16 {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    u16::try_from(cores).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(shards: u64, workers: u16, max_in_flight: u64) -> Vec<WorkerShare> {
        (0..shards)
            .map(|shard| Stripe::new(shard, shards).unwrap())
            .flat_map(|shard| {
                (0..workers).map(move |w| WorkerShare::new(shard, w, workers, max_in_flight))
            })
            .collect()
    }

    #[test]
    fn the_slots_of_all_workers_are_exactly_the_limit() {
        for (shards, workers, max) in
            [(1, 16, 4), (1, 1, 1), (1, 2, 1), (1, 16, 100), (3, 4, 10), (2, 4, 2), (4, 3, 10_000)]
        {
            let parts = parts(shards, workers, max);
            let slots: u64 = parts.iter().map(|part| part.max_in_flight(max)).sum();
            assert_eq!(slots, max, "{shards} shards of {workers} workers");
        }
    }

    #[test]
    fn every_arrival_has_a_worker_with_a_slot_and_every_user_a_worker() {
        for (shards, workers, max) in [(1, 16, 4), (1, 2, 1), (3, 4, 10), (2, 4, 2), (1, 4, 100)] {
            let parts = parts(shards, workers, max);
            for n in 0..200 {
                let owners: Vec<_> = parts
                    .iter()
                    .filter(|part| part.arrivals.is_some_and(|stripe| stripe.owns(n)))
                    .collect();
                assert_eq!(owners.len(), 1, "arrival {n}: {shards} shards of {workers}");
                assert!(owners[0].max_in_flight(max) > 0);
                assert_eq!(parts.iter().filter(|part| part.users.owns(n)).count(), 1);
            }
        }
    }
}
