//! Rows on their way into a store that comes and goes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_gateway_audit::{Audit, ClickHouse, Notice, Offered, Retry, Settings, Target};

use crate::fake_clickhouse::{Server, Table};
use crate::support::{row, settings, until};

fn store(port: u16) -> Settings {
    let url = format!("http://joe:s3cret@127.0.0.1:{port}/logs.audit");
    Settings { batch: 100, ..settings(Target::ClickHouse(ClickHouse::parse(&url).unwrap())) }
}

fn offer(audit: &Audit, from: u64, to: u64) {
    for id in from..to {
        assert_eq!(audit.offer_blocking(&row(&id.to_string())), Offered::Queued);
    }
}

fn distinct(table: &Mutex<Table>) -> (usize, BTreeSet<u64>) {
    let ids = table.lock().unwrap().ids();
    (ids.len(), ids.iter().map(|id| id.parse().unwrap()).collect())
}

#[test]
fn rows_arrive_in_batches_with_credentials_in_headers() {
    let table = Arc::default();
    let server = Server::start(0, &table);
    let audit = Audit::open(&store(server.port), |_| ()).unwrap();
    offer(&audit, 0, 1000);
    let stats = audit.close();
    assert_eq!((stats.accepted, stats.written, stats.retries), (1000, 1000, 0));
    assert_eq!(distinct(&table), (1000, (0..1000).collect()));
    let table = table.lock().unwrap();
    assert!(table.batches.values().all(|batch| batch.lines().count() <= 100));
    let head = table.heads[0].to_ascii_lowercase();
    assert!(head.starts_with("post /?query=insert%20into%20logs.audit%20format%20jsoneachrow&"));
    assert!(head.contains("\r\nx-clickhouse-user: joe\r\nx-clickhouse-key: s3cret\r\n"), "{head}");
    drop(table);
    server.stop();
}

#[test]
fn a_store_that_is_killed_and_comes_back() {
    kill_and_return(20_000, 100);
}

/// Takes 3 GB of memory and, in release, half a minute.
#[test]
#[ignore = "large: for cargo test --release -- --ignored"]
fn a_store_that_is_killed_and_comes_back_among_ten_million_rows() {
    kill_and_return(10_000_000, 2048);
}

/// The store is killed under load, stays away for longer than all retries, and comes back.
fn kill_and_return(all: u64, batch: usize) {
    let table = Arc::default();
    let server = Server::start(0, &table);
    let port = server.port;
    let told = Arc::new(Mutex::new(Vec::new()));
    let notices = Arc::clone(&told);
    let settings = Settings { batch, ..store(port) };
    let audit = Audit::open(&settings, move |n| notices.lock().unwrap().push(n)).unwrap();
    let half = all / 2;
    let server = std::thread::scope(|scope| {
        scope.spawn(|| offer(&audit, 0, half));
        scope.spawn(|| offer(&audit, half, all));
        until("rows arrive", || audit.stats().written >= all / 20);
        server.stop();
        offer(&audit, all, all + 1000);
        until("rows are given up", || audit.stats().dropped.store > 0);
        Server::start(port, &table)
    });
    offer(&audit, all + 1000, all + 2000);
    let stats = audit.close();
    assert!(stats.balanced());
    assert_eq!((stats.accepted, stats.queued), (all + 2000, 0));
    assert_eq!(stats.written + stats.dropped.store, all + 2000);
    let (rows, ids) = distinct(&table);
    assert_eq!(rows, ids.len(), "a batch that is sent again has the same token");
    // One batch may have been stored and its confirmation lost with the server.
    let written = usize::try_from(stats.written).unwrap();
    assert!((written..=written + batch).contains(&rows), "{rows} rows of {stats:?}");
    assert!((all + 1000..all + 2000).all(|id| ids.contains(&id)), "rows after the return");
    assert!(told.lock().unwrap().iter().any(|n| matches!(n, Notice::Failing(_))));
    assert!(told.lock().unwrap().contains(&Notice::Recovered { lost: stats.dropped.store }));
    server.stop();
}

#[test]
fn a_short_absence_loses_nothing() {
    let table = Arc::default();
    let server = Server::start(0, &table);
    let port = server.port;
    let patient = Retry {
        attempts: 1000,
        first: Duration::from_millis(5),
        longest: Duration::from_millis(20),
    };
    let audit = Audit::open(&Settings { retry: patient, ..store(port) }, |_| ()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| offer(&audit, 0, 5000));
        until("rows arrive", || audit.stats().written >= 500);
        server.stop();
        until("the absence is noticed", || {
            audit.stats().retries > 2 || audit.stats().written == 5000
        });
        let server = Server::start(port, &table);
        until("all rows are written", || audit.stats().written == 5000);
        server.stop();
    });
    assert_eq!(audit.close().dropped.total(), 0);
    assert_eq!(distinct(&table), (5000, (0..5000).collect()));
}

#[test]
fn what_the_store_refuses_is_dropped_at_once_and_the_password_is_not_told() {
    let table = Arc::new(Mutex::new(Table::default()));
    let text = "Code: 27. DB::Exception: cannot parse, by joe with s3cret".to_owned();
    table.lock().unwrap().answer = Some((400, text));
    let server = Server::start(0, &table);
    let audit = Audit::open(&store(server.port), |_| ()).unwrap();
    offer(&audit, 0, 10);
    let stats = audit.close();
    assert_eq!((stats.accepted, stats.dropped.refused, stats.retries), (10, 10, 0));
    let error = audit.last_error().unwrap();
    assert!(error.contains("400") && error.contains("Code: 27"), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
    server.stop();
}

/// Closing must not try every batch of a full queue against a store that is gone.
#[test]
fn a_close_without_a_store_ends_after_one_round_of_retries() {
    let table = Arc::default();
    let server = Server::start(0, &table);
    let port = server.port;
    server.stop();
    let slow = Retry {
        attempts: 3,
        first: Duration::from_millis(100),
        longest: Duration::from_millis(100),
    };
    let settings = Settings { retry: slow, flush: Duration::from_mins(1), ..store(port) };
    let audit = Audit::open(&Settings { batch: 10, ..settings }, |_| ()).unwrap();
    offer(&audit, 0, 1000);
    let start = std::time::Instant::now();
    let stats = audit.close();
    assert_eq!((stats.accepted, stats.dropped.store), (1000, 1000));
    // 100 batches with 200 ms each would be 20 s; two rounds are 0.4 s.
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
}
