//! Tests that must hold for both stores.

use plimsoll_gateway_store::{
    Backend, Budget, CacheKey, CachedResponse, Followed, Grant, LimitKey, Lookup, Reservation,
    Store,
};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::Duration;

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(future)
}

pub(crate) fn key(number: u8) -> CacheKey {
    CacheKey([number; 32])
}

pub(crate) fn response() -> CachedResponse {
    CachedResponse {
        status: 200,
        headers: vec![("content-type".into(), "text/event-stream".into())],
        frames: vec!["data: 1\n\n".into(), "".into(), "data: [DONE]\n\n".into()],
    }
}

async fn reserve(store: &Store, budget: &Budget, estimate: u64) -> Option<Reservation> {
    let key = LimitKey::new("tenant", "story");
    match store.reserve(1, key, budget, estimate).await.unwrap() {
        Grant::Reserved(reservation) => Some(reservation),
        Grant::Refused(_) => None,
    }
}

/// A budget of 100 from first to last.
pub(crate) async fn budget_story(store: &Store) {
    let budget = Budget::new(100, Duration::from_hours(24 * 300)).unwrap();
    let first = reserve(store, &budget, 60).await.expect("60 of 100");
    assert_eq!((first.state().reserved, first.state().remaining), (60, 40));
    assert!(reserve(store, &budget, 41).await.is_none(), "41 of 40");
    let second = reserve(store, &budget, 40).await.expect("40 of 40");
    first.settle(1, 20).await;
    let state = look(store, &budget).await;
    assert_eq!((state.0, state.1), (20, 40), "40 refunded");
    drop(second);
    released(store, &budget).await;
    let third = reserve(store, &budget, 10).await.expect("10 of 80");
    third.settle(1, 75).await;
    assert_eq!(look(store, &budget).await, (95, 0), "charged more than was reserved");
    assert!(reserve(store, &budget, 6).await.is_none(), "6 of 5");
}

async fn look(store: &Store, budget: &Budget) -> (u64, u64) {
    let state = store.budget(1, LimitKey::new("tenant", "story"), budget).await.unwrap();
    (state.spent, state.reserved)
}

/// In Redis what was dropped is released by a task.
async fn released(store: &Store, budget: &Budget) {
    for _ in 0..200 {
        if look(store, budget).await == (20, 0) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("not released: {:?}", look(store, budget).await);
}

/// The amount that 64 threads spend of 10,000, each settling at its estimate of 7 or 13, or
/// releasing it.
pub(crate) fn spend_from_threads(backend: &Backend, each: u64) -> u64 {
    let budget = Budget::new(10_000, Duration::from_hours(24 * 300)).unwrap();
    let key = LimitKey::new("tenant", "crowd");
    let threads: Vec<_> = (0..64_u64)
        .map(|thread| {
            let backend = backend.clone();
            std::thread::spawn(move || {
                block_on(async {
                    let store = backend.attach().await;
                    for step in 0..each {
                        let amount = [7, 13, 1][usize::try_from((thread + step) % 3).unwrap()];
                        let grant = store.reserve(1, key, &budget, amount).await.unwrap();
                        if let Grant::Reserved(held) = grant {
                            let state = *held.state();
                            assert!(state.spent + state.reserved <= 10_000, "{state:?}");
                            held.settle(1, amount).await;
                        }
                    }
                });
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let state = block_on(async { backend.attach().await.budget(1, key, &budget).await.unwrap() });
    assert_eq!(state.reserved, 0);
    state.spent
}

/// Four runtimes with sixteen tasks each want the same response.
pub(crate) fn one_leader(backend: &Backend) {
    for round in 0..20 {
        let leaders = Arc::new(AtomicUsize::new(0));
        let start = Arc::new(Barrier::new(4));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (backend, leaders) = (backend.clone(), Arc::clone(&leaders));
                let start = Arc::clone(&start);
                std::thread::spawn(move || {
                    block_on(async {
                        let store = backend.attach().await;
                        start.wait();
                        let tasks: Vec<_> = (0..16)
                            .map(|_| {
                                tokio::spawn(obtain(store.clone(), round, Arc::clone(&leaders)))
                            })
                            .collect();
                        for task in tasks {
                            assert_eq!(*task.await.unwrap(), response());
                        }
                    });
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(leaders.load(SeqCst), 1, "round {round}");
    }
    assert_eq!(backend.fetches(), 0);
}

async fn obtain(store: Store, round: u8, leaders: Arc<AtomicUsize>) -> Arc<CachedResponse> {
    match store.lookup(1, key(round)).await {
        Lookup::Hit(response) => response,
        Lookup::Follow(follow) => match follow.wait().await {
            Followed::Response(response) => response,
            other => panic!("{other:?}"),
        },
        Lookup::Lead(lead) => {
            leaders.fetch_add(1, SeqCst);
            tokio::time::sleep(Duration::from_millis(2)).await;
            lead.fill(1, response(), Duration::from_mins(1)).await;
            Arc::new(response())
        }
    }
}

/// Of eight followers one goes away, the leader fails, its successor fails, the next one fills.
pub(crate) fn succession(backend: &Backend) {
    block_on(async {
        let store = backend.attach().await;
        let Lookup::Lead(lead) = store.lookup(1, key(200)).await else { panic!("nobody leads") };
        let led = Arc::new(AtomicUsize::new(0));
        let mut tasks = Vec::new();
        for _ in 0..8 {
            let Lookup::Follow(follow) = store.lookup(1, key(200)).await else { panic!("led") };
            let led = Arc::clone(&led);
            tasks.push(tokio::spawn(async move {
                match follow.wait().await {
                    Followed::Response(response) => Some(response),
                    Followed::Lead(lead) if led.fetch_add(1, SeqCst) == 0 => {
                        drop(lead);
                        None
                    }
                    Followed::Lead(lead) => {
                        lead.fill(1, response(), Duration::from_mins(1)).await;
                        None
                    }
                    Followed::Alone => panic!("it can be shared"),
                }
            }));
        }
        tokio::task::yield_now().await;
        // The first in the queue is chosen when the leader goes, and is gone itself by then.
        drop(lead);
        tasks.remove(0).abort();
        let mut responses = 0;
        for task in tasks {
            let waited = tokio::time::timeout(Duration::from_secs(10), task).await;
            let got = waited.expect("nobody leads any more").unwrap();
            responses += usize::from(got.is_some_and(|got| *got == response()));
        }
        assert_eq!((led.load(SeqCst), responses), (2, 5));
        assert!(matches!(store.lookup(1, key(200)).await, Lookup::Hit(_)));
    });
}

/// A leader without followers fails; another finds that the response cannot be shared.
pub(crate) fn alone(backend: &Backend) {
    block_on(async {
        let store = backend.attach().await;
        let Lookup::Lead(lead) = store.lookup(1, key(201)).await else { panic!("nobody leads") };
        drop(lead);
        assert_eq!(backend.fetches(), 0);
        let Lookup::Lead(lead) = store.lookup(1, key(201)).await else { panic!("nobody leads") };
        let Lookup::Follow(follow) = store.lookup(1, key(201)).await else { panic!("led") };
        lead.alone();
        assert!(matches!(follow.wait().await, Followed::Alone));
        assert!(matches!(store.lookup(1, key(201)).await, Lookup::Lead(_)), "nothing was kept");
    });
}
