//! Comparisons of suites with a planted difference: it must lie within its interval, and without
//! one no difference may be reported. The planned host's delays are the truth.

use std::path::Path;

use plimsoll_engine::Control;
use plimsoll_knee::KneeReport;
use plimsoll_measure::{Nanos, Outcome};

use super::super::Suite;
use super::planned_host::PlannedHost;
use crate::bound::BoundResult;
use crate::comparison_result::ComparisonResult;
use crate::error::SuiteError;
use crate::options::SuiteOptions;
use crate::report::{Accepted, Report, SuiteOutcome};
use crate::target::SuiteTarget;

fn good(_: &str, _: bool) -> (Outcome, u16, Nanos) {
    (Outcome::Completed, 200, Nanos::from_micros(400))
}

fn user(name: &str) -> SuiteTarget {
    let port = name.bytes().map(u16::from).sum::<u16>();
    let url = format!("http://127.0.0.1:{port}");
    SuiteTarget { name: name.to_owned(), base: url, ..SuiteTarget::default() }
}

fn options(folder: &Path, targets: &[&str], direct: bool) -> SuiteOptions {
    SuiteOptions {
        exe: "plimsoll".into(),
        targets: targets.iter().map(|name| user(name)).collect(),
        direct: direct.then(|| user("direct")),
        short: true,
        passes: Some(1),
        folder: folder.to_owned(),
        command: "plimsoll suite".to_owned(),
        started: "S".to_owned(),
        ..SuiteOptions::default()
    }
}

/// A short suite, against the user's targets if there are any.
fn run(
    suite: Suite,
    delays: &[(&'static str, u64)],
    targets: &[&str],
    direct: bool,
) -> Result<Report, SuiteError> {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), targets, direct);
    let mut host = PlannedHost::with(good);
    host.delays = delays.iter().map(|(name, us)| (*name, Nanos::from_micros(*us))).collect();
    let report = suite.run_on(&mut host, &options, &Control::new(), &mut |_| {});
    if let Ok(report) = &report {
        for file in report.comparisons.iter().flat_map(|compared| &compared.files) {
            assert!(folder.path().join(file).exists(), "{file}");
        }
        // It may be the baseline of a later one.
        let json = serde_json::to_vec(report).unwrap();
        let read: Report = serde_json::from_slice(&json).unwrap();
        assert_eq!(read.comparisons.len(), report.comparisons.len());
    }
    report
}

/// The planted difference lies in the interval, which is at most as wide as a noise of 20 us
/// allows.
fn assert_added(compared: &ComparisonResult, target: &str, planted_us: f64) {
    let [value, low, high] = compared.added(target).unwrap().map(|millis| millis * 1e3);
    let case =
        format!("{}: {target} {value} [{low}, {high}], planted {planted_us}", compared.label);
    // A little more room than 95 %: there are dozens of them.
    assert!((low - 2.0..=high + 2.0).contains(&planted_us), "{case}");
    assert!((value - planted_us).abs() < 5.0 && high - low < 10.0, "{case}");
}

#[test]
fn what_a_gateway_adds_to_each_tier_comes_out_and_is_said() {
    let report = run(Suite::Tiers, &[("gateway", 300)], &[], false).unwrap();
    let tiers: Vec<_> =
        report.comparisons.iter().filter(|found| found.reference() == "direct").collect();
    assert_eq!(tiers.len(), 6);
    let text = report.text(160);
    for tier in tiers {
        assert_added(tier, "gateway", 300.0);
        let said = format!("{}: response time of gateway: +", tier.label);
        assert!(text.contains(&said), "{said} is not in\n{text}");
    }
    assert!(text.contains("Overhead by tier: each target against the upstream"), "{text}");
}

#[test]
fn a_feature_that_costs_is_named_and_one_that_does_not_is_not() {
    for (suite, label, slow, said) in [
        (Suite::Tiers, "each feature", "key-auth", "response time of key-auth: +"),
        (Suite::Layers, "each layer", "request-log", "response time of request-log: +"),
        (Suite::Baseline, "keys and limits, GET /health/live", "keys", "response time of keys: +"),
    ] {
        let report = run(suite, &[(slow, 50)], &[], false).unwrap();
        let compared = report.comparisons.iter().find(|found| found.label == label).unwrap();
        for target in compared.compared() {
            assert_added(compared, target, if target == slow { 50.0 } else { 0.0 });
        }
        let findings: Vec<_> =
            report.findings.iter().filter(|finding| finding.text.starts_with(label)).collect();
        let claims: Vec<_> =
            findings.iter().filter(|finding| finding.text.contains("] against ")).collect();
        assert!(!claims.is_empty() && claims.iter().all(|c| c.text.contains(said)), "{claims:?}");
        // Variants are not compared with each other.
        let versus = compared.versus.as_ref().unwrap();
        assert!(versus.claims.iter().all(|claim| claim.reference == versus.reference()));
    }
}

