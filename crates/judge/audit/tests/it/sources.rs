//! One table in each format gives the same finding, with its place.

use plimsoll_audit::{AuditError, LARGEST_FILE, Level, audit, audit_claim};

use crate::support::{audit_text, of};

#[test]
fn one_contradiction_is_found_in_every_format() {
    for (name, text, line) in [
        ("a.md", "Text.\n| name | p50 | p99 |\n|:--|--:|--:|\n| a | **9 ms** | `5 ms` |\n", 4),
        ("a.txt", "name    p50    p99\na      9 ms   5 ms\n", 2),
        ("a.csv", "name,p50 (ms),p99 (ms)\na,9,5\n", 2),
        ("a.csv", "name;p50 (ms);p99 (ms)\na;9,25;5,25\n", 2),
        (
            "a.html",
            "<html><body><table>\n<tr><th>name<th>p50<th>p99\n<tr><td>a<td>9&nbsp;ms<td><b>5</b> ms\n</table>",
            3,
        ),
        ("a.md", "Result:\n- p50: 9 ms\n- p99: 5 ms\n", 2),
        (
            "a.md",
            "```\n  1 threads and 4 connections\nRunning 5s test @ http://x\n     50%    9.00ms\n     99%    5.00ms\n```\n",
            4,
        ),
        (
            "a",
            "http_req_duration..: avg=7ms min=1ms med=9.00ms max=20ms p(90)=8.00ms p(95)=9ms\n",
            1,
        ),
    ] {
        let report = audit_text(name, text);
        let found = of(&report, "order");
        assert_eq!(found.len(), 1, "{name}: {text}{}", report.text(true));
        assert_eq!((found[0].0, report.findings[0].line), (Level::Impossible, line), "{text}");
    }
}

#[test]
fn cells_that_span_are_not_read_and_said_so() {
    let text = "<table><tr><td colspan=2>a<td>p50<tr><td>1<td>2</table>\
                <table><tr><th>p50<th>p99<tr><td>1 ms<td>2 ms</table>";
    let report = audit_text("a.html", text);
    assert_eq!((report.tables.len(), report.findings.len()), (1, 0));
    assert!(report.not_read[0].what.contains("span"), "{:?}", report.not_read);
}

#[test]
fn unusable_files_are_refused_with_one_message() {
    for (name, bytes, part) in [
        ("a.html", &b"<html><p>no table</p></html>"[..], "no figures"),
        ("a.bin", &[0, 159, 146, 150], "not text"),
        ("a.txt", b"\0\0", "not text"),
        ("a.txt", b"", "no figures"),
        ("a.json", b"{\"a\": 1}", "no summary.json"),
        ("a.md", b"| flag | meaning |\n|---|---|\n| -a | all |\n", "table `flag | meaning`"),
    ] {
        let error = audit(name, bytes).unwrap_err();
        assert!(error.to_string().contains(part), "{name}: {error}");
    }
    assert_eq!(audit("a.md", &vec![b' '; LARGEST_FILE + 1]).unwrap_err(), AuditError::TooLarge);
}

#[test]
fn a_claim_is_audited_like_a_table() {
    let report = audit_claim("conns=100 rps=21989 mean=4.59ms").unwrap();
    assert!(report.findings.is_empty(), "{}", report.text(true));
    let report = audit_claim("conns=100 rps=21989 mean=9.18ms").unwrap();
    // 21,988 x 9.17 ms = 201.6
    assert_eq!(of(&report, "little").len(), 1, "{}", report.text(true));
    assert!(report.findings[0].because.contains("201.6"), "{:?}", report.findings);
    for claim in ["", "rps", "rps=5", "nonsense=4 rps=5", "rps=many p99=2ms"] {
        let error = audit_claim(claim).unwrap_err();
        assert!(error.to_string().contains("NAME=VALUE"), "{claim}: {error}");
    }
}

#[test]
fn what_is_too_much_for_a_page_is_left_out_and_said() {
    let text = format!("p50,p99\n{}", "1,2\n".repeat(6_000));
    let report = audit_text("a.csv", &text);
    assert_eq!(report.figures, 10_000);
    assert_eq!(report.not_read[0].what, "the rows after the first 5000");
}

#[test]
fn control_characters_of_a_page_reach_no_terminal() {
    let text =
        "| name\x1b[2J | p50 | p99 |\n|---|---|---|\n| \x1b[1;32mVALID\x07 | 9 ms | 5 ms |\n";
    for (name, text) in [("a.md", text.to_owned()), ("a.csv", text.replace(" | ", ","))] {
        let report = audit(name, text.as_bytes());
        let shown = report.map_or_else(|error| error.to_string(), |report| report.text(true));
        assert!(shown.contains("VALID") || name == "a.csv", "{shown}");
        assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
    }
}
