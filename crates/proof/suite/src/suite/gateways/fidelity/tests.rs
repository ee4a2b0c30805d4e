//! The matrix of gateways with planted faults: each fault is seen in its cells, and in no other.

mod planted;

use std::collections::{BTreeMap, BTreeSet};

use planted::{Fault, Gateway};

use super::*;

/// Long enough for 10 MB on a busy host.
const LIMIT_HERE: Duration = Duration::from_secs(5);

fn access(address: String) -> Access {
    Access {
        address,
        path: "/v1/chat/completions".to_owned(),
        headers: Vec::new(),
        model: "mock".to_owned(),
        dialects: DIALECTS.map(str::to_owned).to_vec(),
    }
}

fn examined(fault: Fault) -> Fidelity {
    let mut start = |port| Ok(((), access(Gateway::start(fault, port))));
    observe(LIMIT_HERE, &mut start, &|| false).unwrap()
}

/// Cells in a state, by row, with what was seen.
fn cells_in(fidelity: &Fidelity, state: State) -> BTreeMap<String, String> {
    let cells = fidelity.cells.iter().filter(|cell| cell.state == state);
    cells.map(|cell| (cell.row(), cell.seen.clone())).collect()
}

/// Checks that exactly these rows, named without their dialect, are changed in both dialects.
fn check_changed(fault: Fault, rows: &[&str], seen: &str) {
    let fidelity = examined(fault);
    let changed = cells_in(&fidelity, State::Changed);
    let expected: Vec<String> = ["anthropic", "openai"]
        .iter()
        .flat_map(|dialect| rows.iter().map(move |row| format!("{dialect}: {row}")))
        .collect();
    let mut expected_rows: Vec<_> = expected.iter().collect();
    expected_rows.sort();
    assert_eq!(changed.keys().collect::<Vec<_>>(), expected_rows, "{changed:#?}");
    for (row, text) in &changed {
        assert!(text.contains(seen), "{row}: {text}");
    }
    assert_eq!(cells_in(&fidelity, State::NotObserved), BTreeMap::new());
    assert_eq!(cells_in(&fidelity, State::NotOffered), BTreeMap::new());
}

#[test]
fn a_transparent_gateway_has_no_changed_cell() {
    check_changed(Fault::None, &[], "");
}

#[test]
fn a_lost_tool_call_is_seen_in_parallel_calls() {
    let rows = ["Tool calls: parallel", "Tool calls: parallel, streamed"];
    check_changed(Fault::LosesToolCall, &rows, "lost");
}

#[test]
fn doubled_requests_are_seen_after_errors() {
    let rows = [
        "Retries: after HTTP 429",
        "Retries: after HTTP 500",
        "Retries: after HTTP 503",
        "Retries: after a connection closed unanswered",
        "Keep-alive: upstream closes a reused connection unanswered",
    ];
    check_changed(Fault::RetriesErrors, &rows, "asked 2 times");
}

#[test]
fn a_request_that_is_sent_again_on_a_new_connection_is_seen() {
    // The third exchange happens to reuse a connection; the fourth then has a new one.
    let changed = cells_in(&examined(Fault::ResendsOnReuse), State::Changed);
    let rows = [
        "anthropic: Keep-alive: upstream closes a reused connection unanswered",
        "openai: Keep-alive: upstream closes a reused connection unanswered",
        "openai: Retries: after a connection closed unanswered",
    ];
    assert_eq!(changed.keys().collect::<Vec<_>>(), rows, "{changed:#?}");
    assert!(changed.values().all(|seen| seen.contains("asked 2 times")), "{changed:#?}");
}

#[test]
fn merged_events_are_seen() {
    check_changed(Fault::MergesEvents, &["Streams: each event alone in time"], "reads");
}

#[test]
fn delayed_events_are_seen() {
    check_changed(
        Fault::DelaysEvents,
        &["Streams: each event alone in time"],
        "every event arrived at least",
    );
}

#[test]
fn a_dropped_retry_after_is_seen() {
    let rows = ["Retry-after: HTTP 429", "Retry-after: HTTP 503", "Retry-after: HTTP 529"];
    check_changed(Fault::DropsRetryAfter, &rows, "lost /retry-after");
}