#[test]
fn a_cache_miss_is_compared_with_its_provider_and_judged_by_its_interval() {
    for (delay, status) in [(2_000, "met"), (30_000, "missed"), (20_000, "inconclusive")] {
        let report = run(Suite::Layers, &[("gateway", delay)], &[], false).unwrap();
        let compared = report.comparisons.iter().find(|found| found.label == "cache miss").unwrap();
        assert_added(compared, "gateway", delay as f64);
        let bound = report.bounds.iter().find(|bound| bound.what.contains("cache miss")).unwrap();
        assert_eq!(bound.status(), status, "{bound:?}");
    }
}

/// The cost of each kind of a mixed day is judged by its own pairs, which are sent alongside the
/// pairs of the others. Approvals have no direct way, and therefore no overhead.
#[test]
fn what_a_gateway_adds_to_each_kind_of_a_mixed_day_comes_out() {
    let report = run(Suite::Agents, &[("gateway", 300)], &[], false).unwrap();
    let text = report.text(200);
    let labels: Vec<_> = report.comparisons.iter().map(|found| &*found.label).collect();
    assert_eq!(labels[..3], ["chats, memory", "tools, memory", "agents, memory"]);
    for compared in &report.comparisons[..3] {
        assert_added(compared, "gateway", 300.0);
        let said = format!("{}: response time of gateway: +", compared.label);
        assert!(text.contains(&said), "{said} is not in\n{text}");
        let versus = compared.versus.as_ref().unwrap();
        assert_eq!(versus.blocks.recorded, 400, "its own blocks alone");
        assert!(versus.cpu.is_empty());
    }
    let day = report.sections.iter().find(|found| found.title.starts_with("A mixed day, memory"));
    let rows = &day.unwrap().table.rows;
    let planned: Vec<_> = rows.iter().map(|row| (&*row[0], &*row[1])).collect();
    let expected = [("chats", "160"), ("tools", "120"), ("agents", "80.0"), ("approvals", "40.0")];
    assert_eq!(planned, expected);
    for (row, added) in rows.iter().zip([true, true, true, false]) {
        assert_eq!(row[2], "250", "a quarter of the planned thousand: {row:?}");
        assert_eq!(row[6] != "-", added, "{row:?}");
        assert_eq!(row[9], "-", "the planned host has no log: {row:?}");
    }
    // A log that could not be read leads to no conclusion.
    let counts = report.bounds.iter().filter(|bound| bound.what.contains("mock alone"));
    let status: Vec<_> = counts.map(BoundResult::status).collect();
    assert_eq!(status[..3], ["inconclusive"; 3]);
}

#[test]
fn a_target_of_a_mixed_day_is_compared_with_what_is_behind_it() {
    let report = run(Suite::Agents, &[("target", 200)], &["one"], true).unwrap();
    let labels: Vec<_> = report.comparisons.iter().map(|found| &*found.label).collect();
    assert_eq!(labels, ["chats", "tools", "agents"]);
    for compared in &report.comparisons {
        assert_added(compared, "target", 200.0);
    }
    // The times of the upstream are not the gateway's.
    let of_time = report.bounds.iter().filter(|bound| bound.what.contains("p99"));
    assert_eq!(of_time.count(), 0);
    assert_eq!(report.outcome(Accepted::default()), SuiteOutcome::Pass, "{}", report.text(200));
}

