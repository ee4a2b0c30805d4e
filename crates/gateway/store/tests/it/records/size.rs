//! Memory of sessions: the resident memory of a process that does nothing else, before and after.

use super::LONG;
use crate::support::block_on;
use plimsoll_gateway_store::{Backend, Moment, NewSession, RecordId, SessionRules, Sizes};
use std::process::Command;

const SESSIONS: usize = 50_000;
/// The most that a session costs beside its metadata.
const BYTES_EACH: usize = 2_048;
const METADATA: usize = 512;

/// Set in the process that does nothing else.
const ALONE: &str = "PLIMSOLL_SESSIONS_ALONE";

#[test]
fn fifty_thousand_sessions_cost_at_most_two_kibibytes_each() {
    if std::env::var_os(ALONE).is_some() {
        return fill();
    }
    let name = "records::size::fifty_thousand_sessions_cost_at_most_two_kibibytes_each";
    let mut alone = Command::new(std::env::current_exe().unwrap());
    let output = alone.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 passed"), "it did run: {text}");
}

fn fill() {
    let rules = SessionRules { sessions: SESSIONS, metadata_bytes: METADATA, calls: 20 };
    let metadata = vec![b'x'; METADATA];
    block_on(async {
        let store = Backend::memory(Sizes::default()).attach().await;
        let before = resident_bytes();
        for number in 0..SESSIONS as u128 {
            // Spread as random ids are.
            let id = RecordId(number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
            let at = Moment { now: 1, unix_ms: 1 };
            let new = NewSession {
                id,
                owner: "t:retail",
                most: SESSIONS,
                ttl: LONG,
                metadata: &metadata,
            };
            store.create_session(at, &rules, &new).await.unwrap();
        }
        let each = resident_bytes().saturating_sub(before) / SESSIONS;
        assert!(each > METADATA, "{each} bytes each: the counting does not work");
        assert!(each <= BYTES_EACH + METADATA, "{each} bytes each");
    });
}

/// As the kernel counts it: pages that are in memory.
fn resident_bytes() -> usize {
    let counts = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = counts.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4_096
}
