//! Rows and settings for the tests.

use std::time::{Duration, Instant};

use plimsoll_gateway_audit::{Retry, Row, Settings, Target};

/// A row that can be told from all others by its request id.
pub(crate) fn row(id: &str) -> Row<'_> {
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
pub(crate) fn settings(target: Target) -> Settings {
    let retry =
        Retry { attempts: 3, first: Duration::from_millis(10), longest: Duration::from_millis(20) };
    Settings { flush: Duration::from_millis(10), retry, ..Settings::new(target) }
}

/// The request id in a line, found without a JSON parser.
pub(crate) fn id_of(line: &str) -> &str {
    let (_, after) = line.split_once(r#""request_id":""#).unwrap();
    after.split_once('"').unwrap().0
}

/// Waits for a condition, for at most 30 s.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