#[test]
fn several_targets_have_a_row_each_against_the_same_direct_one() {
    let delays = [("fast", 100), ("slower", 400)];
    let report = run(Suite::Tiers, &delays, &["fast", "slower"], true).unwrap();
    let text = report.text(200);
    assert_eq!(report.comparisons.len(), 6);
    for compared in &report.comparisons {
        assert_eq!(compared.reference(), "direct");
        assert_added(compared, "fast", 100.0);
        assert_added(compared, "slower", 400.0);
        let said = format!("{}: response time of slower: +", compared.label);
        let of_fast = |line: &str| line.contains(&said) && line.contains("] against fast.");
        assert!(text.lines().any(of_fast), "{text}");
    }
    let added = report.sections.iter().find(|found| found.title.starts_with("Overhead by tier"));
    let rows: Vec<_> = added.unwrap().table.rows.iter().map(|row| &row[..2]).collect();
    assert_eq!((rows.len(), &*rows[0][1], &*rows[1][1]), (12, "fast", "slower"));
    // Each target has its own sweep, under its own name.
    let labels: Vec<_> = report.measurements.iter().map(|result| &*result.label).collect();
    for part in ["fast: 128/128, closed loop", "slower: 12.5k/64 SSE, closed loop"] {
        assert!(labels.iter().any(|label| label.starts_with(part)), "{part}: {labels:?}");
    }
}

#[test]
fn without_what_is_behind_them_targets_are_compared_with_the_first_and_one_with_nothing() {
    let report = run(Suite::Tiers, &[("slower", 300)], &["fast", "slower"], false).unwrap();
    assert_eq!(report.comparisons[0].reference(), "fast");
    assert_added(&report.comparisons[0], "slower", 300.0);
    assert!(report.text(200).contains("Overhead by tier: each target against fast"));

    let report = run(Suite::Tiers, &[], &["one"], false).unwrap();
    assert_eq!(report.comparisons, []);
    assert!(report.text(200).contains("give --direct URL"), "{}", report.text(200));
    assert_eq!(report.outcome(Accepted::default()), SuiteOutcome::Complete);
}

/// The planned gateway has a capacity of 500/s: 99 % of the requests are in time up to 500 / 0.99 =
/// 505/s, five times the limit of the sweep, which the closed loop sets at 100/s. Only the search
/// may report it.
#[test]
fn the_knee_of_a_tier_is_searched_beyond_the_closed_loop() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = PlannedHost::with(good);
    // Only the search shows a limit.
    host.gateway_cpu = Some(0.2);
    // The planned host's thousand requests in ten seconds are the rate of the last step.
    let (short, duration) = (false, Some(Nanos::from_secs(10)));
    let targets = options(folder.path(), &["x", "y"], true);
    let options = SuiteOptions { short, duration, ..targets };
    let report = Suite::Tiers.run_on(&mut host, &options, &Control::new(), &mut |_| {}).unwrap();
    assert_eq!(report.knees.len(), 12);
    for found in &report.knees {
        let (low, high) = (found.knee.low.unwrap(), found.knee.high.unwrap());
        assert!(low <= 505.1 && high >= 505.0 && high / low < 1.7, "{found:?}");
        let stored = std::fs::read(folder.path().join(&found.file)).unwrap();
        let stored = KneeReport::read_json(&stored).unwrap();
        assert!(stored.knees.iter().any(|knee| knee.knee == found.knee), "{}", found.file);
    }
    // The two gateways take turns.
    let (a, b) = (&host.searched[0], &host.searched[1]);
    assert_ne!(a, b);
    let of = |url: &String| host.searched[..20].iter().filter(|other| *other == url).count();
    assert_eq!((of(a), of(b)), (10, 10), "{:?}", host.searched);
    let overview = report.sections.iter().find(|found| found.title.starts_with("Raw path"));
    let cells: Vec<_> = overview.unwrap().table.rows.iter().map(|row| row[2].clone()).collect();
    assert_eq!(cells[0], report.knees[0].knee.text(plimsoll_report::format::digits));
    // No step of the sweep came near it, and the sizes use the rate that is certainly within
    // capacity.
    let rates = report.measurements.iter().filter_map(|result| result.rate);
    assert!(rates.clone().count() >= 60 && rates.fold(0.0, f64::max) < 260.0);
    let sizing = report.sizing.as_ref().unwrap();
    let low = plimsoll_report::format::digits(report.knees[0].knee.low.unwrap());
    assert_eq!(sizing.table.rows[0][1], low, "{:?}", sizing.table.rows);
    let text = report.text(200);
    assert!(sizing.table.rows[0][2] == "knee" && text.contains("at most 150s"), "{text}");
}

