//! Reads published benchmark tables, and names what cannot be true.
//!
//! Each printed number stands for all values that its digits allow; a rule speaks only when none of
//! them fits. Where another reading of a heading could explain a figure, nothing is said, or
//! "cannot tell".
//!
//! ```text
//! bytes -> source (Markdown, HTML, CSV, text, outputs of tools) -> Document: lines and grids
//!       -> reading: which way a table runs, what its headings mean -> tables of figures
//!       -> rules (figures against figures), words (sentences against figures) -> findings
//! ```

mod claim;
mod document;
pub mod error;
pub mod finding;
mod heading;
mod number;
mod reading;
mod record;
mod rules;
mod source;
mod text;
mod unit;
mod vocabulary;
mod words;

use schemars::JsonSchema;
use serde::Serialize;

pub use error::{AuditError, LARGEST_FILE};
pub use finding::{Finding, Level};
pub use vocabulary::{Mapping, Vocabulary};

use document::Document;
use finding::Findings;
use reading::Reading;

/// The version of the JSON.
pub const SCHEMA: &str = "plimsoll.audit/1";

/// The findings of all files.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Audit {
    /// `plimsoll.audit/1`.
    pub schema: &'static str,
    /// One report per file, in the order of the command line.
    pub files: Vec<Report>,
}

/// What one file says, and what of it cannot be true.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// As it was given.
    pub file: String,
    /// `Markdown`, `HTML`, `CSV`, `text`, `summary.json` or `claim`.
    pub format: &'static str,
    /// How many figures were understood.
    pub figures: usize,
    /// The tables, lists and outputs that were understood.
    pub tables: Vec<TableRead>,
    /// Headings that the user explains and this file has, in small letters.
    pub mapped: Vec<String>,
    /// What was left out, and where.
    pub not_read: Vec<NotRead>,
    /// By level, then by line.
    pub findings: Vec<Finding>,
    /// Findings beyond the first 500.
    pub findings_left_out: usize,
}

/// How a table was understood.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TableRead {
    /// Its first line.
    pub line: usize,
    /// The tool whose output it is, if it is one.
    pub tool: Option<&'static str>,
    /// Rows or columns with figures about one measurement each.
    pub measurements: usize,
    /// `heading = meaning`.
    pub read: Vec<String>,
    /// Headings that are not understood.
    pub not_read: Vec<String>,
}

/// A part of the file that was not understood.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NotRead {
    /// Its first line.
    pub line: usize,
    /// What it is.
    pub what: String,
}

impl Report {
    /// Whether anything is impossible or contradicted; with `strict`, also what is undecided.
    pub fn has_findings(&self, strict: bool) -> bool {
        self.findings.iter().any(|finding| strict || finding.level != Level::CannotTell)
    }
}

/// Audits a file. The name's ending tells the format; without a known one its first characters do.
///
/// # Errors
///
/// What is no text, too large, or has no figure that is understood.
pub fn audit(name: &str, bytes: &[u8]) -> Result<Report, AuditError> {
    audit_with(name, bytes, &Vocabulary::default())
}

/// Audits a file some of whose headings the user explains.
///
/// # Errors
///
/// As [`audit`].
pub fn audit_with(name: &str, bytes: &[u8], vocabulary: &Vocabulary) -> Result<Report, AuditError> {
    let (format, document) = source::read(name, bytes)?;
    report(name, format.name(), document, vocabulary)
}

/// Audits one claim, like `conns=100 rps=21989 mean=4.59ms`.
///
/// # Errors
///
/// A claim without two pairs that are understood.
pub fn audit_claim(claim: &str) -> Result<Report, AuditError> {
    let document = claim::read(claim)?;
    let none = Vocabulary::default();
    report(claim, "claim", document, &none).map_err(|_| AuditError::Claim(claim.to_owned()))
}

fn report(
    name: &str,
    format: &'static str,
    document: Document,
    vocabulary: &Vocabulary,
) -> Result<Report, AuditError> {
    let reading = reading::read(document, vocabulary);
    let figures = figures(&reading);
    if figures == 0 {
        let parts: Vec<&str> =
            reading.not_read.iter().map(|(_, what)| what.as_str()).take(3).collect();
        let parts = if parts.is_empty() {
            String::new()
        } else {
            format!("; not understood: {}", parts.join(", "))
        };
        return Err(AuditError::NoFigures(parts));
    }
    let mut findings = Findings::default();
    rules::check(&reading, &mut findings);
    words::check(&reading, &mut findings);
    let (findings, findings_left_out) = findings.finish();
    let not_read =
        reading.not_read.iter().map(|(line, what)| NotRead { line: *line, what: what.clone() });
    let tables = reading.tables.iter().map(|table| TableRead {
        line: table.line,
        tool: table.tool.map(document::Tool::name),
        measurements: table.records.len(),
        read: table.read.clone(),
        not_read: table.not_read.clone(),
    });
    Ok(Report {
        file: name.to_owned(),
        format,
        figures,
        tables: tables.collect(),
        mapped: reading.mapped.clone(),
        not_read: not_read.collect(),
        findings,
        findings_left_out,
    })
}

fn figures(reading: &Reading) -> usize {
    reading
        .tables
        .iter()
        .map(|table: &record::Table| {
            let values: usize = table.records.iter().map(|record| record.values.len()).sum();
            values + table.bands.len() + table.changes.len()
        })
        .sum()
}
