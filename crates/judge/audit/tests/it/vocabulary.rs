//! Headings that the user explains.

use plimsoll_audit::{AuditError, Mapping, Report, Vocabulary, audit, audit_with};

use crate::support::of;

fn with(map: &[&str], text: &str) -> Report {
    let entries = map.iter().map(|entry| Mapping::parse(entry).unwrap()).collect();
    audit_with("page.md", text.as_bytes(), &Vocabulary::new(entries)).unwrap()
}

const COLUMNS: &str = "| Verbindungen | Durchsatz | Antwortzeit | Perzentil 99 |\n\
                       |---|---|---|---|\n| 100 | 21.989 | 9,18 | 5,10 |\n";
const GERMAN: [&str; 4] =
    ["verbindungen=conns", "DURCHSATZ=rps", "**Antwortzeit**=mean:ms", "Perzentil  99=p99:ms"];

#[test]
fn a_table_of_foreign_words_is_audited_once_they_are_explained() {
    let error = audit("page.md", COLUMNS.as_bytes()).unwrap_err();
    assert!(matches!(&error, AuditError::NoFigures(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("Antwortzeit") && text.contains("--map 'HEADING=MEANING'"), "{text}");
    let report = with(&GERMAN, COLUMNS);
    // By hand: 21,989/s x 9.18 ms = 201.9 in flight, of 100 connections.
    let little = of(&report, "little");
    assert_eq!(little.len(), 1, "{}", report.text(true));
    assert!(report.findings[0].because.contains("201."), "{:?}", report.findings[0]);
    assert_eq!(report.mapped, ["antwortzeit", "durchsatz", "perzentil 99", "verbindungen"]);
    assert!(report.text(true).contains("Antwortzeit = mean"), "{}", report.text(true));
    // The same figures with half the rate are true.
    assert!(with(&GERMAN, &COLUMNS.replace("21.989", "10.890")).findings.is_empty());
}

#[test]
fn rows_are_explained_like_columns_and_any_heading_can_be_left_out() {
    let rows = "| | Lauf |\n|---|---|\n| Mittlere | 9 ms |\n| Neunundneunzigstes | 5 ms |\n\
                | Median | 9 ms |\n";
    let report = with(&["Neunundneunzigstes=p99"], rows);
    assert_eq!(of(&report, "order").len(), 1, "{}", report.text(true));
    let report = with(&["Neunundneunzigstes=p99", "median="], rows);
    assert!(report.findings.is_empty(), "{}", report.text(true));
    // A heading is not what it seems: a p50 of something else, or a limit in req/s.
    let columns =
        "| name | p50 | p99 | cap |\n|---|---|---|---|\n| a | 9 ms | 5 ms | 961 req/s |\n";
    assert_eq!(of(&with(&[], columns), "order").len(), 1);
    let report = with(&["p50=", "cap="], columns);
    assert!(report.findings.is_empty() && report.figures == 1, "{}", report.text(true));
    let report = with(&["p50=max"], columns);
    assert!(report.findings.is_empty(), "{}", report.text(true));
}

#[test]
fn an_explanation_that_says_nothing_is_refused() {
    for text in ["", "heading", "=p99", "Zeit=Perzentil", "a=b"] {
        let error = Mapping::parse(text).unwrap_err().to_string();
        assert!(error.contains("write HEADING=MEANING"), "{text}: {error}");
    }
    assert_eq!(Mapping::parse(" Zeit (p=0.5) = p50:ms").unwrap().heading(), "zeit (p=0.5)");
}