#[test]
fn a_short_suite_says_nothing_of_knees() {
    let report = run(Suite::Tiers, &[], &[], false).unwrap();
    assert_eq!(report.knees, []);
    let text = report.text(200);
    assert!(
        text.contains("capacity: see --knee-budget") && !text.contains("capacity between"),
        "{text}"
    );
    assert_eq!(report.sizing, None);
}

/// The mock host answers in about 440 us, so that 100 us more are 18.5 % of the whole call.
#[test]
fn the_share_of_a_call_is_what_the_gateway_adds() {
    let report = run(Suite::Baseline, &[("gateway", 100)], &["one"], true).unwrap();
    let compared = report.comparisons.last().unwrap();
    assert_added(compared, "gateway", 100.0);
    let text = report.text(200);
    let share = report.sections.iter().find(|found| found.title.contains("share of an LLM call"));
    assert!(share.unwrap().table.rows[0][2].starts_with("18."), "{text}");
    let alone = run(Suite::Baseline, &[], &["one"], false).unwrap();
    let why = "share of an LLM call: not measured, because it needs the upstream";
    assert!(alone.text(200).contains(why) && alone.comparisons.is_empty());
}

/// For a gateway that was just started, all first runs come before all second ones. Any other
/// gateway has no cold run, and the report does not mention one.
#[test]
fn a_target_that_was_just_started_has_cold_runs() {
    let folder = tempfile::tempdir().unwrap();
    let own = SuiteOptions { just_started: true, ..options(folder.path(), &["one"], false) };
    let mut host = PlannedHost::with(good);
    let report = Suite::Policy.run_on(&mut host, &own, &Control::new(), &mut |_| {}).unwrap();
    let labels: Vec<_> =
        report.measurements.iter().take(6).map(|result| result.label.as_str()).collect();
    let expected = [
        "light, 20/s, first run (cold)",
        "hourly, 50/s, first run (cold)",
        "capacity, 100/s, first run (cold)",
        "light, 20/s, second run (warm)",
        "hourly, 50/s, second run (warm)",
        "capacity, 100/s, second run (warm)",
    ];
    assert_eq!(labels, expected);
    let text = report.text(200);
    // Equal times cold and warm: the planned host has no cold start.
    let pairs = report.sections.iter().find(|found| found.title.starts_with("Cold and warm"));
    assert_eq!(pairs.unwrap().table.rows[0][3], "1.0x", "{text}");
    let running = run(Suite::Policy, &[], &["one"], false).unwrap().text(200);
    assert!(running.contains("skip_llm=true, as it is"), "{running}");
    assert!(
        running.contains("cold runs: not measured, because the suite cannot restart"),
        "{running}"
    );
    for (suite, targets, part) in [
        (Suite::Quick, &["one"][..], "`suite quick` does not support --just-started"),
        (Suite::Policy, &[], "--just-started needs a --target"),
    ] {
        let wrong = SuiteOptions { just_started: true, ..options(folder.path(), targets, false) };
        let mut host = PlannedHost::with(good);
        let error = suite.run_on(&mut host, &wrong, &Control::new(), &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert!(host.loaded.is_empty());
    }
}

/// The ladder has five steps, and the last falls to zero.
#[test]
fn every_measurement_of_policy_lasts_as_long_as_the_user_wants() {
    let folder = tempfile::tempdir().unwrap();
    for short in [true, false] {
        let duration = Some(Nanos::from_secs(7));
        let own = SuiteOptions { short, duration, ..options(folder.path(), &["one"], false) };
        let mut host = PlannedHost::with(good);
        let report = Suite::Policy.run_on(&mut host, &own, &Control::new(), &mut |_| {}).unwrap();
        let ladder = "ladder @10:7s,@50:7s,@100:7s,@200:7s,@100..0:7s";
        assert!(report.measurements.iter().any(|result| result.label.starts_with(ladder)));
        // Five steps, and at least a profile, a load without a limit, and one with the model.
        assert!(host.stages_s.len() > 7, "{:?}", host.stages_s);
        assert_eq!(host.stages_s, vec![7.0; host.stages_s.len()]);
    }
}

#[test]
fn agents_has_no_flag_that_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let own = || options(folder.path(), &[], false);
    for (wrong, part) in [
        (SuiteOptions { clients: Some(10), ..own() }, "does not support --concurrency"),
        (SuiteOptions { size_for: Some(1e5), ..own() }, "does not support --size-for"),
    ] {
        let mut host = PlannedHost::with(good);
        let run = Suite::Agents.run_on(&mut host, &wrong, &Control::new(), &mut |_| {});
        assert!(run.unwrap_err().to_string().contains(part));
        assert!(host.loaded.is_empty());
    }
}

