//! The answer as text and as JSON.

use plimsoll_metrics::RunSummary;
use plimsoll_why::{SCHEMA, Why, text, why};
use serde_json::Value;

use crate::support::{Case, process, threads};

fn schema() -> Value {
    serde_json::to_value(schemars::schema_for!(Why)).unwrap()
}

fn saturated() -> Case {
    Case::closed(50).with(|case| {
        let gateway = case.process("gateway");
        gateway.cpus = Some(1);
        threads(gateway, &[(0.97, 0.11), (0.02, 0.0)]);
        "upstream-\u{1b}[31m".clone_into(&mut case.process("upstream").name);
    })
}

#[test]
fn the_text_has_the_answer_first_and_each_suspect_with_its_figures() {
    expect_test::expect![[r"
        Bottleneck at 100/s: the gateway, 0.99 of 1 CPU.
          fix: give it more CPUs, or lower the rate
          stage   users  sent/s  done/s  in flight
          50:10s   50.0     100     100       49.0
          part              process  state  CPUs  of  waits      busiest thread
          generator        plimsoll  clear  0.20   4   0.00  plimsoll-main 0.20
          gateway           gateway   FULL  0.99   1   0.11         worker 0.97
          upstream   upstream-\u{1b}[31m  clear  0.10   4   0.00  upstream-main 0.10
    "]]
    .assert_eq(&text(&saturated().why()));
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
    let shown = |case: Case| text(&case.why());
    let level = |users| shown(Case::level(users).without("upstream"));
    let others = [shown(saturated()), shown(Case::empty())];
    for shown in others.into_iter().chain([shown(crowded), level(1), level(2)]) {
        let wide = shown.lines().find(|line| line.chars().count() > 80);
        assert!(shown.lines().count() <= 24 && wide.is_none(), "{wide:?}\n{shown}");
        let first = ["Bottleneck at ", "No bottleneck ", "No finished stage to judge."];
        assert!(first.iter().any(|first| shown.starts_with(first)), "{shown}");
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
    for case in [saturated(), Case::open(100), Case::empty(), Case::level(1).without("gateway")] {
        let why = case.why();
        let json = serde_json::to_value(&why).unwrap();
        let errors: Vec<_> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(json["answer"], why.answer.name());
        assert_eq!(json["schema"], SCHEMA);
        assert_eq!(serde_json::from_value::<Why>(json).unwrap(), why);
    }
}

/// A summary without evidence on processes is accepted, and the text names the process to monitor.
#[test]
fn a_summary_without_evidence_is_unknown() {
    let mut json = serde_json::to_value(Case::closed(50).summary()).unwrap();
    assert!(json.as_object_mut().unwrap().remove("resources").is_some());
    let summary: RunSummary = serde_json::from_value(json).unwrap();
    let finding = why(&summary).finding.unwrap();
    assert_eq!((finding.code, &*finding.fix()), (507, "--watch target=:PORT shows more"));
}

#[test]
fn the_line_of_reports_is_the_statement() {
    let why = saturated().why();
    let line = why.bottleneck().unwrap();
    assert_eq!((line.answer.as_str(), line.text), ("gateway", why.finding.unwrap().text()));
}
