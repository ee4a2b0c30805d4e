//! The answer as text and as JSON.

use plimsoll_metrics::RunSummary;
use plimsoll_why::{SCHEMA, Why, text, why};
use serde_json::{Value, json};

use crate::support::{Case, process, threads};

fn schema() -> Value {
    serde_json::to_value(schemars::schema_for!(Why)).unwrap()
}

fn saturated() -> Case {
    Case::closed(50).with(|case| {
        let gateway = case.process("gateway");
        gateway.cpus = Some(1);
        threads(gateway, &[(0.97, 0.11), (0.02, 0.0)]);
        "provider-\u{1b}[31m".clone_into(&mut case.process("provider").name);
    })
}

#[test]
fn the_text_has_the_answer_first_and_each_suspect_with_its_figures() {
    let expected = "\
why: the gateway limits at 100/s: 0.99 of 1 CPU
  50:10s: a closed loop of 50 users, 49.0 in flight on average
  generator  clear      0.20 of 4 CPUs, late by 300us at p99
  gateway    SATURATED  0.99 of 1 CPU, waits 0.11, busiest thread `worker` 0.97
  provider   clear      `provider-\\u{1b}[31m`: 0.10 of 4 CPUs
  no split: nothing tells the provider's part; `plimsoll versus --direct URL`
            measures it, or `plimsoll join` reads it from the gateway's log
";
    assert_eq!(text(&saturated().why()), expected);
}

#[test]
fn the_text_fits_a_terminal_however_much_was_watched() {
    let crowded = saturated().with(|case| {
        for number in 0..40 {
            let name = format!("gateway-{number}-{}", "long".repeat(30));
            let mut load = process(&name, 100 + number, 0.5);
            load.threads[0].name = "t".repeat(60);
            case.resources().processes.push(load);
        }
        case.counters().rejected = 900;
        case.counters().failed = 100;
    });
    for case in [crowded, saturated(), Case::empty(), Case::closed(1).without("provider")] {
        let shown = text(&case.why());
        let wide = shown.lines().find(|line| line.chars().count() > 80);
        assert!(shown.lines().count() <= 24 && wide.is_none(), "{wide:?}\n{shown}");
        assert!(shown.starts_with("why: "));
    }
}

#[test]
fn the_schema_of_why_json_equals_its_type() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/why.schema.json");
    expect_test::expect_file![path]
        .assert_eq(&(serde_json::to_string_pretty(&schema()).unwrap() + "\n"));
}

#[test]
fn answers_keep_the_schema_and_are_read_back() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for case in [saturated(), Case::open(100), Case::empty(), Case::closed(1).without("gateway")] {
        let why = case.why();
        let json = serde_json::to_value(&why).unwrap();
        let errors: Vec<_> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(json["answer"], why.answer.name());
        assert_eq!(json["schema"], SCHEMA);
        assert_eq!(serde_json::from_value::<Why>(json).unwrap(), why);
    }
}

/// Summaries of earlier versions have no evidence of processes: they are read, and say so.
#[test]
fn a_summary_without_evidence_is_read_and_names_what_is_missing() {
    let mut json = serde_json::to_value(Case::level(50).summary()).unwrap();
    assert!(json.as_object_mut().unwrap().remove("resources").is_some());
    let summary: RunSummary = serde_json::from_value(json).unwrap();
    let why = why(&summary);
    assert_eq!(why.answer.name(), "cannot_be_told");
    assert!(why.missing.iter().any(|how| how.contains("--watch provider=:9000")), "{why:?}");
}

/// Earlier versions stored TCP counters of the whole host, of other programs too: they name nobody.
#[test]
fn counters_of_the_whole_host_accuse_nobody() {
    for mut case in [Case::open(100), Case::closed(50)] {
        let group = case.0.results.by_stage.last_mut().unwrap();
        let mut slow = serde_json::to_value(&group.distributions["service_time_ms"]).unwrap();
        slow["max"] = json!(700.0);
        let slow = serde_json::from_value(slow).unwrap();
        group.distributions.insert("service_time_ms".to_owned(), slow);
        let mut json = serde_json::to_value(case.summary()).unwrap();
        json["resources"].as_array_mut().unwrap().iter_mut().for_each(|stage| {
            let link = json!({"name": "eth0", "mbit_per_s": 1_000, "received": 0.0, "sent": 0.99});
            stage["network"] = json!({
                "segments": 200_000, "retransmitted": 5_000, "listen_overflows": 90, "link": link,
            });
        });
        let why = why(&serde_json::from_value(json).unwrap());
        assert_eq!(why.answer.name(), "nothing_saturated", "{}", why.sentence);
        assert!(!text(&why).contains("network"), "{}", text(&why));
    }
}

#[test]
fn the_line_of_reports_is_the_sentence() {
    let why = saturated().why();
    let line = why.bottleneck();
    assert_eq!((line.answer.as_str(), line.text.as_str()), ("gateway", why.sentence.as_str()));
}
