//! Every suite against gateways and hosts that would deceive a careless report: the suite must not
//! pass, and must not print a sentence that the data do not support.

use std::path::Path;

use plimsoll_engine::Control;
use plimsoll_measure::{ErrorClass, Nanos, Outcome};
use plimsoll_report::table::Layout;

use super::super::Suite;
use super::planned_host::{Answer, PlannedHost};
use crate::error::SuiteError;
use crate::options::SuiteOptions;
use crate::report::{Accepted, Report, SuiteOutcome};
use crate::target::SuiteTarget;

const SUITES: [Suite; 6] =
    [Suite::Agents, Suite::Baseline, Suite::Layers, Suite::Policy, Suite::Quick, Suite::Tiers];

/// Phrases that only good figures may use.
const POSITIVE: [&str; 10] = [
    "Good findings",
    "PASS:",
    "COMPLETE:",
    "no errors in",
    "is a hit",
    "for 1,000/s",
    " is slower than ",
    " is faster than ",
    " more CPU per request",
    "do not differ significantly",
];

fn options(folder: &Path, target: bool) -> SuiteOptions {
    let target = target.then(|| SuiteTarget {
        name: "target".to_owned(),
        base: "http://127.0.0.1:1/team".to_owned(),
        key: Some("secret".to_owned()),
        ..SuiteTarget::default()
    });
    SuiteOptions {
        exe: "plimsoll".into(),
        targets: Vec::from_iter(target),
        short: true,
        folder: folder.to_owned(),
        command: "plimsoll suite".to_owned(),
        started: "S".to_owned(),
        ..SuiteOptions::default()
    }
}

/// Without `passes`, as many as the suite's own: costs take three.
fn run_with(
    suite: Suite,
    host: &mut PlannedHost,
    target: bool,
    passes: Option<u32>,
) -> Result<Report, SuiteError> {
    let folder = tempfile::tempdir().unwrap();
    // A short suite searches no knee.
    let short = suite != Suite::Tiers;
    let options = SuiteOptions { short, passes, ..options(folder.path(), target) };
    suite.run_on(host, &options, &Control::new(), &mut |_| {})
}

fn run(suite: Suite, host: &mut PlannedHost, target: bool) -> Result<Report, SuiteError> {
    run_with(suite, host, target, Some(1))
}

/// A fast gateway that does everything right.
fn good(_: &str, _: bool) -> (Outcome, u16, Nanos) {
    (Outcome::Completed, 200, Nanos::from_micros(400))
}

fn all_429(_: &str, _: bool) -> (Outcome, u16, Nanos) {
    (Outcome::Rejected(429), 429, Nanos::from_micros(200))
}

fn all_404(_: &str, _: bool) -> (Outcome, u16, Nanos) {
    (Outcome::Rejected(404), 404, Nanos::from_micros(200))
}

fn all_503(_: &str, _: bool) -> (Outcome, u16, Nanos) {
    (Outcome::Failed(ErrorClass::ServerError), 503, Nanos::from_micros(200))
}

/// The single requests are answered; the load is refused.
fn only_load_429(path: &str, in_load: bool) -> (Outcome, u16, Nanos) {
    if in_load { all_429(path, in_load) } else { good(path, in_load) }
}

fn only_load_404(path: &str, in_load: bool) -> (Outcome, u16, Nanos) {
    if in_load { all_404(path, in_load) } else { good(path, in_load) }
}

/// Its `/health` calls every model.
fn costly_health(path: &str, in_load: bool) -> (Outcome, u16, Nanos) {
    let slow = (Outcome::Completed, 200, Nanos::from_millis(1_500));
    if path.ends_with("/health") { slow } else { good(path, in_load) }
}

fn assert_no_praise(report: &Report, case: &str) {
    let text = report.text(160);
    // References and the explanations of bounds use their own words.
    let own = text.split("Reference: ").next().unwrap();
    for sentence in POSITIVE {
        assert!(!own.contains(sentence), "{case}: `{sentence}` is in\n{text}");
    }
    assert!(report.sizing.is_none(), "{case}: sized\n{text}");
    for bound in &report.bounds {
        // Counts of the suite without the target say nothing about the target.
        let of_target = !bound.what.contains("store") && !bound.what.contains("memory");
        let kept = ["PASS", "met"].contains(&bound.status());
        assert!(!(of_target && kept), "{case}: {bound:?}\n{text}");
    }
}

