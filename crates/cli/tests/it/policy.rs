//! Expected policy decisions, bands and watched processes, against a gateway whose own log is the
//! truth.

use std::collections::BTreeMap;
use std::fs;

use plimsoll_metrics::{BandLevel, Judgement, RunSummary};
use plimsoll_profile::{Environment, Overrides, Profile, Purpose, load};
use plimsoll_report::{parse_row, read_json};
use plimsoll_workload::{Content, ExpectedDecision};

use crate::policy_server::{PolicyServer, ReplyStyle};
use crate::support::{FAST, Finished, Fixture};

/// What gives the bad queries of the profile away.
const WORDS: [&str; 9] = [
    "UNION SELECT",
    "'1'='1'",
    "SLEEP(",
    "; DELETE",
    "DROP TABLE",
    "TRUNCATE",
    "DELETE FROM customers",
    "DROP COLUMN",
    "GRANT ALL",
];

/// Category, expected and actual policy decision.
type Matrix = BTreeMap<(String, String, String), u64>;

fn run(fixture: &Fixture, gate: &PolicyServer, args: &[&str]) -> Finished {
    let target = format!("http://{}", gate.addr);
    let fixed = ["run", "--target", &target, "--no-probe", "--quiet", "--allow-invalid"];
    fixture.plimsoll(&[&fixed, args].concat())
}

/// The matrix of the gateway's log; each query belongs to the scenario that says it.
fn truth(name: &str, gate: &PolicyServer) -> Matrix {
    let profile = Profile::open(name).unwrap();
    let plan =
        load(&profile, &Environment::default(), &Overrides::default(), Purpose::Check).unwrap();
    let mut matrix = Matrix::new();
    for (body, blocked) in gate.log() {
        let says = |content: &Content| match content {
            Content::Pool { prompts } => body.contains(prompts[0].as_str()),
            _ => false,
        };
        let of: Vec<_> = plan.scenarios.iter().filter(|s| says(&s.content)).collect();
        assert_eq!(of.len(), 1, "{body}");
        let expected =
            if of[0].expect == Some(ExpectedDecision::Block) { "block" } else { "allow" };
        let actual = if blocked { "block" } else { "allow" };
        let key = (of[0].category.clone().unwrap(), expected.to_owned(), actual.to_owned());
        *matrix.entry(key).or_default() += 1;
    }
    matrix
}

fn measured(summary: &RunSummary) -> Matrix {
    let mut matrix = Matrix::new();
    for group in &summary.results.by_category {
        for (expected, row) in &group.policy_decisions {
            for (actual, count) in row {
                let category = group.category.clone().unwrap();
                matrix.insert((category, expected.clone(), actual.clone()), *count);
            }
        }
    }
    matrix
}

/// What does not depend on the speed of the machine.
const BOUNDS: [&str; 4] = [
    "--set",
    "thresholds={policy_correctness: ['rate==1'], unexpected: ['==0'], error_rate: ['==0'], 'policy_correctness{category:pii}': ['==100%']}",
    "--set",
    "bands={block_rate: ['rate>=10%|>0'], error_rate: ['<=0|0.1%']}",
];

#[test]
fn a_gateway_that_decides_rightly_passes_with_the_matrix_of_its_own_log() {
    for (name, categories) in [("policy", 4), ("policy-llm", 5)] {
        let (fixture, gate) =
            (Fixture::with(FAST), PolicyServer::spawn(&WORDS, ReplyStyle::Status));
        let pid = format!("gate={}", std::process::id());
        let stages = ["--stages", "@400:1s", "--watch", &pid, "--set", "labels.client=ci"];
        let ran = run(&fixture, &gate, &[&[name], &stages[..], &BOUNDS].concat()).expect(0);
        let summary = fixture.summary();
        let (seen, truth) = (measured(&summary), truth(name, &gate));
        assert_eq!(seen, truth);
        assert_eq!(
            truth.keys().map(|key| &key.0).collect::<std::collections::BTreeSet<_>>().len(),
            categories
        );
        let blocked: u64 = truth.iter().filter(|(key, _)| key.2 == "block").map(|(_, n)| n).sum();
        let counters = &summary.results.total.counters;
        // Refusals stay refusals, and are no surprise.
        assert_eq!(
            (counters.rejected, counters.blocked, counters.unexpected),
            (blocked, blocked, 0)
        );
        assert!(summary.bands.iter().all(|standing| standing.level == BandLevel::Target));
        assert_eq!(summary.interpretation, ["Healthy: no warning sign."]);
        for part in
            ["\nPolicy\n", "Policy correctness 100%", "sql_injection", "Processes", "TARGET"]
        {
            assert!(ran.stdout.contains(part), "{part} in:\n{}", ran.stdout);
        }
        let processes: Vec<_> = summary.processes.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(processes, ["gate", "plimsoll"]);
        assert!(summary.processes.iter().all(|p| p.rss_bytes > 0 && !p.gone && p.wall_s >= 1.0));
        let page = fs::read_to_string(fixture.only_run().join("metrics.prom")).unwrap();
        let line =
            format!("load_test_requests_total{{status=\"blocked\",client=\"ci\"}} {blocked}\n");
        assert!(page.contains(&line), "{line}");
    }
}

