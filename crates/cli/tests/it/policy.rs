//! Expected policy decisions, bands and watched processes, compared with the log of a policy
//! gateway.

use std::collections::BTreeMap;
use std::fs;

use plimsoll_metrics::{BandLevel, Judgement, RunSummary};
use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, load};
use plimsoll_run_files::{parse_row, read_summary};
use plimsoll_workload::{Content, ExpectedDecision};

use crate::policy_server::{PolicyServer, ReplyStyle};
use crate::support::{FAST, Fixture, ProcessOutput};

/// Words of the profile's bad queries.
const BLOCKED_WORDS: [&str; 9] = [
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

/// The number of requests by category, expected and actual policy decision.
type DecisionMatrix = BTreeMap<(String, String, String), u64>;

fn run(fixture: &Fixture, gateway: &PolicyServer, args: &[&str]) -> ProcessOutput {
    let target = format!("http://{}", gateway.addr);
    let fixed = ["run", "--target", &target, "--no-probe", "--quiet", "--allow-invalid", "--full"];
    fixture.plimsoll(&[&fixed, args].concat())
}

/// The matrix of the gateway's log. The text of a query identifies its scenario.
fn truth(name: &str, gateway: &PolicyServer) -> DecisionMatrix {
    let profile = Profile::open(name).unwrap();
    let plan = load(&profile, &EnvVars::default(), &Overrides::default(), Purpose::Check).unwrap();
    let mut matrix = DecisionMatrix::new();
    for (body, blocked) in gateway.log() {
        let contains = |content: &Content| match content {
            Content::Pool { prompts } => body.contains(prompts[0].as_str()),
            _ => false,
        };
        let of: Vec<_> = plan.scenarios.iter().filter(|s| contains(&s.content)).collect();
        assert_eq!(of.len(), 1, "{body}");
        let expected =
            if of[0].expect == Some(ExpectedDecision::Block) { "block" } else { "allow" };
        let actual = if blocked { "block" } else { "allow" };
        let key = (of[0].category.clone().unwrap(), expected.to_owned(), actual.to_owned());
        *matrix.entry(key).or_default() += 1;
    }
    matrix
}

fn measured(summary: &RunSummary) -> DecisionMatrix {
    let mut matrix = DecisionMatrix::new();
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

/// Bounds that do not depend on the speed of the machine.
const BOUNDS: [&str; 4] = [
    "--set",
    "thresholds={policy_correctness: ['rate==1'], unexpected: ['==0'], error_rate: ['==0'], 'policy_correctness{category:pii}': ['==100%']}",
    "--set",
    "bands={block_rate: ['rate>=10%|>0'], error_rate: ['<=0|0.1%']}",
];

#[test]
fn a_correct_gateway_passes_and_the_report_matches_its_log() {
    for (name, categories) in [("policy", 4), ("policy-llm", 5)] {
        let (fixture, gateway) =
            (Fixture::with(FAST), PolicyServer::spawn(&BLOCKED_WORDS, ReplyStyle::Status));
        let pid = format!("gate={}", std::process::id());
        let stages = ["--stages", "@400:1s", "--watch", &pid, "--set", "labels.client=ci"];
        let output = run(&fixture, &gateway, &[&[name], &stages[..], &BOUNDS].concat()).expect(0);
        let summary = fixture.summary();
        let (seen, truth) = (measured(&summary), truth(name, &gateway));
        assert_eq!(seen, truth);
        assert_eq!(
            truth.keys().map(|key| &key.0).collect::<std::collections::BTreeSet<_>>().len(),
            categories
        );
        let blocked: u64 = truth.iter().filter(|(key, _)| key.2 == "block").map(|(_, n)| n).sum();
        let counters = &summary.results.total.counters;
        // Blocked requests count as rejected, and not as unexpected.
        assert_eq!(
            (counters.rejected, counters.blocked, counters.unexpected),
            (blocked, blocked, 0)
        );
        let mut bands = summary.thresholds.iter().filter(|result| result.is_band());
        assert!(bands.all(|result| result.level == Some(BandLevel::Target)));
        assert!(summary.findings.iter().all(|finding| finding.code != 213));
        for part in
            ["\nPolicy\n", "Policy correctness 100%", "sql_injection", "Processes", "TARGET"]
        {
            assert!(output.stdout.contains(part), "{part} in:\n{}", output.stdout);
        }
        let processes: Vec<_> = summary.processes.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(processes, ["gate", "plimsoll"]);
        assert!(summary.processes.iter().all(|p| p.rss_bytes > 0 && !p.gone && p.wall_s >= 1.0));
        let page = fs::read_to_string(fixture.only_run().join("metrics.prom")).unwrap();
        let mut by_category = BTreeMap::new();
        for (key, n) in &truth {
            *by_category.entry(&key.0).or_insert(0) += if key.2 == "block" { *n } else { 0 };
        }
        for (category, blocked) in by_category {
            let labels = format!("status=\"blocked\",test_type=\"{category}\",client=\"ci\"");
            let line = format!("load_test_requests_total{{{labels}}} {blocked}\n");
            assert!(page.contains(&line), "{line}");
        }
    }
}

#[test]
fn an_inactive_policy_fails_the_thresholds_and_is_critical() {
    let (fixture, gateway) = (Fixture::with(FAST), PolicyServer::spawn(&[], ReplyStyle::Status));
    let output =
        run(&fixture, &gateway, &[&["policy", "--stages", "@200:1s"], &BOUNDS[..]].concat())
            .expect(1);
    let summary = fixture.summary();
    assert_eq!(measured(&summary), truth("policy", &gateway));
    let failed: Vec<_> = summary
        .thresholds
        .iter()
        .filter(|threshold| threshold.judgement == Judgement::Fail && !threshold.is_band())
        .map(|threshold| threshold.metric.as_str())
        .collect();
    // Queries about personal data are allowed, as expected.
    assert_eq!(failed, ["error_rate", "policy_correctness", "unexpected"]);
    assert_eq!(summary.results.total.counters.failed + summary.results.total.counters.rejected, 0);
    assert!(output.stdout.contains("35 of 200 policy decisions are wrong"), "{}", output.stdout);

    // A critical band alone fails the run, too; a degraded one does not.
    let critical = ["--set", "thresholds={}", "--set", "bands={block_rate: ['rate>=10%|>0']}"];
    run(&fixture, &gateway, &[&["policy", "--stages", "@200:500ms"], &critical[..]].concat())
        .expect(1);
    let degraded = ["--set", "thresholds={}", "--set", "bands={block_rate: ['rate>0|>=0']}"];
    run(&fixture, &gateway, &[&["policy", "--stages", "@200:500ms"], &degraded[..]].concat())
        .expect(0);
}

#[test]
fn decisions_are_read_from_the_body_and_survive_a_rebuild_of_the_report() {
    let (fixture, gateway) =
        (Fixture::with(FAST), PolicyServer::spawn(&BLOCKED_WORDS, ReplyStyle::Body));
    let rule = "policy_decision={block: {status: [200, 403], body_contains: '\"blocked\":true'}}";
    let args = [&["policy", "--stages", "@200:1s", "--set", rule], &BOUNDS[..]].concat();
    run(&fixture, &gateway, &args).expect(0);
    let (folder, summary, truth) =
        (fixture.only_run(), fixture.summary(), truth("policy", &gateway));
    assert_eq!(measured(&summary), truth);
    // Blocked with status 200: not rejected.
    assert_eq!(summary.results.total.counters.rejected, 0);
    assert!(summary.results.total.counters.blocked > 0);

    let rows = fs::read(folder.join("results.jsonl")).unwrap();
    let lines = rows.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut by_rows = DecisionMatrix::new();
    for row in lines.map(|line| parse_row(line).unwrap()) {
        let words =
            [row.expected.unwrap().name(), row.policy_decision.unwrap().name()].map(str::to_owned);
        let [expected, actual] = words;
        *by_rows.entry((row.category.unwrap(), expected, actual)).or_default() += 1;
    }
    assert_eq!(by_rows, truth);

    fs::remove_file(folder.join("summary.json")).unwrap();
    let path = folder.to_str().unwrap();
    let shown = fixture.plimsoll(&["report", path, "--format", "json"]).expect(3).stdout;
    let rebuilt = read_summary(shown.as_bytes()).unwrap();
    assert_eq!(measured(&rebuilt), truth);
    assert_eq!(rebuilt.thresholds.iter().filter(|result| result.is_band()).count(), 2);
}

#[test]
fn invalid_expectations_are_errors_before_the_load() {
    let (fixture, gateway) = (Fixture::with(FAST), PolicyServer::spawn(&[], ReplyStyle::Status));
    for (set, part) in [
        ("expect=maybe", "expect"),
        ("policy_decision={block: {}}", "every response would match"),
        ("bands={block_rate: ['>=10%|20%']}", "not wider"),
        ("bands={nonsense: ['>=10%|5%']}", "unknown metric"),
        ("labels={stage: x}", "a label that Plimsoll sets"),
        ("labels={a-b: x}", "not a valid Prometheus label"),
    ] {
        let output = run(&fixture, &gateway, &["policy", "--set", set]).expect(2);
        assert!(output.stderr.contains(part), "{set}: {}", output.stderr);
    }
    for (watch, part) in [("gate", "NAME=PID"), ("gate=4294967295", "no process")] {
        let output = run(&fixture, &gateway, &["policy", "--watch", watch]).expect(2);
        assert!(output.stderr.contains(part), "{watch}: {}", output.stderr);
    }
    assert!(gateway.log().is_empty());
}

/// One of two gateways blocks nothing: each has its own matrix, and the run's broken threshold is
/// the only verdict.
#[test]
fn a_comparison_of_policies_has_one_verdict_and_a_matrix_for_each_target() {
    let fixture = Fixture::with(FAST);
    let on = PolicyServer::spawn(&BLOCKED_WORDS, ReplyStyle::Status);
    let off = PolicyServer::spawn(&[], ReplyStyle::Status);
    let [on, off] =
        [("on", on.addr), ("off", off.addr)].map(|(name, at)| format!("{name}=http://{at}"));
    let load = ["versus", "policy", "--target", &on, "--target", &off, "--stages", "@50:2s"];
    let more = ["--quiet", "--allow-invalid", "--set", "versus.alone=0s"];
    fixture.plimsoll(&[&load[..], &more, &BOUNDS].concat()).expect(1);
    let report = fs::read_to_string(fixture.only_run().join("report.txt")).unwrap();
    let words = ["PASS: ", "FAIL: ", "DONE: ", "INVALID: ", "INCONCLUSIVE: "];
    let verdicts = report.lines().filter(|line| words.iter().any(|word| line.starts_with(word)));
    assert_eq!(verdicts.count(), 1, "{report}");
    let table = report.split("\nPolicy decisions\n").nth(1).unwrap();
    let blocked = |name: &str| {
        let rows = table.lines().filter(|line| line.trim_start().starts_with(&format!("{name} ")));
        let row = rows.into_iter().find(|row| row.split_whitespace().nth(1) == Some("block"));
        row.unwrap().split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!((&*blocked("on"), &*blocked("off")), ("100%", "0%"), "{table}");
}
