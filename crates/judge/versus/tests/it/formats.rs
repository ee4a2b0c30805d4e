//! Output as text, JSON, CSV and Prometheus metrics.

use plimsoll_measure::{ErrorClass, Nanos, Outcome, PolicyDecision};
use plimsoll_metrics::Judgement;
use plimsoll_versus::{
    AddedThreshold, CpuReading, Facts, SCHEMA, Stated, Versus, combine, csv, json, judge,
    prometheus, read_json,
};
use serde_json::Value;

use crate::screens::{claims, full};
use crate::simulation::{Simulation, direct, target};

const PAGE: &str = "# versus.json

Generated from the type `Versus` of `crates/judge/versus`; do not edit. To refresh it:
`UPDATE_EXPECT=1 cargo test -p plimsoll-versus`. [versus.schema.json](versus.schema.json) is the same as a JSON Schema.

Times are in nanoseconds. `null` stands for what is not known or refused; `refused` says why.
";

/// A comparison with failures, policy decisions, CPU time and thresholds.
pub(crate) fn versus() -> Versus {
    let mut targets = direct(0.0);
    targets.extend([target("a", 143.0), target("b-with-a-long-name", 1_430.0)]);
    let simulation = Simulation::new(targets);
    let mut blocks = simulation.blocks();
    for (index, block) in (0_u64..).zip(&mut blocks) {
        for turn in block.turns.iter_mut().flatten() {
            turn.expected = Some(PolicyDecision::Allow);
            turn.decision = Some(PolicyDecision::Allow);
        }
        let turn = block.turns[3].as_mut().unwrap();
        turn.reused = index % 33 != 0;
        match index % 1_500 {
            7 => turn.outcome = Outcome::Failed(ErrorClass::ServerError),
            8 => {
                turn.outcome = Outcome::Rejected(403);
                turn.decision = Some(PolicyDecision::Block);
            }
            _ => {}
        }
    }
    judge(&facts(&simulation), &blocks)
}

fn facts(simulation: &Simulation) -> Facts {
    let mut facts = simulation.facts();
    let bound = AddedThreshold::parse("added.ttft{target:a}", "p(50)<200us").unwrap();
    facts.thresholds = vec![bound];
    for (target, cpu_us) in [(2_u64, 27), (3, 402)] {
        let index = usize::try_from(target).unwrap();
        // 100 requests per second, with a small variation.
        facts.targets[index].cpu = (0..=61)
            .map(|second: u64| CpuReading {
                at: Nanos::from_millis(second * 1_000),
                cpu: Nanos::from_micros(second * 100 * cpu_us + second * 37 * target % 11 * 100),
            })
            .collect();
        facts.targets[index].memory_bytes = Some(12_000_000);
        let part = ("x-litellm-overhead-duration-ms".to_owned(), 3.1e5);
        facts.targets[index].stated =
            Some(Stated { responses: 5_900, mean_ns: [part].into_iter().collect() });
    }
    facts
}

fn schema() -> Value {
    serde_json::to_value(schemars::schema_for!(Versus)).unwrap()
}