fn assert_never_passes(report: &Report, case: &str) {
    for accepted in [Accepted::default(), Accepted { invalid: true, missing: false }] {
        let outcome = report.outcome(accepted);
        let passes = matches!(outcome, SuiteOutcome::Pass | SuiteOutcome::Complete);
        assert!(!passes, "{case}, {accepted:?}: {outcome:?}\n{}", report.text(160));
    }
}

/// Every row about a measurement that must not be used begins with a mark.
fn assert_marked(report: &Report, case: &str) {
    let unusable = report.measurements.iter().filter(|result| result.why_unusable().is_some());
    let labels: Vec<_> = unusable.map(|result| &*result.label).collect();
    for section in &report.sections {
        for row in &section.table.rows {
            let about = labels.iter().any(|label| row[0].contains(label));
            // Tables of single figures have the mark before the figure, where it is never cut off.
            let marked = row.iter().any(|cell| cell.starts_with('['));
            assert!(!about || marked, "{case}: {row:?} has no mark");
        }
    }
    // An interval, or the list of a setting.
    let is_other =
        |line: &str| line[1..].starts_with(|c: char| c.is_ascii_digit() || "-{".contains(c));
    let text = report.text(80);
    let marked = text.lines().map(str::trim_start).filter(|line| line.starts_with('['));
    for line in marked.filter(|line| !is_other(line)) {
        let marks = ["[INVALID] ", "[ERRORS] ", "[NOT RUN] ", "[>=] "];
        assert!(marks.iter().any(|mark| line.starts_with(mark)), "{case}: a cut mark in {line}");
    }
}

#[test]
fn a_target_that_answers_nothing_useful_never_passes() {
    let cases: [(&str, Answer); 5] = [
        ("all 429", all_429),
        ("all 404", all_404),
        ("all 503", all_503),
        ("429 under load", only_load_429),
        ("404 under load", only_load_404),
    ];
    for suite in SUITES {
        for (name, answer) in cases {
            let case = format!("{} against {name}", suite.name());
            let report = run(suite, &mut PlannedHost::with(answer), true).unwrap();
            assert_never_passes(&report, &case);
            assert_no_praise(&report, &case);
            assert_marked(&report, &case);
            let text = report.text(160);
            let status =
                name.split(' ').find(|word| word.len() == 3 && word.parse::<u16>().is_ok());
            let named = status.is_none_or(|status| text.contains(status));
            assert!(named, "{case}: the status is not named\n{text}");
        }
    }
}

#[test]
fn nothing_that_was_refused_when_tried_once_is_loaded() {
    for suite in SUITES {
        let mut host = PlannedHost::with(all_404);
        let report = run(suite, &mut host, true).unwrap();
        assert_eq!(host.loaded, [""; 0], "{}", suite.name());
        assert!(report.text(160).contains("nothing could be measured"), "{}", suite.name());
        assert!(report.text(160).contains("no such route: 404"));
    }
}

/// Checks the sections of each document for a target without any route, which has no figures there.
#[test]
fn every_section_says_why_the_target_has_no_figure_in_it() {
    let documents = [
        (Suite::Agents, &["A mixed day"][..]),
        (
            Suite::Baseline,
            &[
                "clients, as the target is set",
                "Keys and rate limits, each on",
                "Agent-loop endpoints",
                "The gateway's share of an LLM call",
            ],
        ),
        (
            Suite::Layers,
            &[
                "Functional checks",
                "The target as it is",
                "Overhead by layer",
                "Full stack",
                "cache hits",
                "cache misses",
                "concurrent SSE streams",
                "Layer 3",
                "Log writing",
                "The log writer's own limit",
                "Store operations",
            ],
        ),
        (Suite::Policy, &["By rate, topology and mode"]),
        (Suite::Quick, &["GET /metrics"]),
        (Suite::Tiers, &["Raw path, every tier", "Overhead by tier", "Overhead by feature"]),
    ];
    for (suite, titles) in documents {
        let report = run(suite, &mut PlannedHost::with(all_404), true).unwrap();
        for title in titles {
            let section = report.sections.iter().find(|section| section.title.contains(title));
            let section = section.unwrap_or_else(|| panic!("{title}:\n{}", report.text(160)));
            let mut said = section.table.rows.iter().flatten().chain(&section.notes);
            assert!(said.any(|text| text.contains(": not measured, because ")), "{section:?}");
            assert!(section.table.rows.iter().all(|row| row.len() == 1), "{section:?}");
        }
    }
}

