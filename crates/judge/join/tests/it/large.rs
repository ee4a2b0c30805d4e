//! A million rows, and a million foreign ones: `scripts/test --all`.

use std::fs;
use std::time::Instant;

use crate::planted::log;
use crate::support::{Files, audit_row, id};

/// Peak memory of this process, in MiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

#[test]
fn foreign_rows_take_no_memory() {
    let files = Files::run(100);
    files.lines(
        "log",
        (0..100).map(|n| audit_row(n, 0, 64)).chain(
            (0..20_000).map(|n: i64| audit_row(n, 0, 64).replace(&id(n), &format!("other-{n}"))),
        ),
    );
    let join = files.join("log", &[]).unwrap();
    assert_eq!((join.books.matched, join.books.foreign), (100, 20_000));
    assert_eq!((join.books.lost, join.examples.foreign.len()), (0, 5));
}

#[test]
#[ignore = "a million rows take long in a debug build"]
#[expect(clippy::disallowed_methods, reason = "a test measures itself")]
fn a_million_rows_within_600_mb() {
    let count = 1_000_000;
    let files = Files::run(count);
    files.lines(
        "log",
        log(count).chain(
            (0..count).map(|n: i64| audit_row(n, 0, 64).replace(&id(n), &format!("other-{n}"))),
        ),
    );
    let started = Instant::now();
    let join = files.join("log", &[]).unwrap();
    let (seconds, mib) = (started.elapsed().as_secs_f64(), peak());
    let books = &join.books;
    assert_eq!((books.lost, books.twice, books.disagreeing, books.foreign), (7, 5, 3, 1_000_000));
    assert!(mib <= 600 && seconds < 30.0, "{mib} MiB, {seconds} s");
}
