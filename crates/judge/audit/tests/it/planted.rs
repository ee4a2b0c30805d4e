//! One row per law that violates it; expected values are computed by hand.

use plimsoll_audit::{Level, Mapping, audit};

/// `(law, headings, cells, part of the text)`
const PLANTED: [(&str, &str, &str, &str); 14] = [
    ("percentile order", "p50 (ms)|p99 (ms)", "4.1|3.9", "p50 in ms 4.1 exceeds p99 in ms 3.9"),
    ("percentile order", "Mean|Max", "61 ms|0.05 s", "mean 61 ms exceeds max 0.05 s"),
    ("percentile order", "min|avg", "5ms|4ms", "min 5ms exceeds mean 4ms"),
    ("percentile order", "TTFT p50 (ms)|TTFT p95 (ms)", "80|50", "p50 of ttft"),
    ("percentile order", "median latency|p90 latency", "9 ms|7 ms", "exceeds p90 of latency"),
    // 1,000/s x 50 ms = 50 in flight.
    ("Little's law", "RPS|Connections|mean (ms)", "1,000|10|50", "more than clients 10"),
    // Half of the requests take 39.9 ms or more: 19.95 ms x 999/s = 19.9.
    ("Little's law", "req/s|clients|p50", "1000|10|40.0 ms", "at least 19.9 requests in flight"),
    (
        "Little's law",
        "Throughput (req/s)|vus|avg response time (s)",
        "50|4|0.25",
        "at least 11.8 requests",
    ),
    ("rate x duration = count", "rps|duration (s)|requests", "500|60|12000", "are 30000, not"),
    ("rate x duration = count", "rps|duration|requests", "500|1m|90k", "are 30000, not"),
    ("shares of a whole", "success rate|error rate", "99 %|4 %", "exceed 100 %"),
    ("shares of a whole", "success (%)", "104", "exceeds 100 %"),
    ("shares of a whole", "requests|errors", "100|120", "errors 120 exceed requests 100"),
    ("samples behind a percentile", "requests|p99 (ms)", "50|8", "it needs 100"),
];

fn table(headings: &str, cells: &str) -> String {
    let rule = vec!["---"; headings.split('|').count()].join("|");
    format!("# Results\n\nSome prose.\n\n|{headings}|\n|{rule}|\n|{cells}|\n")
}

#[test]
fn each_planted_contradiction_is_found_in_markdown_and_in_csv() {
    for (law, headings, cells, part) in PLANTED {
        let csv = |line: &str| {
            let cells: Vec<_> = line.split('|').map(|cell| format!("\"{cell}\"")).collect();
            cells.join(",")
        };
        let files = [
            ("page.md", table(headings, cells), 7),
            ("page.csv", format!("{}\n{}\n", csv(headings), csv(cells)), 2),
        ];
        for (name, text, line) in files {
            let report = audit(name, text.as_bytes(), &[]).unwrap();
            let found: Vec<_> =
                report.findings.iter().map(|found| (found.law, found.line)).collect();
            assert_eq!(found, [(law, line)], "{headings}: {}", report.text());
            assert!(report.findings[0].text.contains(part), "{part}: {}", report.text());
            let impossible = report.findings[0].level == Level::Impossible;
            assert_eq!(impossible, law != "samples behind a percentile");
            assert_eq!((report.fails(false), report.fails(true)), (impossible, true));
        }
    }
}

#[test]
fn every_table_of_a_file_is_read_and_named() {
    let text = format!(
        "{}\n{}\n{}",
        table("a|b", "1|2"),
        table("x|p50", "1|2 ms"),
        table("p50|p99", "2ms|1ms")
    );
    let report = audit("page.md", text.as_bytes(), &[]).unwrap();
    let tables: Vec<_> = report
        .tables
        .iter()
        .map(|table| (table.line, table.read.len(), table.not_read.len()))
        .collect();
    assert_eq!(tables, [(5, 0, 2), (13, 1, 1), (21, 2, 0)]);
    assert_eq!(report.findings[0].line, 23);
}

#[test]
fn a_mapping_explains_a_heading_or_leaves_it_out() {
    let text = table("Antwortzeit|Max", "61|50 ms");
    let mean = [Mapping::parse("Antwortzeit=mean:ms").unwrap()];
    assert_eq!(audit("a.md", text.as_bytes(), &mean).unwrap().findings.len(), 1);
    let none = [Mapping::parse("max=").unwrap()];
    assert!(audit("a.md", text.as_bytes(), &none).is_err());
    for wrong in ["Antwortzeit", "Antwortzeit=colour"] {
        assert!(Mapping::parse(wrong).unwrap_err().to_string().contains(wrong));
    }
}
