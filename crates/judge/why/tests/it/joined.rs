//! Splits by a join with the gateway's own log, and by a direct target.

use plimsoll_join::{Join, MatchCounts};
use plimsoll_metrics::{Group, TargetInfo};
use plimsoll_why::{NoSplit, Why, text, why_with};
use serde_json::{Value, json};

use crate::support::{Case, SECONDS, times};

/// 1,000 requests in 10 s that take 490 ms each: 49 are in flight, which the workers counted too.
fn run() -> Case {
    in_cell(Case::flat(50))
}

fn in_cell(case: Case) -> Case {
    case.with(|case| {
        "r1".clone_into(&mut case.0.metadata.run.run_id);
        case.0.results.cells.push(Group {
            stage: Some("50:10s".to_owned()),
            target: Some("main".to_owned()),
            duration_s: SECONDS,
            distributions: [("response_time_ms".to_owned(), times(1_000, 490.0))].into(),
            ..Group::default()
        });
    })
}

/// The content of `join.json` for that run, with a change.
fn join(change: impl FnOnce(&mut Value)) -> Join {
    let mut json = json!({
        "schema": "plimsoll.join/1", "run": "runs/x", "run_id": "r1", "log": "audit.jsonl",
        "map": "id=request_id", "map_origin": "preset plimsoll", "log_of": "gateway",
        "verdict": {"word": "agree"}, "books": MatchCounts::default(), "disagreements": [],
        "examples": {"lost": [], "twice": [], "foreign": []}, "times": [],
        "stages": [{
            "stage": "50:10s", "completed": 1_000, "matched": 998, "client_ms": 489.0,
            "outside_ms": 9.0, "gateway_ms": 80.0, "upstream_ms": 400.0,
        }],
        "impossible": 0, "notes": [],
    });
    change(&mut json);
    serde_json::from_value(json).unwrap()
}

fn answer(change: impl FnOnce(&mut Value)) -> Why {
    why_with(&run().summary(), Some(&join(change)))
}

fn parts(why: &Why) -> Vec<(&str, f64)> {
    let parts = &why.split.as_ref().unwrap().parts;
    parts.iter().map(|part| (part.place.as_str(), (part.in_flight * 1e6).round() / 1e6)).collect()
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-6
}

/// 40 of 49 requests in flight wait for the upstream, which is not monitored.
#[test]
fn a_slow_upstream_is_the_bottleneck_of_a_closed_loop_whose_times_grow() {
    let grows = in_cell(Case::closed(50)).without("upstream").summary();
    let why = why_with(&grows, Some(&join(|_| ())));
    let text = "Bottleneck at 100/s: the upstream, 81.6% of the response time, network included.";
    assert_eq!(why.finding.unwrap().text(), text);
    // 38 of 48.9 requests wait for the upstream.
    let less = join(|join| {
        join["stages"][0]["upstream_ms"] = 380.0.into();
        join["stages"][0]["gateway_ms"] = 100.0.into();
    });
    assert_eq!(why_with(&grows, Some(&less)).finding.unwrap().code, 507);
    // If times do not grow with the load, more users would increase the throughput.
    assert_eq!(answer(|_| ()).finding, None);
    // One level does not show whether they grow.
    let level = in_cell(Case::level(50)).summary();
    assert_eq!(why_with(&level, Some(&join(|_| ()))).finding, None);
}

/// Some gateways log only the time to first byte, which makes the upstream's part small. The
/// gateway must not be blamed for the rest.
#[test]
fn a_small_part_of_the_upstream_accuses_nobody() {
    let head_only = join(|join| {
        join["stages"][0]["upstream_ms"] = 100.0.into();
        join["stages"][0]["gateway_ms"] = 380.0.into();
    });
    let why = why_with(&in_cell(Case::closed(50)).summary(), Some(&head_only));
    assert_eq!(why.finding.unwrap().code, 507);
}

#[test]
fn requests_in_flight_are_split_by_the_gateways_own_log() {
    let why = answer(|_| ());
    // Parts of 9, 80 and 400 ms at 100/s.
    assert_eq!(parts(&why), [("outside", 0.9), ("gateway", 8.0), ("upstream", 40.0)]);
    let split = why.split.as_ref().unwrap();
    assert!(close(split.adds_up_to, 48.9 / 49.0), "{split:?}");
    assert_eq!((split.matched, why.no_split), (Some(998), None));
}

/// The clock of a gateway that runs slightly fast makes the time outside it negative.
#[test]
fn a_part_of_nothing_has_no_sign() {
    let why = answer(|join| {
        join["stages"][0]["outside_ms"] = (-0.03).into();
        join["stages"][0]["gateway_ms"] = 89.03.into();
    });
    let shown = text(&why);
    assert!(shown.contains(" 0.00 "), "{shown}");
}

