//! Budgets, the cache, and single flight, in memory and across runtimes.

use crate::support;
use plimsoll_gateway_store::{Backend, Budget, BudgetCounter, Grant, LimitKey, Sizes, Store};
use std::time::Duration;

const HOUR: u64 = 3_600_000_000_000;
const ACME: LimitKey<'static> = LimitKey::new("tenant", "acme");

async fn store() -> Store {
    Backend::memory(Sizes::default()).attach().await
}

#[test]
fn a_budget_is_reserved_settled_released_and_reset() {
    support::block_on(async {
        let (store, budget) = (store().await, Budget::new(100, Duration::from_hours(1)).unwrap());
        support::budget_story(&store).await;
        let Grant::Reserved(held) = store.reserve(1, ACME, &budget, 10).await.unwrap() else {
            panic!("there is room in this key of its own")
        };
        let next = store.budget(HOUR + 1, ACME, &budget).await.unwrap();
        assert_eq!(
            (next.spent, next.reserved, next.remaining),
            (0, 10, 90),
            "what runs stays reserved"
        );
        assert_eq!(next.resets, Duration::from_nanos(HOUR - 1));
        held.settle(HOUR + 2, 30).await;
        assert_eq!(store.budget(HOUR + 3, ACME, &budget).await.unwrap().spent, 30);
    });
}

#[test]
fn a_purse_never_promises_more_than_the_limit() {
    let budget = Budget::new(1_000, Duration::from_hours(1)).unwrap();
    let mut counter = BudgetCounter::default();
    assert!(!counter.reserve(&budget, 0, u64::MAX), "no overflow");
    assert!(counter.reserve(&budget, 0, 1_000));
    assert!(!counter.reserve(&budget, 0, 1));
    counter.settle(&budget, 0, 1_000, 1_500);
    let state = counter.state(&budget, 0);
    assert_eq!((state.spent, state.remaining), (1_500, 0), "over by what was not foreseen");
}

#[test]
fn sixty_four_threads_never_spend_more_than_the_budget() {
    let backend = Backend::memory(Sizes::default());
    assert_eq!(support::spend_from_threads(&backend, 200), 10_000);
}

#[test]
fn one_leader_of_sixty_four_tasks_on_four_runtimes() {
    support::one_leader(&Backend::memory(Sizes::default()));
}

#[test]
fn when_the_leader_goes_a_follower_leads() {
    let backend = Backend::memory(Sizes::default());
    support::succession(&backend);
    assert_eq!(backend.fetches(), 0, "nothing is left behind");
}

#[test]
fn what_cannot_be_shared_is_fetched_alone() {
    support::alone(&Backend::memory(Sizes::default()));
}

#[test]
fn small_values_live_as_long_as_they_were_given() {
    support::block_on(async {
        let store = store().await;
        let key = support::key(1);
        assert_eq!(store.value(0, &key).await.unwrap(), None);
        store.put_value(0, key, "session".into(), Duration::from_nanos(10)).await.unwrap();
        assert_eq!(store.value(9, &key).await.unwrap().unwrap(), "session");
        assert_eq!(store.value(10, &key).await.unwrap(), None);
    });
}