#[test]
fn a_target_where_nothing_listens_is_an_error_before_any_load() {
    for suite in SUITES {
        let mut host = PlannedHost::with(good);
        host.unreachable = Some("nothing listens on that address".to_owned());
        let error = run(suite, &mut host, true).unwrap_err().to_string();
        assert!(error.contains("nothing listens on that address"), "{error}");
        assert_eq!(host.loaded, [""; 0]);
    }
}

#[test]
fn a_busy_host_never_passes_and_gives_no_sizes() {
    for suite in SUITES {
        for target in [false, true] {
            let mut host = PlannedHost::with(good);
            (host.late, host.steal) = (true, 0.3);
            let report = run(suite, &mut host, target).unwrap();
            let case = format!("{} on a busy host, target {target}", suite.name());
            let outcome = report.outcome(Accepted::default());
            assert_eq!(outcome, SuiteOutcome::Inconclusive, "{case}\n{}", report.text(160));
            assert_no_praise(&report, &case);
            assert_marked(&report, &case);
            assert!(report.text(160).contains("Plimsoll sent 30 of 100 requests"), "{case}");
        }
    }
}

/// The quick suite has two loads of one pass each.
#[test]
fn a_load_that_the_generator_spoiled_on_an_idle_host_is_carried_out_once_more() {
    let passes_of = |late_loads| {
        let mut host = PlannedHost { late_loads, ..PlannedHost::with(good) };
        let report = run(Suite::Quick, &mut host, false).unwrap();
        let passes: Vec<_> = report.measurements.iter().map(|one| one.passes.len()).collect();
        assert_eq!(host.loaded.len(), passes.iter().sum::<usize>());
        (passes, report.outcome(Accepted::default()), report.text(160))
    };
    let (passes, outcome, text) = passes_of(1);
    assert_eq!((passes, outcome), (vec![2, 1], SuiteOutcome::Complete), "{text}");
    assert!(text.contains("1 of 2 passes are left out"), "{text}");
    let (passes, outcome, text) = passes_of(100);
    assert_eq!((passes, outcome), (vec![2, 2], SuiteOutcome::Inconclusive), "{text}");
    assert_eq!(passes_of(0).0, [1, 1]);
}

/// The generator was in time, and other machines used three tenths of the CPU time, or other
/// programs three quarters: only bounds that they cannot have improved are kept.
#[test]
fn on_a_host_that_others_use_only_bounds_that_they_cannot_help_are_kept() {
    for suite in SUITES {
        for (target, steal, full) in [(false, 0.3, false), (true, 0.3, false), (true, 0.0, true)] {
            let mut host = PlannedHost::with(good);
            (host.steal, host.full) = (steal, full);
            let report = run(suite, &mut host, target).unwrap();
            let case =
                format!("{} on a host that others use, target {target}, {steal}", suite.name());
            let (outcome, text) = (report.outcome(Accepted::default()), report.text(160));
            let mut deciding = report.bounds.iter().filter(|bound| bound.decides).peekable();
            let is_kept = deciding.peek().is_some()
                && report.missing.is_empty()
                && deciding.all(|bound| bound.status() == "PASS");
            let expected = if is_kept { SuiteOutcome::Pass } else { SuiteOutcome::Inconclusive };
            assert_eq!(outcome, expected, "{case}\n{text}");
            assert!(text.contains("this host was busy during"), "{case}\n{text}");
            for sentence in ["COMPLETE:", "no errors in"] {
                assert!(!text.contains(sentence), "{case}: `{sentence}` is in\n{text}");
            }
            for bound in report.bounds.iter().filter(|bound| bound.measured != "-") {
                let differs = ["CPU per request", " add"].iter().any(|w| bound.what.contains(w));
                let counts = ["errors", "correctness"].iter().any(|w| bound.what.contains(w));
                let status = bound.status();
                assert!(!differs || status == "inconclusive", "{case}: {bound:?}");
                assert!(!counts || ["PASS", "met"].contains(&status), "{case}: {bound:?}");
            }
        }
    }
}

/// Beyond every band and bound of a p99.
fn slow(_: &str, _: bool) -> (Outcome, u16, Nanos) {
    (Outcome::Completed, 200, Nanos::from_millis(200))
}

/// Times on a host that others use are not the gateway's: they break no bound, either.
#[test]
fn a_host_that_others_use_fails_nothing() {
    for (steal, fails) in [(0.3, false), (0.0, true)] {
        let mut host = PlannedHost::with(slow);
        host.steal = steal;
        let report = run(Suite::Policy, &mut host, true).unwrap();
        let broken: Vec<_> =
            report.bounds.iter().filter(|bound| bound.status() == "FAIL").collect();
        assert_eq!(!broken.is_empty(), fails, "{steal}: {broken:?}");
    }
}

