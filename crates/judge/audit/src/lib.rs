//! Checks published tables of benchmark figures against five laws.
//!
//! A file is one CSV table, or Markdown with pipe tables; each column has a heading, and each row
//! is one measurement. A cell represents all values that round to its digits, and a law is violated
//! only if none of them satisfies it. Prose is ignored.

mod column;
mod laws;
mod table;

use std::fmt::Write as _;

use column::Column;
pub use column::{AuditError, Mapping};
pub use laws::{Finding, Level};
use schemars::JsonSchema;
use serde::Serialize;
use table::Table;

/// Version of the JSON output.
pub const SCHEMA: &str = "plimsoll.audit/2";

/// Maximum size of a file, in bytes.
pub const LARGEST_FILE: usize = 8 << 20;

/// Words that reveal that clients may have several requests in flight on a connection.
const SHARED: [&str; 4] = ["http/2", "http2", "pipelin", "multiplex"];

/// The results for all files.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Audit {
    /// `plimsoll.audit/2`.
    pub schema: &'static str,
    /// One report per file, in the order of the command line.
    pub files: Vec<Report>,
}

/// The tables of one file, and the laws that they violate.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// Name of the file, as given.
    pub file: String,
    /// Every table of the file.
    pub tables: Vec<TableReport>,
    /// Findings in the order of the file.
    pub findings: Vec<Finding>,
}

/// How a table was interpreted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TableReport {
    /// Line of the headings.
    pub line: usize,
    /// Rows below the headings.
    pub rows: usize,
    /// Interpreted columns, as `heading = meaning`.
    pub read: Vec<String>,
    /// Headings without a known meaning.
    pub not_read: Vec<String>,
}

impl Report {
    /// Whether the file has a finding that should fail the check; with `strict`, any finding
    /// should.
    pub fn fails(&self, strict: bool) -> bool {
        self.findings.iter().any(|finding| strict || finding.level == Level::Impossible)
    }

    /// The report for a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.file);
        for table in &self.tables {
            let _ = writeln!(text, "  table at line {}, rows: {}", table.line, table.rows);
            line(&mut text, "read", &table.read);
            line(&mut text, "not read", &table.not_read);
        }
        for Finding { line, level, law, text: why } in &self.findings {
            let level = if *level == Level::Impossible { "impossible" } else { "unsupported" };
            let _ = writeln!(text, "  {level}, line {line}: {why} ({law})");
        }
        if self.findings.is_empty() {
            text.push_str("  no contradiction found\n");
        }
        text
    }
}

fn line(text: &mut String, label: &str, names: &[String]) {
    if !names.is_empty() {
        let _ = writeln!(text, "    {label}: {}", names.join(", "));
    }
}

/// Checks a file; `mappings` explain unknown headings.
///
/// # Errors
///
/// A file that is not text, too large, or without a table that has known columns.
pub fn audit(name: &str, bytes: &[u8], mappings: &[Mapping]) -> Result<Report, AuditError> {
    if bytes.len() > LARGEST_FILE {
        return Err(AuditError::TooLarge);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| AuditError::NotText)?;
    let one_at_a_time = !SHARED.iter().any(|word| text.to_lowercase().contains(word));
    let mut report = Report { file: name.to_owned(), tables: Vec::new(), findings: Vec::new() };
    for table in table::read(name, text.trim_start_matches('\u{feff}')) {
        let columns: Vec<_> = if table.has_decimal_commas() {
            table.headings.iter().map(|_| None).collect()
        } else {
            table.headings.iter().map(|name| Column::of(name, mappings)).collect()
        };
        report.tables.push(describe(&table, &columns));
        for row in &table.rows {
            laws::check(row, &columns, one_at_a_time, &mut report.findings);
        }
    }
    if report.tables.iter().all(|table| table.read.is_empty()) {
        let unread: Vec<_> = report.tables.iter().flat_map(|table| &table.not_read).collect();
        let unread: Vec<_> = unread.iter().take(10).map(|name| name.as_str()).collect();
        let names =
            if unread.is_empty() { String::new() } else { format!(": {}", unread.join(", ")) };
        return Err(AuditError::NoTable(names));
    }
    Ok(report)
}

fn describe(table: &Table, columns: &[Option<Column>]) -> TableReport {
    let mut report =
        TableReport { line: table.line, rows: table.rows.len(), read: vec![], not_read: vec![] };
    for (heading, column) in table.headings.iter().zip(columns) {
        match column {
            Some(column) => report.read.push(format!("{heading} = {column}")),
            None if heading.is_empty() => {}
            None => report.not_read.push(heading.clone()),
        }
    }
    report
}