pub(crate) fn stored(path: &str) -> String {
    format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_text_has_its_stored_form_and_fits_any_width() {
    let versus = versus();
    expect_test::expect_file![stored("tests/it/golden/versus.txt")].assert_eq(&full(&versus, 80));
    for width in 60..=200 {
        let text = full(&versus, width);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
    }
}

#[test]
fn a_refused_comparison_says_why() {
    let mut targets = direct(100.0);
    targets.push(target("a", 143.0));
    let short = Simulation { seconds: 7, ..Simulation::new(targets.clone()) };
    let page = full(&judge(&short.facts(), &short.blocks()), 80);
    let text = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = "no difference could be measured: a stage is too short: an interval needs 8 batches";
    assert!(text.contains(why), "{page}");
    assert!(!page.contains("Tested differences"), "{page}");
    let off = Simulation::new(targets);
    let page = full(&judge(&off.facts(), &off.blocks()), 80);
    assert!(
        page.contains("INVALID: direct' and direct are the same target, but differ by "),
        "{page}"
    );
    assert!(!page.contains("Statistically significant"), "{page}");
}

#[test]
fn json_reads_back_equal_and_follows_its_schema() {
    let versus = versus();
    let written = json(&versus).unwrap();
    assert_eq!(read_json(written.as_bytes()).unwrap(), versus);
    let value: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(value["schema"], SCHEMA);
    let validator = jsonschema::validator_for(&schema()).unwrap();
    assert!(validator.is_valid(&value), "{:?}", validator.iter_errors(&value).next());
    let other = written.replace(SCHEMA, "plimsoll.versus/99");
    let error = read_json(other.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("`plimsoll.versus/99`"), "{error}");
    assert!(read_json(b"{}").is_err());
}

#[test]
fn the_reference_pages_equal_the_type() {
    let reference = |name: &str| stored(&format!("../../../docs/reference/{name}"));
    let page = format!("{PAGE}{}", plimsoll_test_support::schema_page::render(&schema()));
    expect_test::expect_file![reference("versus.md")].assert_eq(&page);
    let schema = serde_json::to_string_pretty(&schema()).unwrap();
    expect_test::expect_file![reference("versus.schema.json")].assert_eq(&format!("{schema}\n"));
}

/// By hand: 27 and 402 us of CPU time per request were planted.
#[test]
fn cpu_time_is_that_of_the_readings() {
    let versus = versus();
    let of = |index: usize| versus.targets[index].cpu_ns_per_request.unwrap() / 1e3;
    assert!((of(2) - 27.0).abs() < 0.5 && (of(3) - 402.0).abs() < 0.5, "{} {}", of(2), of(3));
    let found = &versus.cpu[0];
    assert!((found.value_ns.unwrap() / 1e3 - 375.0).abs() < 1.0, "{found:?}");
    assert!(found.low_ns.unwrap() < 375e3 && found.high_ns.unwrap() > 375e3, "{found:?}");
    assert!(
        claims(&versus)
            .iter()
            .any(|text| text.starts_with("CPU per request of b-with-a-long-name: +375"))
    );
}

/// By hand: the reference's process takes 20 ms of CPU per second, for 100 turns of its own and 100
/// of its control.
#[test]
fn cpu_time_is_divided_by_the_turns_of_the_control_too() {
    let simulation = Simulation::new(direct(0.0));
    let mut facts = simulation.facts();
    facts.targets[0].cpu = (0..=61)
        .map(|second: u64| CpuReading {
            at: Nanos::from_secs(second),
            cpu: Nanos::from_micros(second * 20_000 + second % 7),
        })
        .collect();
    let versus = judge(&facts, &simulation.blocks());
    let per_request = versus.targets[0].cpu_ns_per_request.unwrap() / 1e3;
    assert!((per_request - 100.0).abs() < 0.5, "{per_request}");
}

#[test]
fn csv_and_prometheus_have_the_differences() {
    let versus = versus();
    let csv = csv(&versus);
    let mut lines = csv.lines();
    let columns = lines.next().unwrap().split(',').count();
    let line = lines.find(|line| line.starts_with("a,direct,ttft,added,p50,")).unwrap();
    assert_eq!(line.split(',').count(), columns);
    let value: f64 = line.split(',').nth(5).unwrap().parse().unwrap();
    assert!((value / 1e3 - 143.0).abs() < 3.0, "{line}");
    // A generator that occasionally sends 10 us late widens both limits.
    let mut late = versus.clone();
    let added = late.differences.iter_mut().find(|found| found.is_of("a", "direct")).unwrap();
    (added.at_least_ns, added.at_most_ns) = (Some(133_000.0), Some(153_000.0));
    let line = plimsoll_versus::csv(&late);
    assert!(line.contains(",133000,153000,"), "{line}");
    let figure = "figure=\"ttft\",quantile=\"0.5\",bound=\"high\"} 0.000153";
    assert!(prometheus(&late).contains(figure), "{}", prometheus(&late));
    let page = prometheus(&versus);
    let start = "plimsoll_added_seconds{target=\"a\",reference=\"direct\",figure=\"ttft\",\
        quantile=\"0.5\",bound=\"value\"} 0.00014";
    assert!(page.contains(start), "{page}");
    assert!(page.contains("plimsoll_versus_valid{name=\"simulated\"} 1"), "{page}");
}

#[test]
fn a_result_of_rounds_is_shown_as_one() {
    let versus = combine(&[versus(), versus(), versus()]).unwrap();
    let page = full(&versus, 80);
    assert!(
        page.contains("means of 3 rounds")
            && page.contains("over 3 rounds:")
            && page.contains("TTFT by round"),
        "{page}"
    );
    assert_eq!(versus.judgement_of_bounds(), Judgement::Pass);
    assert_eq!(read_json(json(&versus).unwrap().as_bytes()).unwrap(), versus);
}
