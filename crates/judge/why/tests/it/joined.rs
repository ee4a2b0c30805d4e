//! The split by a join with the gateway's own log.

use plimsoll_join::{Books, Join};
use plimsoll_metrics::{Group, TargetInfo};
use plimsoll_why::{State, Suspect, Why, text, why_with};
use serde_json::{Value, json};

use crate::support::{Case, SECONDS, times};

/// 1,000 requests in 10 s that take 490 ms each: 49 are in flight, as the workers counted, too.
fn run() -> Case {
    in_cell(Case::closed(50))
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

/// What `join.json` has of that run, changed.
fn join(change: impl FnOnce(&mut Value)) -> Join {
    let mut json = json!({
        "schema": "plimsoll.join/1", "run": "runs/x", "run_id": "r1", "log": "audit.jsonl",
        "map": "id=request_id", "map_origin": "preset plimsoll", "log_of": "gateway",
        "verdict": {"word": "agree"}, "books": Books::default(), "disagreements": [],
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

/// 40 of 49 in flight wait for the provider; nothing that was watched is full, and times grow.
#[test]
fn a_slow_provider_limits_a_closed_loop_whose_times_grow() {
    let grows = in_cell(Case::empty().with_closed(10, 100.0).with_closed(50, 490.0));
    let why = why_with(&grows.summary(), Some(&join(|_| ())));
    let sentence =
        "the provider limits at 100/s: it takes 81.6% of the time, and nothing watched is full";
    assert_eq!((why.answer.name(), &*why.sentence), ("provider", sentence));
    // Nobody watches it, and the line of the provider says what the log knows.
    let unseen = grows.without("provider");
    let why = why_with(&unseen.summary(), Some(&join(|_| ())));
    let provider = why.findings.iter().find(|found| found.suspect == Suspect::Provider).unwrap();
    assert_eq!((provider.state, &provider.missing), (State::Saturated, &None));
    let line = "provider SATURATED takes 81.6% of the requests' time (998 of 1,000 completed";
    let shown = text(&why).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(line) && !shown.contains("provider unknown"), "{shown}");
    let grows = unseen;
    // 38 of 48.9 do.
    let less = join(|join| {
        join["stages"][0]["upstream_ms"] = 380.0.into();
        join["stages"][0]["gateway_ms"] = 100.0.into();
    });
    assert_eq!(why_with(&grows.summary(), Some(&less)).answer.name(), "cannot_be_told");
    // Where times do not grow with the load, more users would get more.
    let flat = answer(|_| ());
    assert_eq!(flat.answer.name(), "nothing_saturated");
    assert!(flat.sentence.contains("the provider takes 81.6% of the time"), "{}", flat.sentence);
}

#[test]
fn what_was_in_flight_is_split_by_the_gateways_own_log() {
    let why = answer(|_| ());
    // 100/s of 9, 80 and 400 ms.
    assert_eq!(parts(&why), [("outside", 0.9), ("gateway", 8.0), ("provider", 40.0)]);
    let split = why.split.as_ref().unwrap();
    assert!((split.adds_up_to - 48.9 / 49.0).abs() < 1e-9, "{split:?}");
    let shown = text(&why).split_whitespace().collect::<Vec<_>>().join(" ");
    let lines = "of 49.0 in flight: outside 0.90, gateway 8.00, provider 40.0 (adds up to 99.8%) \
                 told by: 998 of 1,000 completed requests, matched with audit.jsonl";
    assert!(shown.contains(lines), "{shown}");
    assert_eq!(why.split_refused, None);
}

/// A gateway whose clock reads a little more than ours has less than nothing outside of it.
#[test]
fn a_part_of_nothing_has_no_sign() {
    let why = answer(|join| {
        join["stages"][0]["outside_ms"] = (-0.03).into();
        join["stages"][0]["gateway_ms"] = 89.03.into();
    });
    let shown = text(&why);
    assert!(shown.contains("outside 0.00,") && !shown.contains("-0"), "{shown}");
}

#[test]
fn coarse_times_and_a_wait_before_the_dispatch_are_said() {
    let why = answer(|join| {
        join["steps_ms"] = 2.0.into();
        join["stages"][0]["client_ms"] = 440.0.into();
        join["stages"][0]["gateway_ms"] = 31.0.into();
    });
    let expected = [("not yet sent", 5.0), ("outside", 0.9), ("gateway", 3.1), ("provider", 40.0)];
    assert_eq!(parts(&why), expected);
    let evidence = why.split.unwrap().evidence.unwrap();
    assert!(evidence.ends_with("audit.jsonl, whose times have steps of 2.00ms"), "{evidence}");
}

#[test]
fn a_log_of_the_provider_itself_tells_no_gateway_apart() {
    let why = answer(|join| {
        join["log_of"] = "upstream".into();
        join["stages"][0]["gateway_ms"] = Value::Null;
        join["stages"][0]["outside_ms"] = 89.0.into();
    });
    assert_eq!(parts(&why), [("in front of the provider", 8.9), ("provider", 40.0)]);
}

#[test]
fn a_join_that_cannot_vouch_for_its_times_is_not_used() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 8] = [
        (
            |join| {
                join["verdict"] = json!({"word": "disagree"});
                join["books"]["lost"] = 7.into();
            },
            "run and log disagree (`plimsoll join`): 7 lost, 0 twice, 0 disagreeing",
        ),
        (
            |join| join["verdict"] = json!({"word": "unjudged", "why": "it covers a part"}),
            "the join cannot be judged: it covers a part",
        ),
        (|join| join["times_refused"] = "no total".into(), "are not compared: no total"),
        (|join| join["run_id"] = "r2".into(), "the join is of another run"),
        (|join| join["stages"] = json!([]), "no upstream times of the stage 50:10s"),
        (|join| join["stages"][0]["stage"] = "10:10s".into(), "no upstream times of the stage"),
        (|join| join["stages"][0]["matched"] = 989.into(), "times of 989 of 1,000 requests"),
        // 100/s of 379 ms are 37.9, and the wait before them is 111 ms less than it must be.
        (|join| join["stages"][0]["upstream_ms"] = 290.0.into(), "not within 2 % of it"),
    ];
    for (change, expected) in cases {
        let why = answer(change);
        assert!(why.split.is_none(), "{why:?}");
        let refused = why.split_refused.as_ref().unwrap();
        assert!(refused.contains(expected), "{refused}");
        assert!(text(&why).contains("  no split: "), "{}", text(&why));
    }
}

#[test]
fn a_join_is_of_one_target_and_yields_to_a_direct_one() {
    let more = |direct| {
        let other = TargetInfo { name: "other".to_owned(), direct, ..TargetInfo::default() };
        let case = run().with(|case| case.0.metadata.targets.push(other));
        why_with(&case.summary(), Some(&join(|_| ())))
    };
    let several = more(false);
    assert!(several.split_refused.unwrap().contains("several targets"));
    let direct = more(true);
    assert!(direct.notes.iter().any(|note| note.contains("the join is not used")), "{direct:?}");
    assert!(direct.split_refused.unwrap().contains("`other` must not be used"));
}
