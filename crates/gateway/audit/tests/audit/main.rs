//! The audit as a whole: what is accepted is accounted for, whatever happens to the sink.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests may fail loudly, look at the clock and wait for other threads and processes"
)]

mod accounting;
mod clickhouse;
mod fake;
mod file;
mod kill;

use std::time::{Duration, Instant};

use plimsoll_gateway_audit::{Retry, Row, Settings, Target};

/// A row that can be told from all others by its request id.
fn row(id: &str) -> Row<'_> {
    Row {
        timestamp: 1_763_700_000_123,
        tenant: "retail",
        method: "POST",
        path: "/v1/chat/completions",
        status: 200,
        request_id: id,
        ..Row::default()
    }
}

/// Retries that are over soon.
fn settings(target: Target) -> Settings {
    let retry =
        Retry { attempts: 3, first: Duration::from_millis(10), longest: Duration::from_millis(20) };
    Settings { flush: Duration::from_millis(10), retry, ..Settings::new(target) }
}

/// The request id in a line, found without a JSON parser.
fn id_of(line: &str) -> &str {
    let (_, after) = line.split_once(r#""request_id":""#).unwrap();
    after.split_once('"').unwrap().0
}

/// Waits until something is so; a test that waits for ever should say what for.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
