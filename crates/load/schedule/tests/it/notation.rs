//! The notation of stages: accepted texts, and error messages for invalid ones.

use plimsoll_measure::Nanos;
use plimsoll_schedule::{Load, ScheduleError, StageSpec, Stages};
use proptest::prelude::*;

const fn stage(load: Load, secs: u64) -> StageSpec {
    StageSpec { load, duration: Some(Nanos::from_secs(secs)), warmup: false }
}

const fn users(from: u32, to: u32) -> Load {
    Load::Closed { from, to }
}

const fn rate(from: f64, to: f64) -> Load {
    Load::Open { from, to }
}

#[test]
fn every_load_shape_is_read() {
    let warm = |stage| StageSpec { warmup: true, ..stage };
    for (sentence, text, expected) in [
        ("closed", "100:60s", stage(users(100, 100), 60)),
        ("closed ramp", "1..100:30s", stage(users(1, 100), 30)),
        ("closed ramp from zero", "0..10:5s", stage(users(0, 10), 5)),
        ("closed ramp down to zero", "10..0:5s", stage(users(10, 0), 5)),
        ("open", "@20000:60s", stage(rate(20_000.0, 20_000.0), 60)),
        ("open, less than one a second", "@0.5:1m30s", stage(rate(0.5, 0.5), 90)),
        ("open ramp", "@100..5000:60s", stage(rate(100.0, 5_000.0), 60)),
        ("open ramp with fractions", "@.5..1.25:1h", stage(rate(0.5, 1.25), 3_600)),
        ("trace, cut off", "trace:60s", stage(Load::Trace, 60)),
        ("trace, whole", "trace", StageSpec { duration: None, ..stage(Load::Trace, 0) }),
        ("closed warm-up", "w10:10s", warm(stage(users(10, 10), 10))),
        ("open warm-up", "w@50:10s", warm(stage(rate(50.0, 50.0), 10))),
        ("blanks around the parts", "  7 : 2s ", stage(users(7, 7), 2)),
    ] {
        assert_eq!(text.parse::<Stages>().unwrap().0, [expected], "{sentence}");
    }
}

#[test]
fn stages_follow_one_another_and_are_written_canonically() {
    for (text, canonical) in [
        ("1:10s, 100:60s ,1000:120s", "1:10s,100:1m,1000:2m"),
        ("w@50.0:10000ms,@100..5000:1m", "w@50:10s,@100..5000:1m"),
        ("@5..5:1s,3..3:1s", "@5:1s,3:1s"),
        ("trace,wtrace:0.5s", "trace,wtrace:500ms"),
    ] {
        assert_eq!(text.parse::<Stages>().unwrap().to_string(), canonical, "{text}");
    }
}

#[test]
fn what_cannot_be_scheduled_is_refused_with_cause_and_fix() {
    for (text, part) in [
        ("", "the stage is empty"),
        ("   ", "the stage is empty"),
        ("w", "the stage is empty"),
        (":10s", "the stage is empty"),
        ("1:10s,", "stage 2 ``: the stage is empty"),
        ("1:10s,,2:5s", "stage 2 ``: the stage is empty"),
        ("100", "the duration is missing"),
        ("@100", "the duration is missing"),
        ("100:60", "`60` is not a length of time: write a number and a unit"),
        ("100:", "`` is not a length of time"),
        ("100:-5s", "`-5s` is not a length of time"),
        ("100:0s", "the duration is zero"),
        ("trace:0s", "the duration is zero"),
        ("100:1000h", "longer than 744h"),
        ("0:10s", "the stage has no virtual users"),
        ("0..0:10s", "the stage has no virtual users"),
        ("-5:10s", "`-5` is not a number of virtual users"),
        ("1.5:10s", "`1.5` is not a number of virtual users"),
        ("1..:10s", "`` is not a number of virtual users"),
        ("1...5:10s", "`.5` is not a number of virtual users"),
        ("traces:10s", "`traces` is not a number of virtual users"),
        ("10000001:10s", "more than 10000000 virtual users"),
        ("99999999999999999999:10s", "more than 10000000 virtual users"),
        ("@0:10s", "the rate is zero all the time"),
        ("@-1:10s", "a rate of -1 cannot be paced"),
        ("@5..-1:10s", "a rate of -1 cannot be paced"),
        ("@NaN:10s", "a rate of NaN cannot be paced"),
        ("@inf:10s", "a rate of inf cannot be paced"),
        ("@100000001:10s", "more than 100000000 arrivals per second"),
        ("@:10s", "`` is not a rate"),
        ("@5/s:10s", "`5/s` is not a rate"),
        ("@1..2..3:10s", "`2..3` is not a rate"),
    ] {
        let message = text.parse::<Stages>().unwrap_err().to_string();
        assert!(message.contains(part), "{text}: {message}");
    }
}

