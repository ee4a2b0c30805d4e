//! Accepted = written + dropped + queued, in every snapshot.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_gateway_audit::{Audit, Drops, Offered, Row, Settings, Target};

use crate::support::{row, settings};

#[test]
fn many_threads_a_small_queue_and_snapshots_in_between() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit");
    let base = settings(Target::File(path.clone()));
    let audit = Audit::open(&Settings { queue: 100, batch: 10, ..base }, |_| ()).unwrap();
    let (queued, dropped) = (AtomicU64::new(0), AtomicU64::new(0));
    let running = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut last = 0;
            while running.load(Ordering::Relaxed) {
                let stats = audit.stats();
                assert!(stats.balanced(), "{stats:?}");
                assert!(stats.accepted >= last && stats.queued <= 100, "{stats:?}");
                last = stats.accepted;
            }
        });
        let offer = || {
            for id in 0..20_000 {
                let to = match audit.offer(&row(&id.to_string())) {
                    Offered::Queued => &queued,
                    Offered::Dropped => &dropped,
                };
                to.fetch_add(1, Ordering::Relaxed);
            }
        };
        let workers = [scope.spawn(offer), scope.spawn(offer), scope.spawn(offer)];
        for worker in workers {
            worker.join().unwrap();
        }
        running.store(false, Ordering::Relaxed);
        watcher.join().unwrap();
    });
    let stats = audit.close();
    assert_eq!(stats.accepted, 60_000);
    assert_eq!(stats.written, queued.into_inner());
    let queue_full = dropped.into_inner();
    assert_eq!(stats.dropped, Drops { queue_full, ..Drops::default() });
    assert_eq!(stats.queued, 0);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count() as u64, stats.written);
}

#[test]
fn those_who_wait_lose_nothing_and_keep_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit");
    let base = settings(Target::File(path.clone()));
    let audit = Audit::open(&Settings { queue: 7, batch: 3, ..base }, |_| ()).unwrap();
    let offer = |letter: &str| {
        for id in 0..2000 {
            assert_eq!(audit.offer_blocking(&row(&format!("{letter}{id}"))), Offered::Queued);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| offer("a"));
        scope.spawn(|| offer("b"));
    });
    let stats = audit.close();
    assert_eq!((stats.accepted, stats.written), (4000, 4000));
    let text = std::fs::read_to_string(&path).unwrap();
    for letter in ["a", "b"] {
        let ids = text.lines().map(crate::support::id_of).filter(|id| id.starts_with(letter));
        let expected: Vec<String> = (0..2000).map(|id| format!("{letter}{id}")).collect();
        assert!(ids.eq(expected.iter()), "rows of {letter}");
    }
}

#[test]
fn a_row_does_not_wait_longer_than_the_interval_for_its_batch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit");
    let base = settings(Target::File(path.clone()));
    let flush = Duration::from_millis(50);
    let audit = Audit::open(&Settings { flush, batch: 1000, ..base }, |_| ()).unwrap();
    assert_eq!(audit.offer(&row("lonely")), Offered::Queued);
    crate::support::until("the row is written", || audit.stats().written == 1);
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
}

#[test]
fn a_full_batch_does_not_wait_for_the_interval() {
    let folder = tempfile::tempdir().unwrap();
    let base = settings(Target::File(folder.path().join("audit")));
    let flush = Duration::from_hours(1);
    let audit = Audit::open(&Settings { flush, batch: 10, ..base }, |_| ()).unwrap();
    for id in 0..10 {
        assert_eq!(audit.offer(&row(&id.to_string())), Offered::Queued);
    }
    crate::support::until("the batch is written", || audit.stats().written == 10);
}

#[test]
fn after_the_close_rows_are_counted_as_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let base = settings(Target::File(folder.path().join("audit")));
    let audit = Audit::open(&base, |_| ()).unwrap();
    assert_eq!(audit.offer(&row("1")), Offered::Queued);
    assert_eq!(audit.close().written, 1);
    assert_eq!(audit.offer(&row("2")), Offered::Dropped);
    assert_eq!(audit.offer_blocking(&row("3")), Offered::Dropped);
    let stats = audit.close();
    assert_eq!((stats.accepted, stats.written, stats.dropped.closed), (3, 1, 2));
    assert!(stats.balanced());
}

#[test]
fn the_queue_is_bounded_in_bytes_too() {
    let folder = tempfile::tempdir().unwrap();
    let base = settings(Target::File(folder.path().join("audit")));
    // The writer sleeps: neither batch nor interval wake it.
    let flush = Duration::from_hours(1);
    let tight = Settings { flush, queue: 10_000, batch: 10_000, queue_bytes: 50_000, ..base };
    let audit = Audit::open(&tight, |_| ()).unwrap();
    let long = "x".repeat(2_000);
    let row = Row { path: &long, ..row("1") };
    let offered: Vec<_> = (0..100).map(|_| audit.offer(&row)).collect();
    let queued = offered.iter().filter(|offered| **offered == Offered::Queued).count();
    // A line is a little more than its path.
    assert!((20..=25).contains(&queued), "{queued} rows of 2,000 bytes in 50,000");
    let stats = audit.stats();
    assert_eq!(stats.dropped.queue_full, 100 - queued as u64);
    assert!(stats.balanced(), "{stats:?}");
    assert_eq!(audit.close().written, queued as u64);
}
