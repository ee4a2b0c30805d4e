//! Outputs of real tools and of ours, and true pages: nothing is found in them.

use std::collections::BTreeMap;

use plimsoll_audit::Report;

use crate::support::{audit_file, audit_text, fixtures};

fn assert_clean(report: &Report) {
    assert!(report.findings.is_empty(), "{}", report.text(true));
    assert!(report.figures > 3, "{}", report.text(true));
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
    assert!(tools.values().sum::<usize>() >= 30, "{tools:?}");
}

#[test]
fn our_own_stored_reports_pass() {
    let report = concat!(env!("CARGO_MANIFEST_DIR"), "/../../load/report/tests");
    for name in
        ["golden/report.txt", "fixtures/run-0.1.0/report.txt", "fixtures/run-0.1.0/summary.json"]
    {
        let report = audit_file(&std::path::Path::new(report).join(name));
        assert!(!report.has_findings(false), "{}", report.text(true));
    }
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
