//! JSON and CSV.

use plimsoll_report::csv;
use plimsoll_run_files::{RunFileError, read_summary, summary_json};

use crate::support::{golden, health, metadata, summary};

#[test]
fn a_summary_reads_back_from_its_json() {
    let summary = summary(metadata(), health());
    let text = summary_json(&summary).unwrap();
    assert_eq!(read_summary(text.as_bytes()).unwrap(), summary);
    assert!(text.contains("\"response_time_ms\": {"));
}

#[test]
fn the_json_of_another_layout_is_refused_by_name() {
    let other = br#"{"schema":"plimsoll.summary/9"}"#;
    assert!(matches!(read_summary(other), Err(RunFileError::Layout { .. })));
    assert!(matches!(read_summary(b"{}"), Err(RunFileError::Read(_))));
}

#[test]
fn csv_has_one_row_per_cell_and_as_many_fields_as_columns() {
    let summary = summary(metadata(), health());
    let text = csv(&summary).unwrap();
    golden("report.csv", &text);
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let head = reader.headers().unwrap().clone();
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), summary.results.cells.len());
    assert_eq!(
        (field(&head, &rows, 0, "stage").as_str(), field(&head, &rows, 0, "warmup").as_str()),
        ("w4:1s", "true")
    );
    assert_eq!(field(&head, &rows, 0, "completed"), "50");
    assert_eq!(field(&head, &rows, 0, "service_time_max_ms"), "60");
    assert_eq!(
        (
            field(&head, &rows, 0, "service_time_p50_ms"),
            field(&head, &rows, 0, "service_time_p99_ms").as_str()
        ),
        ("60".to_owned(), "")
    );
    assert_eq!(field(&head, &rows, 3, "statuses"), "200:750 429:20 503:7");
    assert_eq!(field(&head, &rows, 3, "error_server_error"), "7");
}

fn field(head: &csv::StringRecord, rows: &[csv::StringRecord], row: usize, name: &str) -> String {
    rows[row][head.iter().position(|column| column == name).unwrap()].to_owned()
}

/// Names of targets may come from somebody else's folder.
#[test]
fn a_name_is_no_formula_and_controls_nothing() {
    let mut summary = summary(metadata(), health());
    for (cell, name) in summary.results.cells.iter_mut().zip(["=1+1", "@x", "-a\u{1b}[2Jb", "+c"]) {
        cell.target = Some(name.to_owned());
    }
    let table = csv(&summary).unwrap();
    let mut reader = ::csv::Reader::from_reader(table.as_bytes());
    let names: Vec<String> =
        reader.records().take(4).map(|row| row.unwrap().get(3).unwrap().to_owned()).collect();
    let expected = ["'=1+1", "'@x", "'-a\\u{1b}[2Jb", "'+c"];
    assert_eq!(names, expected[..names.len()], "{table}");
}