#[test]
fn a_changed_status_is_seen() {
    check_changed(Fault::ChangesStatus, &["Status codes: HTTP 529"], "status 503 instead of 529");
}

#[test]
fn an_upstream_that_is_not_told_of_a_leaving_client_is_seen() {
    let rows = ["Streams: client leaves a stream", "Streams: client leaves before the answer"];
    check_changed(Fault::IgnoresLeaving, &rows, "sent the answer to its end");
}

#[test]
fn unknown_members_that_were_dropped_are_seen() {
    let rows = [
        "Unknown members: of a stream",
        "Unknown members: of the answer",
        "Unknown members: of the request",
    ];
    check_changed(Fault::DropsUnknown, &rows, "x_unknown");
}

#[test]
fn streams_that_were_cut_are_seen_in_every_row_that_needs_their_end() {
    let changed = cells_in(&examined(Fault::CutsStreams), State::Changed);
    // An error is the second event of `openai`, and the third of `anthropic`.
    let late = ["Cut answers: error event in a stream", "Unknown members: of a stream"];
    for (dialect, more) in [("anthropic", &late[..]), ("openai", &[])] {
        let rows = [
            "Answers: text, streamed",
            "Reasoning: of an answer, streamed",
            "Streams: each event alone in time",
            "Tool calls: parallel, streamed",
            "Tool calls: without arguments, streamed",
            "Usage: of a stream",
        ];
        let rows: BTreeSet<_> =
            rows.iter().chain(more).map(|row| format!("{dialect}: {row}")).collect();
        let found = changed.keys().filter(|row| row.starts_with(dialect)).cloned().collect();
        assert_eq!(rows, found, "{changed:#?}");
    }
}

#[test]
fn our_own_timeout_is_not_observed() {
    let fidelity = examined(Fault::HangsOn422);
    assert_eq!(cells_in(&fidelity, State::Changed), BTreeMap::new());
    let unobserved = cells_in(&fidelity, State::NotObserved);
    assert_eq!(unobserved.len(), 4, "{unobserved:#?}");
    for (row, seen) in unobserved {
        assert!(row.ends_with("422") && seen.contains("within 5 s"), "{row}: {seen}");
    }
}

#[test]
fn a_dialect_without_a_path_is_not_offered() {
    let fidelity = examined(Fault::OnlyOpenAi);
    assert_eq!(cells_in(&fidelity, State::Changed), BTreeMap::new());
    let not_offered = cells_in(&fidelity, State::NotOffered);
    assert_eq!(not_offered.len(), fidelity.cells.len() / 2);
    assert!(not_offered.keys().all(|row| row.starts_with("anthropic")), "{not_offered:#?}");
}

#[test]
fn rejections_because_of_an_earlier_failure_are_not_observed() {
    let fidelity = examined(Fault::OpensCircuit);
    assert_eq!(cells_in(&fidelity, State::Changed), BTreeMap::new());
    let unobserved = cells_in(&fidelity, State::NotObserved);
    assert!(unobserved.contains_key("openai: Retries: after HTTP 503"), "{unobserved:#?}");
    assert!(
        unobserved.values().all(|seen| seen.contains("a plain request gets status 503, too")),
        "{unobserved:#?}"
    );
}

/// The product ignores other keys.
#[test]
fn every_key_of_a_case_has_a_meaning() {
    const KEYS: &str = "group name each fill request headers answer reply before leave_ms tries openai anthropic \
                        status keeps translated passes returns forwards requests alone visible_end told";
    const REPLY: &str = "status headers json events wait_ms gap_ms cut close";
    let file = include_str!("cases.yaml");
    let file: serde_json::Value = serde_saphyr::from_str(file).unwrap();
    let check = |value: &serde_json::Value, known: &str| {
        for key in value.as_object().into_iter().flat_map(|members| members.keys()) {
            assert!(known.split(' ').any(|name| name == key), "{key} in {value}");
        }
    };
    let cases = file["cases"].as_array().unwrap();
    for case in cases {
        for spec in [case, &case["openai"], &case["anthropic"]] {
            check(spec, KEYS);
            check(&spec["reply"], REPLY);
        }
    }
    let rows = cases.iter().map(|case| format!("{} {}", case["group"], case["name"]));
    let rows: BTreeSet<_> = rows.collect();
    assert_eq!(rows.len(), cases.len());
}
