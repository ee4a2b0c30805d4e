//! Words against the numbers beside them, one kind of claim per file. A claim is contradicted only
//! if no figure of the document bears it out.

mod errors;
mod faster;
mod latency;
mod overhead;
mod scaling;
mod virtual_users;

use crate::document::Line;
use crate::finding::{Finding, Findings, Level};
use crate::heading::{Quantity, Stat};
use crate::number::short;
use crate::reading::Reading;
use crate::record::Value;

/// Checks all claims.
pub(crate) fn check(reading: &Reading, findings: &mut Findings) {
    for line in reading.claims() {
        let claim = Claim::new(line);
        latency::check(&claim, reading, findings);
        scaling::check(&claim, reading, findings);
        errors::check(&claim, reading, findings);
        faster::check(&claim, reading, findings);
        overhead::check(&claim, reading, findings);
    }
    overhead::cells(reading, findings);
    virtual_users::check(reading, findings);
}

/// A sentence.
struct Claim<'line> {
    line: &'line Line,
    /// In lower case.
    text: String,
}

impl<'line> Claim<'line> {
    fn new(line: &'line Line) -> Self {
        let text = line.text.to_lowercase().replace(['\u{2010}', '\u{2011}', '\u{2013}'], "-");
        Self { line, text }
    }

    fn has(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.text.contains(word))
    }

    /// Denied, planned, asked or general, rather than claimed.
    fn is_hedged(&self) -> bool {
        self.text.ends_with('?')
            || self.has(&[
                "not ",
                "n't",
                "never",
                "without being",
                "target:",
                "goal",
                "should",
                "could",
                "would",
                "expect",
                "aim",
                "if ",
                "when ",
                "must",
                "want",
            ])
    }

    fn finding(&self, rule: &'static str, because: String, fix: &str) -> Finding {
        Finding {
            level: Level::Contradicted,
            rule,
            line: self.line.number,
            cell: short(&self.line.text),
            says: format!("\"{}\"", short(&self.line.text)),
            because,
            fix: fix.to_owned(),
        }
    }
}

/// Means and medians of the whole document, with their unit.
fn typical_times(reading: &Reading) -> Vec<&Value> {
    let records = reading.tables.iter().flat_map(|table| &table.records);
    records
        .flat_map(|record| &record.values)
        .filter(|value: &&Value| {
            let stat =
                matches!(value.quantity, Quantity::Time(Stat::Mean | Stat::Percentile(50_000)));
            stat && value.has_unit && value.number.is_plain()
        })
        .collect()
}