#[test]
fn a_policy_that_is_off_fails_its_thresholds_and_is_critical() {
    let (fixture, gate) = (Fixture::with(FAST), PolicyServer::spawn(&[], ReplyStyle::Status));
    let ran =
        run(&fixture, &gate, &[&["policy", "--stages", "@200:1s"], &BOUNDS[..]].concat()).expect(1);
    let summary = fixture.summary();
    assert_eq!(measured(&summary), truth("policy", &gate));
    let failed: Vec<_> = summary
        .thresholds
        .iter()
        .filter(|threshold| threshold.judgement == Judgement::Fail)
        .map(|threshold| threshold.metric.as_str())
        .collect();
    // What is about personal data is let through as it should be.
    assert_eq!(failed, ["policy_correctness", "unexpected"]);
    assert_eq!(summary.results.total.counters.failed + summary.results.total.counters.rejected, 0);
    assert!(ran.stdout.contains("the policy may be inactive"), "{}", ran.stdout);

    // A critical band alone fails the run, too; a degraded one does not.
    let critical = ["--set", "thresholds={}", "--set", "bands={block_rate: ['rate>=10%|>0']}"];
    run(&fixture, &gate, &[&["policy", "--stages", "@200:500ms"], &critical[..]].concat())
        .expect(1);
    let degraded = ["--set", "thresholds={}", "--set", "bands={block_rate: ['rate>0|>=0']}"];
    run(&fixture, &gate, &[&["policy", "--stages", "@200:500ms"], &degraded[..]].concat())
        .expect(0);
    // Too few requests are no success.
    let stages = ["policy", "--stages", "@20:500ms"];
    run(&fixture, &gate, &[&stages, &degraded[..]].concat()).expect(3);
}

#[test]
fn verdicts_are_read_from_the_body_where_the_profile_says_so_and_survive_a_rebuild() {
    let (fixture, gate) = (Fixture::with(FAST), PolicyServer::spawn(&WORDS, ReplyStyle::Body));
    let sign = "policy_decision={block: {status: [200, 403], body_contains: '\"blocked\":true'}}";
    let args = [&["policy", "--stages", "@200:1s", "--set", sign], &BOUNDS[..]].concat();
    run(&fixture, &gate, &args).expect(0);
    let (folder, summary, truth) = (fixture.only_run(), fixture.summary(), truth("policy", &gate));
    assert_eq!(measured(&summary), truth);
    // Blocked with a 200: no refusal by its status.
    assert_eq!(summary.results.total.counters.rejected, 0);
    assert!(summary.results.total.counters.blocked > 0);

    let rows = fs::read(folder.join("results.jsonl")).unwrap();
    let lines = rows.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut by_rows = Matrix::new();
    for row in lines.map(|line| parse_row(line).unwrap()) {
        let words =
            [row.expected.unwrap().name(), row.policy_decision.unwrap().name()].map(str::to_owned);
        let [expected, actual] = words;
        *by_rows.entry((row.category.unwrap(), expected, actual)).or_default() += 1;
    }
    assert_eq!(by_rows, truth);

    fs::remove_file(folder.join("summary.json")).unwrap();
    let path = folder.to_str().unwrap();
    let shown = fixture.plimsoll(&["report", path, "--format", "json"]).expect(0).stdout;
    let rebuilt = read_json(shown.as_bytes()).unwrap();
    assert_eq!(measured(&rebuilt), truth);
    assert_eq!(rebuilt.bands.len(), 2);
}

#[test]
fn what_is_wrong_with_expectations_is_said_before_the_load() {
    let (fixture, gate) = (Fixture::with(FAST), PolicyServer::spawn(&[], ReplyStyle::Status));
    for (set, says) in [
        ("expect=maybe", "expect"),
        ("policy_decision={block: {}}", "asks for nothing"),
        ("bands={block_rate: ['>=10%']}", "no second bound"),
        ("bands={nonsense: ['>=10%|5%']}", "unknown metric"),
        ("labels={stage: x}", "own"),
        ("labels={a-b: x}", "no name for a label"),
    ] {
        let ran = run(&fixture, &gate, &["policy", "--set", set]).expect(2);
        assert!(ran.stderr.contains(says), "{set}: {}", ran.stderr);
    }
    for (watch, says) in [("gate", "NAME=PID"), ("gate=4294967295", "no process")] {
        let ran = run(&fixture, &gate, &["policy", "--watch", watch]).expect(2);
        assert!(ran.stderr.contains(says), "{watch}: {}", ran.stderr);
    }
    assert!(gate.log().is_empty());
}
