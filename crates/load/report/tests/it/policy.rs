//! Policy decisions, bands, labels and processes in every format.

use plimsoll_measure::{Outcome, PolicyDecision, Sample};
use plimsoll_metrics::{
    Expectation, Finding, Limit, ProcessUse, Recorder, RunMetadata, RunSummary,
};
use plimsoll_report::{Style, csv, prometheus, text};
use plimsoll_run_files::{read_summary, summary_json};

use crate::support::{ended, health, metadata, sample, stage_ends};

/// 40 requests of `simple` that should be allowed, of which one is blocked; 10 of `complex` that
/// should be blocked, of which two are let through.
fn policy() -> RunSummary {
    let mut recorder = Recorder::new(stage_ends());
    for index in 0..50_u64 {
        let scenario = u16::from(index >= 40);
        let turn = sample(1, scenario, 1_000_000 + index * 10_000, 50_000);
        let blocked = index == 0 || (40..48).contains(&index);
        let turn = if blocked { ended(turn, Outcome::Rejected(403), 403) } else { turn };
        let expected = Some([PolicyDecision::Allow, PolicyDecision::Block][usize::from(scenario)]);
        let turn = Sample { expected, ..turn };
        recorder.scheduled(turn.stage, turn.scenario, turn.target);
        recorder.record(&turn, &[], &[]);
    }
    let expectations =
        vec![expect(PolicyDecision::Allow, "normal"), expect(PolicyDecision::Block, "attack")];
    let labels = [("client".to_owned(), "a \"quoted\" one".to_owned())].into();
    let metadata = RunMetadata { expectations, labels, ..metadata() };
    let bands = [("block_rate", "rate>=10%|>0%"), ("policy_correctness", ">=99%|90%")];
    let bands = bands.map(|(metric, bounds)| Limit::parse(metric, bounds).unwrap());
    let built = RunSummary::build(metadata, health(), &recorder.take(), &[]).unwrap();
    let process = ProcessUse {
        name: "gateway".to_owned(),
        pid: 7,
        wall_s: 10.0,
        cpu_s: 9.7,
        cores: 0.97,
        cpu_us_per_request: Some(12.3),
        rss_bytes: 20_000_000,
        threads: 3,
        ..ProcessUse::default()
    };
    RunSummary { processes: vec![process], ..built.with_limits(&bands) }
}

fn expect(policy_decision: PolicyDecision, category: &str) -> Expectation {
    Expectation { policy_decision: Some(policy_decision), category: Some(category.to_owned()) }
}

/// The words of the first line that begins with `starts`.
fn line<'a>(text: &'a str, starts: &[&str]) -> Vec<&'a str> {
    let all: Vec<_> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    all.into_iter().find(|line| line.starts_with(starts)).unwrap_or_default()
}

/// A block that is expected is a good answer, and one that is missing is not.
#[test]
fn the_screen_counts_expected_decisions_as_ok() {
    let text = text(&policy(), Style::default());
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let outcomes = "47 ok, 3 with another policy decision than expected.";
    assert!(one_line.contains(outcomes), "{text}");
    assert!(!one_line.contains("were refused") && !one_line.contains("credentials"), "{text}");
}

#[test]
fn the_text_has_the_matrix_the_bands_and_their_interpretation() {
    let text = text(&policy(), Style::default());
    assert_eq!(
        line(&text, &["normal", "allow"]),
        ["normal", "allow", "39", "1", "-", "-", "-", "-", "97.50%"]
    );
    assert_eq!(
        line(&text, &["attack", "block"]),
        ["attack", "block", "2", "8", "-", "-", "-", "-", "80.00%"]
    );
    assert_eq!(line(&text, &["total", "allow"])[2..4], ["39", "1"]);
    assert_eq!(line(&text, &["TARGET"]).last(), Some(&"18.00%"));
    assert_eq!(line(&text, &["DEGRADED"]).last(), Some(&"94.00%"));
    assert!(text.contains("Policy correctness 94.00%: 47 of 50"), "{text}");
    assert!(text.contains("3 of 50 policy decisions are wrong"), "{text}");
    assert_eq!(
        line(&text, &["gateway", "7"]),
        ["gateway", "7", "whole", "run", "0.97", "12.3us", "20.0", "MB", "1", "3"]
    );
}

#[test]
fn prometheus_has_the_labels_on_every_line_and_the_second_family() {
    let valid = RunSummary { findings: Vec::new(), ..policy() };
    let page = prometheus(&valid);
    let label = r#"client="a \"quoted\" one"}"#;
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        assert!(line.contains(label), "{line}");
    }
    // By category, as the matrix above has them: 10 attacks and 40 others.
    for (test_type, counts) in [("attack", [2, 8, 0]), ("normal", [39, 1, 0])] {
        for (status, count) in ["success", "blocked", "error"].into_iter().zip(counts) {
            let line = format!(
                "load_test_requests_total{{status=\"{status}\",test_type=\"{test_type}\",{label} {count}\n"
            );
            assert!(page.contains(&line), "{line} in {page}");
        }
        let line = format!("load_test_latency_ms_count{{test_type=\"{test_type}\",{label} ");
        // Blocks have times as well.
        assert!(page.contains(&format!("{line}{}\n", counts[0] + counts[1])), "{page}");
    }
    let median = "load_test_latency_ms{quantile=\"0.5\",test_type=\"normal\",";
    assert!(page.contains(&format!("{median}{label} 50.")), "{page}");
    // A label of that name stands for the whole run.
    let mut named = valid;
    named.metadata.labels = [("test_type".to_owned(), "hourly".to_owned())].into();
    let hourly = prometheus(&named);
    for (status, count) in [("success", 41), ("blocked", 9), ("error", 0)] {
        let line = format!(
            "load_test_requests_total{{status=\"{status}\",test_type=\"hourly\"}} {count}\n"
        );
        assert!(hourly.contains(&line), "{line} in {hourly}");
    }
    // Whoever reads these names does not know whether the run is valid.
    named.findings = vec![Finding::new(107)];
    let invalid = prometheus(&named);
    assert!(
        invalid.contains("load_test_requests_total{") && !invalid.contains("load_test_latency_ms{")
    );
    assert!(page.contains("plimsoll_policy_correctness_ratio{"), "{page}");
    assert!(page.contains("bounds=\">=99%|90%\""), "{page}");
    // Without labels there is only the one family.
    let mut unlabelled = policy();
    unlabelled.metadata.labels.clear();
    let plain = prometheus(&unlabelled);
    assert!(!plain.contains("load_test_"));
}

#[test]
fn json_and_csv_keep_the_matrix() {
    let summary = policy();
    assert_eq!(read_summary(summary_json(&summary).unwrap().as_bytes()).unwrap(), summary);
    let table = csv(&summary).unwrap();
    let (head, rows) = table.split_once('\n').unwrap();
    let column = |name: &str| head.split(',').position(|title| title == name).unwrap();
    let rows: Vec<Vec<_>> = rows.lines().map(|row| row.split(',').collect()).collect();
    let seen: Vec<_> =
        rows.iter().map(|row| (row[column("category")], row[column("policy_decisions")])).collect();
    assert_eq!(
        seen,
        [("normal", "allow>allow:39 allow>block:1"), ("attack", "block>allow:2 block>block:8")]
    );
}
