//! How requests end: faults of the target, a dead target, the end of the run.

use std::collections::BTreeSet;

use plimsoll_measure::{ErrorClass, Outcome};

use crate::support::{CHAT, mock, plan, run, url};

#[test]
fn every_fault_ends_in_its_own_class() {
    for (fault, stream, expected) in [
        ("x-mock-status: '401'", false, Outcome::Rejected(401)),
        ("x-mock-status: '429'", true, Outcome::Rejected(429)),
        ("x-mock-status: '503'", true, Outcome::Failed(ErrorClass::ServerError)),
        ("x-mock-fault: cut@3", true, Outcome::Failed(ErrorClass::BodyTruncated)),
        ("x-mock-fault: error@3", true, Outcome::Failed(ErrorClass::StreamError)),
        ("x-mock-fault: reset", true, Outcome::Failed(ErrorClass::Reset)),
        ("x-mock-fault: hang", true, Outcome::TimedOut),
    ] {
        let mock = mock("");
        let profile = format!(
            "{CHAT}stages: '@50:200ms'\nstream: {stream}\ntimeout: 300ms\nheaders: {{{fault}}}\n"
        );
        let ran = run(plan(&url(&mock), &profile));
        let outcomes: BTreeSet<String> =
            ran.samples.iter().map(|s| format!("{:?}", s.outcome)).collect();
        assert_eq!(outcomes, BTreeSet::from([format!("{expected:?}")]), "{fault}");
        assert_eq!(ran.samples.len(), 10);
    }
}

#[test]
fn a_dead_target_is_an_outcome_and_its_users_do_not_spin() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ran = run(plan(&format!("http://{closed}"), &format!("{CHAT}stages: '4:500ms'\n")));
    assert_eq!(ran.count("failed"), ran.samples.len());
    assert!(ran.samples.iter().all(|s| s.outcome == Outcome::Failed(ErrorClass::ConnectRefused)));
    // Four users who wait for 10 ms after each refusal.
    assert!((20..=220).contains(&ran.samples.len()), "{} attempts", ran.samples.len());
    let cause = &ran.result.causes[0];
    assert_eq!(cause.kind, "connect_refused");
    let message = cause.message().unwrap();
    assert!(message.contains(&closed.to_string()), "{message}");
}

#[test]
fn a_request_without_response_at_the_end_is_counted_as_in_flight() {
    let mock = mock("ttft: {constant: 60s}");
    let profile =
        format!("{CHAT}stages: '@100:300ms'\ntimeout: 100s\n").replace("drain: 5s", "drain: 200ms");
    let ran = run(plan(&url(&mock), &profile));
    assert_eq!((ran.count("in_flight"), ran.samples.len()), (30, 30));
    assert!(ran.samples.iter().all(|sample| sample.timeline.response_time().is_none()));
}
