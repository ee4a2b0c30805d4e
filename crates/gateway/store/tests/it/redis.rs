//! The same against a real Redis, and what happens when it goes away.

use crate::{redis_server, support};
use plimsoll_gateway_store::{
    Algorithm, Backend, Charge, FailureMode, Limit, LimitKey, RedisSettings, Store, StoreError,
};
use std::num::NonZeroU32;
use std::time::Duration;

/// Long enough for a busy machine: these tests are not about time.
fn settings(server: &redis_server::Redis) -> RedisSettings {
    let mut settings = RedisSettings::new(server.url());
    settings.timeout = Duration::from_secs(10);
    settings
}

fn backend(server: &redis_server::Redis) -> Backend {
    Backend::redis(settings(server)).unwrap()
}

fn limit(requests: u32, algorithm: Algorithm) -> Limit {
    Limit::new(NonZeroU32::new(requests).unwrap(), Duration::from_hours(24 * 300), algorithm)
        .unwrap()
}

async fn admits(store: &Store, limit: &Limit) -> Result<bool, StoreError> {
    let charge = Charge { key: LimitKey::new("global", ""), limit };
    store.check(0, &[charge]).await.map(|decision| decision.allowed)
}

#[test]
fn sixty_four_connections_are_never_admitted_more_than_the_limit() {
    let server = redis_server::Redis::start();
    let backend = backend(&server);
    for algorithm in [Algorithm::Sliding, Algorithm::Bucket] {
        let threads: Vec<_> = (0..64)
            .map(|_| {
                let backend = backend.clone();
                std::thread::spawn(move || {
                    support::block_on(async {
                        let (store, limit) = (backend.attach().await, limit(300, algorithm));
                        let mut admitted = 0;
                        for _ in 0..10 {
                            admitted += u32::from(admits(&store, &limit).await.unwrap());
                        }
                        admitted
                    })
                })
            })
            .collect();
        let admitted: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(admitted, 300, "{algorithm:?}");
    }
    assert_eq!(backend.errors(), 0);
}

#[test]
fn of_several_limits_all_are_charged_or_none() {
    let server = redis_server::Redis::start();
    support::block_on(async {
        let store = backend(&server).attach().await;
        let (global, tenant) = (limit(4, Algorithm::Sliding), limit(3, Algorithm::Bucket));
        let check = async |name| {
            let charges = [
                Charge { key: LimitKey::new("global", ""), limit: &global },
                Charge { key: LimitKey::new("tenant", name), limit: &tenant },
            ];
            let told = store.check(0, &charges).await.unwrap();
            (told.allowed, told.charge, told.limit, told.remaining)
        };
        for left in [2, 1, 0] {
            assert_eq!(check("a").await, (true, 1, 3, left));
        }
        assert_eq!(check("a").await, (false, 1, 3, 0));
        assert_eq!(check("b").await, (true, 0, 4, 0), "the refusal took nothing");
        assert!(!check("b").await.0);
    });
}

#[test]
fn budgets() {
    let server = redis_server::Redis::start();
    let backend = backend(&server);
    support::block_on(async { support::budget_story(&backend.attach().await).await });
    assert_eq!(support::spend_from_threads(&backend, 40), 10_000);
}

#[test]
fn a_reservation_of_a_dead_gateway_ends_with_its_lease() {
    let server = redis_server::Redis::start();
    let mut settings = settings(&server);
    settings.lease = Duration::from_millis(300);
    let backend = Backend::redis(settings).unwrap();
    let budget = plimsoll_gateway_store::Budget::new(100, Duration::from_hours(24 * 300)).unwrap();
    let key = LimitKey::new("tenant", "dead");
    // The runtime ends with the reservation: nobody is there to release it.
    let held = support::block_on(async {
        backend.attach().await.reserve(0, key, &budget, 100).await.unwrap()
    });
    drop(held);
    support::block_on(async {
        let store = backend.attach().await;
        for _ in 0..500 {
            if store.budget(0, key, &budget).await.unwrap().reserved == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("still reserved");
    });
}

#[test]
fn responses_single_flight_and_values() {
    let server = redis_server::Redis::start();
    let backend = backend(&server);
    support::one_leader(&backend);
    support::succession(&backend);
    support::alone(&backend);
    support::block_on(async {
        let (store, key) = (backend.attach().await, support::key(1));
        assert_eq!(store.value(0, &key).await.unwrap(), None);
        store.put_value(0, key, "session".into(), Duration::from_mins(1)).await.unwrap();
        assert_eq!(store.value(0, &key).await.unwrap().unwrap(), "session");
    });
    assert_eq!(backend.errors(), 0);
}

#[test]
fn a_server_that_forgot_the_scripts_is_told_again() {
    let server = redis_server::Redis::start();
    let backend = backend(&server);
    support::block_on(async {
        let (store, limit) = (backend.attach().await, limit(2, Algorithm::Sliding));
        assert!(admits(&store, &limit).await.unwrap());
        assert_eq!(server.cli(&["SCRIPT", "FLUSH"]).trim(), "OK");
        assert!(admits(&store, &limit).await.unwrap());
        assert!(!admits(&store, &limit).await.unwrap(), "the counts were kept");
    });
    assert_eq!(backend.errors(), 0);
}

#[test]
fn lost_and_found_again_open_and_closed() {
    let mut server = redis_server::Redis::start();
    let open = backend(&server);
    let closed =
        Backend::redis(RedisSettings { on_loss: FailureMode::Closed, ..settings(&server) })
            .unwrap();
    support::block_on(async {
        let limit = limit(3, Algorithm::Bucket);
        let (free, strict) = (open.attach().await, closed.attach().await);
        for _ in 0..3 {
            assert!(admits(&free, &limit).await.unwrap());
        }
        assert!(!admits(&strict, &limit).await.unwrap(), "both count the same");
        server.kill();
        for _ in 0..10 {
            assert!(admits(&free, &limit).await.unwrap(), "open");
            assert_eq!(admits(&strict, &limit).await, Err(StoreError::Unavailable), "closed");
        }
        assert_eq!((open.errors(), closed.errors()), (10, 10));
        server.restart();
        recovered(&strict, &limit).await;
        recovered(&free, &limit).await;
    });
}

/// Until requests are counted again: the server is empty, so that some are admitted and then none.
async fn recovered(store: &Store, limit: &Limit) {
    for _ in 0..1_000 {
        if admits(store, limit).await == Ok(false) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not counted again within 10 s");
}