#[test]
fn all_problems_are_reported_at_once() {
    let problems = "0:10,5:10s,@x:0s,7".parse::<Stages>().unwrap_err();
    let reported: Vec<_> =
        problems.problems().iter().map(|p| (p.position, p.text.as_str())).collect();
    assert_eq!(reported, [(1, "0:10"), (1, "0:10"), (3, "@x:0s"), (3, "@x:0s"), (4, "7")]);
    assert_eq!(problems.to_string().lines().count(), 5);
}

#[test]
fn more_stages_than_ids_are_refused() {
    let text = vec!["1:1s"; 65_536].join(",");
    let problems: ScheduleError = text.parse::<Stages>().unwrap_err();
    assert_eq!(problems.problems().len(), 1);
    assert_eq!(problems.problems()[0].position, 65_536);
}

#[test]
fn stages_are_one_string_in_files() {
    let stages: Stages = serde_json::from_str("\"w5:1s,@10..20:3s\"").unwrap();
    assert_eq!(serde_json::to_string(&stages).unwrap(), "\"w5:1s,@10..20:3s\"");
    let refusal = serde_json::from_str::<Stages>("\"5:0s,6\"").unwrap_err().to_string();
    assert!(refusal.contains("stage 1") && refusal.contains("stage 2"), "{refusal}");
}

#[test]
fn the_schema_accepts_what_the_parser_accepts() {
    let schema = serde_json::to_value(schemars::schema_for!(Stages)).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for text in [
        "100:60s",
        "1..100:30s, @0.5:1m30s",
        "@1e3..2e4:60s",
        "trace",
        "wtrace:5s,w@50:10s",
        " 7 : 2s ",
    ] {
        assert!(text.parse::<Stages>().is_ok(), "{text}");
        assert!(validator.is_valid(&text.into()), "{text}");
    }
    for text in ["", "100", "100:60", "@x:5s", "1:5s,", "-5:10s"] {
        assert!(text.parse::<Stages>().is_err(), "{text}");
        assert!(!validator.is_valid(&text.into()), "{text}");
    }
    assert!(!validator.is_valid(&5.into()), "a number is not a string");
}

fn any_load() -> impl Strategy<Value = Load> {
    prop_oneof![
        (0u32..=10_000_000, 1u32..=10_000_000).prop_map(|(a, b)| users(a, b)),
        (1u32..=10_000_000).prop_map(|n| users(n, n)),
        (0.0f64..1e8, 1e-9f64..1e8).prop_map(|(a, b)| rate(a, b)),
        (1e-9f64..1e8).prop_map(|r| rate(r, r)),
        Just(Load::Trace),
    ]
}

fn any_stage() -> impl Strategy<Value = StageSpec> {
    // Up to a day in nanoseconds, because beyond that the notation's floats may be off by one.
    (any_load(), proptest::option::of(1u64..86_400_000_000_000), any::<bool>()).prop_map(
        |(load, nanos, warmup)| {
            let nanos = nanos.or_else(|| (load != Load::Trace).then_some(1));
            StageSpec { load, duration: nanos.map(Nanos::new), warmup }
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_reads_back_equal(stages in proptest::collection::vec(any_stage(), 1..6)) {
        let stages = Stages(stages);
        prop_assert_eq!(stages.to_string().parse::<Stages>().unwrap(), stages);
    }

    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in "[w@0-9.:,a-z -]{0,40}|.{0,40}") {
        if let Err(problems) = text.parse::<Stages>() {
            prop_assert!(!problems.problems().is_empty());
        }
    }
}