#[test]
fn a_gateway_of_ours_that_refuses_everything_never_passes() {
    for suite in SUITES {
        let report = run(suite, &mut PlannedHost::with(all_429), false).unwrap();
        let case = format!("{} of the reference gateway, all 429", suite.name());
        assert_never_passes(&report, &case);
        assert_no_praise(&report, &case);
        assert_marked(&report, &case);
    }
}

#[test]
fn without_a_cache_there_is_not_a_word_of_hits() {
    let report = run(Suite::Layers, &mut PlannedHost::with(good), true).unwrap();
    let text = report.text(200);
    // The planned host's address does not answer, so no header was read.
    let why =
        "cache hits: not measured, because the second equal request was not faster; headers unread";
    assert!(text.contains(why), "{text}");
    for sentence in
        ["is a hit", "Cache-hit", "layer 2, cache hit", "Layer overhead", " inf", "session get"]
    {
        let tables = report.sections.iter().map(|section| section.table.text(&Layout::new(300)));
        assert!(!tables.collect::<String>().contains(sentence), "`{sentence}` is in\n{text}");
    }
    assert_never_passes(&report, "no cache");
}

/// Sentences about what only the suite's own gateway is known to have, or about targets that are
/// not there.
#[test]
fn nothing_is_said_of_what_was_not_looked_at() {
    for suite in SUITES {
        let text = run(suite, &mut PlannedHost::with(good), true).unwrap().text(200);
        let own = text.split("Reference: ").next().unwrap();
        for sentence in [
            "no keys, no limits",
            "None calls a model",
            "budget check on every request",
            "on this host",
            "no header says hit",
            "one worker and core for each",
            "the machine named above",
        ] {
            assert!(!own.contains(sentence), "{}: `{sentence}` is in\n{own}", suite.name());
        }
    }
}

#[test]
fn a_target_that_answers_any_path_is_not_believed_to_have_routes() {
    let report = run(Suite::Quick, &mut PlannedHost::with(good), true).unwrap();
    let text = report.text(200);
    assert!(text.contains("answers 200 to a path that nothing serves"), "{text}");
    let report = run(Suite::Quick, &mut PlannedHost::with(all_404), true).unwrap();
    assert!(!report.text(200).contains("nothing serves"));
}

#[test]
fn a_costly_health_is_tried_and_left_out() {
    let mut host = PlannedHost::with(costly_health);
    let report = run(Suite::Baseline, &mut host, true).unwrap();
    assert!(!host.loaded.iter().any(|path| path.ends_with("/health")), "{:?}", host.loaded);
    assert!(host.loaded.iter().any(|path| path == "/team/metrics"), "{:?}", host.loaded);
    let text = report.text(200);
    assert!(
        text.contains("GET /health: not measured, because a single request took 1.50s: too costly"),
        "{text}"
    );
    assert_never_passes(&report, "costly health");
}

#[test]
fn open_files_limit_the_streams_before_they_are_opened() {
    let mut host = PlannedHost::with(good);
    host.files = 500;
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), false);
    let report = Suite::Layers.run_on(&mut host, &options, &Control::new(), &mut |_| {}).unwrap();
    let labels: Vec<_> = report.measurements.iter().map(|result| &*result.label).collect();
    assert!(labels.contains(&"300 SSE streams at once"), "{labels:?}");
    let text = report.text(300);
    let why = "1,000 concurrent streams: not measured, because open files of Plimsoll allow 300, which were measured";
    assert!(text.contains(why), "{text}");
    // 500 connections do not fit, and are not tried.
    let many = report.measurements.iter().find(|result| result.label.ends_with("(500)")).unwrap();
    assert!(many.error.as_ref().unwrap().contains("open-file limit"), "{many:?}");
}