#[test]
fn two_topologies_have_a_row_each_at_every_rate() {
    let report = run(Suite::Policy, &[], &["in-vpc", "saas"], false).unwrap();
    let headline = report.sections.iter().find(|section| section.title.starts_with("By rate"));
    let rows = &headline.unwrap().table.rows;
    let mode = "skip_llm=true, as it is";
    for (name, first) in [("in-vpc", 0), ("saas", 3)] {
        for (rate, row) in [20, 50, 100].iter().zip(&rows[first..]) {
            let key = format!("{name}, HTTP/1.1, no TLS, {rate}/s, {mode}");
            assert!(row[0].ends_with(&key), "{row:?}: {key}");
        }
        let own = format!("{name}, HTTP/1.1, no TLS, 100/s, {mode}");
        let title = format!("Confusion matrix: {own}");
        assert!(report.sections.iter().any(|section| section.title == title), "{title}");
        let judged = report.bounds.iter().filter(|bound| bound.what.starts_with(&own));
        assert!(judged.clone().any(|bound| bound.what.ends_with("correctness")), "{own}");
        assert!(judged.clone().any(|bound| bound.what.ends_with("block_rate")), "{own}");
    }
    let mut labels: Vec<_> = report.measurements.iter().map(|result| &result.label).collect();
    let all = labels.len();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), all, "labels are unique");
    assert!(report.load_test.contains("environment=\"in-vpc, HTTP/1.1, no TLS\""));
}

/// The full stack and the cache misses of the user's gateway, as of the suite's own.
#[test]
fn a_target_is_measured_beside_its_upstream_where_that_may_be_loaded() {
    let report = run(Suite::Layers, &[("gateway", 300)], &["one"], true).unwrap();
    let text = report.text(200);
    for label in ["full stack", "cache miss"] {
        let compared = report.comparisons.iter().find(|found| found.label == label);
        assert_added(compared.unwrap_or_else(|| panic!("{label}:\n{text}")), "gateway", 300.0);
    }
    let stack = report.sections.iter().find(|section| section.title.starts_with("Full stack"));
    let rows = stack.unwrap().table.rows.iter();
    let rows: Vec<_> = rows.map(|row| [&*row[0], row.last().unwrap()]).collect();
    // The planned host answers every request of a stage, through the gateway or not.
    let expected = [
        ["gateway -> upstream (200)", "100%"],
        ["gateway -> upstream (500)", "100%"],
        ["upstream direct, no gateway (200)", "100%"],
    ];
    assert_eq!(rows, expected);
    let alone = run(Suite::Layers, &[], &["one"], false).unwrap().text(200);
    for what in ["Full stack (gateway -> upstream -> response)", "LLM gateway, cache misses"] {
        let why = format!("{what}: not measured, because it needs the upstream: give --direct URL");
        assert!(alone.contains(&why), "{alone}");
    }
}

#[test]
fn suites_about_one_target_refuse_more_before_any_load() {
    for suite in [Suite::Baseline, Suite::Layers, Suite::Policy, Suite::Quick] {
        if suite != Suite::Policy {
            let several = run(suite, &[], &["fast", "slower"], false).unwrap_err().to_string();
            assert!(several.contains("measures one target, not 2"), "{several}");
        }
        if matches!(suite, Suite::Policy | Suite::Quick) {
            let direct = run(suite, &[], &["one"], true).unwrap_err().to_string();
            assert!(direct.contains("does not support --direct"), "{direct}");
        }
    }
    let several = run(Suite::Agents, &[], &["fast", "slower"], true).unwrap_err().to_string();
    assert!(several.contains("measures one target, not 2"), "{several}");
    for (targets, direct, part) in [
        (&["fast", ""][..], false, "several targets need names"),
        (&["fast", "fast"], false, "two targets have the name `fast`"),
        (&["fast", "direct"], true, "two targets have the name `direct`"),
        (&["fast", "a b"], false, "`a b` cannot be the name"),
        (&[], true, "--direct needs a --target"),
    ] {
        let error = run(Suite::Tiers, &[], targets, direct).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
