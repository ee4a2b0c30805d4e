//! Outputs of real tools and of ours, and true pages: nothing is found in them.

use std::collections::BTreeMap;

use plimsoll_audit::{AuditError, Finding, Level, Report, audit};

use crate::support::{audit_file, audit_text, fixtures, of};

/// Nobody is accused. That a short test has too few samples for a percentile is true, and said.
fn assert_clean(report: &Report) {
    let of_samples =
        |finding: &Finding| finding.level == Level::CannotTell && finding.rule == "samples";
    assert!(report.findings.iter().all(of_samples), "{}", report.text(true));
    assert!(report.figures > 3, "{}", report.text(true));
}

/// By hand: whether 10 samples lie beyond the highest percentile that the tool printed.
const FEW_SAMPLES: [(&str, bool); 6] = [
    // 2,829 samples, p99: 28.29.
    ("wrk-slow-64.txt", false),
    // 71 samples, p90 and p99: 7.1 and 0.71.
    ("wrk-slow-3.txt", true),
    // 400 samples, p99: 4.
    ("hey-q20.txt", true),
    // 200 samples, p99.99.
    ("oha-n200.txt", true),
    // 2,699 samples, p99: 26.99.
    ("ab-slow-64.txt", false),
    // 4,356 samples, p95: 217.8.
    ("k6-models-20.txt", false),
];

#[test]
fn percentiles_of_too_few_samples_are_named_in_real_outputs() {
    for (name, few) in FEW_SAMPLES {
        let report = audit_file(&fixtures().join("clean").join(name));
        assert_eq!(!of(&report, "samples").is_empty(), few, "{name}: {}", report.text(true));
    }
}

#[test]
fn outputs_of_wrk_hey_oha_ab_k6_and_ours_are_clean() {
    let mut tools: BTreeMap<String, usize> = BTreeMap::new();
    for file in std::fs::read_dir(fixtures().join("clean")).unwrap() {
        let path = file.unwrap().path();
        let report = audit_file(&path);
        assert_clean(&report);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let tool = name.split('-').next().unwrap().to_owned();
        let read = report.tables.iter().find_map(|table| table.tool);
        let known = read.map(str::to_lowercase);
        assert!(tool == "plimsoll" || known.as_deref() == Some(tool.as_str()), "{name}: {known:?}");
        *tools.entry(tool).or_default() += 1;
    }
    assert_eq!(tools.len(), 6, "{tools:?}");
    assert!(tools.values().all(|files| *files >= 6), "{tools:?}");
    assert!(tools.values().sum::<usize>() >= 30, "{tools:?}");
}

#[test]
fn our_own_stored_reports_pass() {
    let report = concat!(env!("CARGO_MANIFEST_DIR"), "/../../load/report/tests/golden/report.txt");
    let report = audit_file(std::path::Path::new(report));
    assert!(!report.has_findings(false), "{}", report.text(true));
}

/// Screens, texts and Markdown of every command, as the tests of their crates keep them. A screen
/// may be without a figure that is understood.
#[test]
fn the_stored_texts_of_every_command_pass() {
    let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let (mut read, mut all) = (0, 0);
    for folder in [
        "load/report/tests/golden",
        "load/report/tests/golden/screens",
        "judge/compare/tests/golden",
        "judge/compare/tests/golden/screens",
        "judge/knee/tests/golden",
        "proof/suite/tests/golden",
        "proof/calibrate/tests/golden",
        "show/live/tests/golden",
    ] {
        for file in std::fs::read_dir(std::path::Path::new(crates).join(folder)).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if !path.extension().is_some_and(|ending| ending == "txt" || ending == "md") {
                continue;
            }
            all += 1;
            match audit(&name, &std::fs::read(&path).unwrap()) {
                Ok(report) => {
                    assert!(!report.has_findings(false), "{folder}: {}", report.text(true));
                    read += 1;
                }
                Err(error) => assert!(matches!(error, AuditError::NoFigures(_)), "{name}: {error}"),
            }
        }
    }
    assert!(all > 60 && read > all / 3, "{read} of {all} have figures");
}

/// Each is true, and looks like something that is not.
#[test]
fn what_another_reading_explains_is_not_accused() {
    for text in [
        // HTTP/2: 10 connections carry many requests.
        "HTTP/2 streams\n\n| conns | RPS | mean |\n|---|---|---|\n| 10 | 50,000 | 20 ms |\n",
        // Units of columns differ.
        "| p50 (ms) | p99 (s) |\n|---|---|\n| 850 | 1.2 |\n",
        // A unit is stated once: the others may have another.
        "| p50 | p99 ms |\n|---|---|\n| 850 | 12 |\n",
        // Rounded to the same digit.
        "| p50 | mean | max |\n|---|---|---|\n| 1 ms | 2 ms | 1 ms |\n",
        // The change is against something else.
        "| Metric | Result | Change vs. last year |\n|---|---|---|\n| p99 | 12 ms | -40% |\n",
        "| Metric | Old | New | Change |\n|---|---|---|---|\n| p99 | 12 ms | 9 ms | -25% |\n| RPS | 100 | 150 | 1.5x |\n",
        // It says that it does not scale.
        "It does not scale well.\n\n| conns | RPS |\n|---|---|\n| 10 | 500 |\n| 100 | 510 |\n",
        // What is added is not what a request takes.
        "It adds sub-millisecond overhead.\n\n| RPS | mean |\n|---|---|\n| 500 | 5.1 ms |\n",
        // Two endpoints.
        "It scales well.\n\n| endpoint | conns | RPS |\n|---|---|---|\n| /a | 10 | 500 |\n| /b | 100 | 90 |\n",
        // Users who think.
        "Think time 1 s.\n\n| users | RPS | mean |\n|---|---|---|\n| 100 | 90 | 100 ms |\n",
        // The ratio of the sentence is that of one column.
        "Alpha is 2x faster than Beta.\n\n| name | RPS | p99 |\n|---|---|---|\n| Alpha | 200 | 9 ms |\n| Beta | 150 | 18 ms |\n",
        // A total below other rows that are not its parts, in time.
        "| stage | p99 |\n|---|---|\n| a | 10 ms |\n| b | 20 ms |\n| total | 18 ms |\n",
    ] {
        let report = audit_text("page.md", text);
        assert!(report.findings.is_empty(), "{text}\n{}", report.text(true));
    }
}