/// One answer of twenty is read 40 ms late, and the generator knows it: medians are right, and from
/// the 95th percentile on times are the generator's.
#[test]
fn figures_that_are_the_generators_have_their_limit_and_nothing_follows_from_them() {
    for (suite, target) in
        SUITES.map(|suite| (suite, false)).into_iter().chain([(Suite::Quick, true)])
    {
        let mut host = PlannedHost::with(good);
        host.late_reads = Nanos::from_millis(40);
        let report = run(suite, &mut host, target).unwrap();
        let (text, case) = (report.text(160), format!("{}, target {target}", suite.name()));
        for result in &report.measurements {
            assert_eq!(result.why_unusable(), None, "{case}: {}", result.label);
        }
        let rows = report.sections.iter().flat_map(|section| &section.table.rows);
        let cells = rows.flatten().chain(report.bounds.iter().map(|bound| &bound.measured));
        let cells = cells.flat_map(|cell| cell.split(" .. "));
        let late: Vec<_> = cells.filter(|cell| cell.contains("40.4ms")).collect();
        assert!(!late.is_empty(), "{case}: the late answers are nowhere in\n{text}");
        assert!(
            late.iter().all(|cell| ["40.4ms (-99%)", "40.4ms not judged"].contains(cell)),
            "{case}: {late:?}\n{text}"
        );
        for bound in report.bounds.iter().filter(|bound| bound.what.contains("p99")) {
            // Redis and the gateway's store are not part of the planned host.
            let of_store = ["store", "memory"].iter().any(|part| bound.what.contains(part));
            // 40.4 ms are below 50 and 100 ms, whatever the generator did in 40 of them.
            let is_above = ["< 100ms", "< 50.0ms"].contains(&bound.bound.as_str());
            let expected: &[&str] = if is_above { &["PASS", "met"] } else { &["inconclusive"] };
            let is_expected = expected.contains(&bound.status());
            assert!(of_store || is_expected, "{case}: {bound:?}\n{text}");
        }
        let why = "(-N%): measurement error of a time";
        assert!(text.contains(why), "{case}:\n{text}");
    }
}

/// The users of a closed loop have no schedule: the times shown begin when their requests are sent.
#[test]
fn closed_loops_show_service_times() {
    for suite in [Suite::Baseline, Suite::Quick] {
        let mut host = PlannedHost::with(good);
        host.late_dispatches = Nanos::from_micros(900);
        let report = run(suite, &mut host, true).unwrap();
        // Wide enough to keep every row on one line.
        let text = report.text(400);
        // Runs are started at a rate: theirs are response times.
        let open = |line: &&str| line.contains("/v1/runs, 50/s");
        let own = text.split("Reference: ").next().unwrap();
        let own: String = own.lines().filter(|line| !open(line)).collect();
        assert!(own.contains("400us") && !own.contains("1.30ms"), "{}:\n{text}", suite.name());
        assert!(own.contains("service times"), "{text}");
    }
}

/// The same hosts without a fault. Without this check, the tests above could pass for the wrong
/// reason.
#[test]
fn a_good_gateway_on_a_quiet_host_is_sized_and_praised() {
    for suite in SUITES {
        let report = run_with(suite, &mut PlannedHost::with(good), false, None).unwrap();
        let text = report.text(160);
        // A day at fixed rates shows no capacity.
        assert_eq!(report.sizing.is_some(), suite != Suite::Agents, "{}\n{text}", suite.name());
        assert!(text.contains("\n  no errors in"), "{}\n{text}", suite.name());
        let unusable: Vec<_> =
            report.measurements.iter().filter(|r| r.why_unusable().is_some()).collect();
        assert!(unusable.is_empty(), "{}: {unusable:?}", suite.name());
    }
}

/// It has neither tools nor agents.
fn only_chats_and_approvals(path: &str, in_load: bool) -> (Outcome, u16, Nanos) {
    let absent = path.ends_with("/mcp") || path.ends_with("/a2a");
    if absent { all_404(path, in_load) } else { good(path, in_load) }
}

#[test]
fn kinds_of_a_mixed_day_that_a_target_does_not_have_are_left_out_and_named() {
    let report =
        run(Suite::Agents, &mut PlannedHost::with(only_chats_and_approvals), true).unwrap();
    let labels: Vec<_> = report.measurements.iter().map(|result| &*result.label).collect();
    assert_eq!(labels, ["mixed day: chats", "mixed day: approvals"]);
    let text = report.text(300);
    for kind in ["POST /mcp, a call of the tool `echo`", "POST /a2a, a message to the agent"] {
        let said = format!("{kind}: not measured, because no such route: 404");
        assert!(text.contains(&said), "{said} is not in\n{text}");
    }
    // The others keep their rates: 40 % and 10 % of 100/s.
    let rates: Vec<_> = report.measurements.iter().filter_map(|result| result.rate).collect();
    assert_eq!(rates, [40.0, 10.0]);
    assert!(
        text.contains("Overhead by kind: not measured, because it needs the upstream"),
        "{text}"
    );
    assert_never_passes(&report, "no tools and no agents");
}