#[test]
fn a_wait_before_the_dispatch_is_a_part() {
    let why = answer(|join| {
        join["stages"][0]["client_ms"] = 440.0.into();
        join["stages"][0]["gateway_ms"] = 31.0.into();
    });
    let expected = [("unsent", 5.0), ("outside", 0.9), ("gateway", 3.1), ("upstream", 40.0)];
    assert_eq!(parts(&why), expected);
}

#[test]
fn a_log_of_the_upstream_itself_does_not_separate_the_gateway() {
    let why = answer(|join| {
        join["log_of"] = "upstream".into();
        join["stages"][0]["gateway_ms"] = Value::Null;
        join["stages"][0]["outside_ms"] = 89.0.into();
    });
    assert_eq!(parts(&why), [("before upstream", 8.9), ("upstream", 40.0)]);
}

#[test]
fn a_join_without_sound_times_is_not_used() {
    type Change = fn(&mut Value);
    let cases: [(Change, NoSplit); 8] = [
        (|join| join["verdict"] = json!({"word": "disagree"}), NoSplit::JoinRefused),
        (
            |join| join["verdict"] = json!({"word": "unjudged", "why": "it covers a part"}),
            NoSplit::JoinRefused,
        ),
        (|join| join["times_refused"] = "no total".into(), NoSplit::JoinRefused),
        (|join| join["run_id"] = "r2".into(), NoSplit::OtherRun),
        (|join| join["stages"] = json!([]), NoSplit::FewTimes),
        (|join| join["stages"][0]["stage"] = "10:10s".into(), NoSplit::FewTimes),
        (|join| join["stages"][0]["matched"] = 989.into(), NoSplit::FewTimes),
        // 379 ms at 100/s are 37.9 requests, and the time before them is 111 ms too short.
        (|join| join["stages"][0]["upstream_ms"] = 290.0.into(), NoSplit::PartsDiffer),
    ];
    for (change, expected) in cases {
        let why = answer(change);
        assert!(why.split.is_none(), "{why:?}");
        assert_eq!(why.no_split, Some(expected));
        assert!(text(&why).contains("  where requests wait is unknown: "), "{}", text(&why));
    }
}

#[test]
fn a_log_covers_one_target_and_yields_to_a_direct_one() {
    let more = |direct| {
        let other = TargetInfo { name: "other".to_owned(), direct, ..TargetInfo::default() };
        let case = run().with(|case| case.0.metadata.targets.push(other));
        why_with(&case.summary(), Some(&join(|_| ()))).no_split.unwrap()
    };
    assert_eq!(more(false), NoSplit::SeveralTargets);
    assert_eq!(more(true), NoSplit::NoResponse);
}

/// A gateway and its upstream at 100/s each in an open stage that fell behind, with these mean
/// response times and this number in flight.
fn comparison(gateway_ms: f64, direct_ms: f64, in_flight: f64) -> Why {
    let case = Case::open(200).with(|case| {
        let target = |name: &str, direct| {
            let name = name.to_owned();
            TargetInfo { name, direct, ..TargetInfo::default() }
        };
        case.0.metadata.targets = vec![target("upstream", true), target("kong", false)];
        case.stage().mean_in_flight = Some(in_flight);
        case.counters().arrivals_in_stage = 1_000;
        for (name, ms) in [("kong", gateway_ms), ("upstream", direct_ms)] {
            case.0.results.cells.push(Group {
                stage: Some("@200:10s".to_owned()),
                target: Some(name.to_owned()),
                duration_s: SECONDS,
                distributions: [("response_time_ms".to_owned(), times(1_000, ms))].into(),
                ..Group::default()
            });
        }
    });
    case.without("upstream").without("gateway").why()
}

/// At 100/s each, 21 ms are 2.1 requests, of which 15 ms or 1.5 are in the upstream; the direct
/// target has 1.5 more.
#[test]
fn requests_in_flight_are_split_by_the_direct_target() {
    let why = comparison(21.0, 15.0, 3.65);
    let expected = [("upstream, direct", 1.5), ("gateway kong", 0.6), ("upstream (kong)", 1.5)];
    assert_eq!(parts(&why), expected);
    let split = why.split.unwrap();
    assert!(close(split.adds_up_to, 3.6 / 3.65) && close(split.in_upstream, 15.0 / 21.0));
    assert_eq!(why.finding.unwrap().code, 507, "71 % are not 80 %");
    // 18 of 21 ms are 86 %.
    assert_eq!(comparison(21.0, 18.0, 3.9).finding.unwrap().code, 503);
    // 3.6 of 3.68 are 97.8 %.
    assert_eq!(comparison(21.0, 15.0, 3.68).no_split, Some(NoSplit::PartsDiffer));
    assert_eq!(comparison(21.0, 25.0, 4.6).no_split, Some(NoSplit::MeansCross));
}
