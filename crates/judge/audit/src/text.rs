//! The report for the terminal.

use std::fmt::Write as _;

use crate::finding::{Finding, Level};
use crate::{Report, TableRead};

/// Columns of the terminal.
const WIDTH: usize = 80;

impl Report {
    /// The findings as text; `understood` lists first what each heading was taken for.
    pub fn text(&self, understood: bool) -> String {
        let mut text = format!("{} ({}): {}\n", self.file, self.format, self.summary());
        for finding in &self.findings {
            text.push('\n');
            paragraphs(finding, &mut text);
        }
        if self.findings_left_out > 0 {
            let _ = writeln!(text, "\n{} more findings are left out.", self.findings_left_out);
        }
        if understood {
            text.push('\n');
            self.tables.iter().for_each(|table| understood_table(table, &mut text));
        }
        for part in self.not_read.iter().filter(|_| understood) {
            wrap(&format!("not read   line {}: {}", part.line, part.what), 11, &mut text);
        }
        text
    }

    /// How many findings there are of each level.
    fn summary(&self) -> String {
        let figures = self.figures;
        let tables = self.tables.len();
        let read = format!("{figures} figures in {tables} tables");
        let parts: Vec<String> = [Level::Impossible, Level::Contradicted, Level::CannotTell]
            .into_iter()
            .filter_map(|level| {
                let count = self.findings.iter().filter(|finding| finding.level == level).count();
                (count > 0).then(|| format!("{count} {}", level.word()))
            })
            .collect();
        if parts.is_empty() {
            format!("{read}, nothing contradicts itself")
        } else {
            format!("{read}, {}", parts.join(", "))
        }
    }
}

fn understood_table(table: &TableRead, text: &mut String) {
    let head =
        format!("line {}: {} rows; {}", table.line, table.measurements, table.read.join("; "));
    wrap(&format!("read       {head}"), 11, text);
    if !table.not_read.is_empty() {
        wrap(&format!("not read   {}", table.not_read.join("; ")), 11, text);
    }
}

fn paragraphs(finding: &Finding, text: &mut String) {
    let head = format!("{:<13} line {}: {}", finding.level.word(), finding.line, finding.says);
    wrap(&head, 14, text);
    if !finding.says.contains(&finding.cell) {
        wrap(&format!("{:14}in     {}", "", finding.cell), 21, text);
    }
    wrap(&format!("{:14}as     {} [{}]", "", finding.because, finding.rule), 21, text);
    wrap(&format!("{:14}needs  {}", "", finding.fix), 21, text);
}

/// Breaks a line between words; what follows is indented.
fn wrap(line: &str, indent: usize, text: &mut String) {
    let start = line.len() - line.trim_start().len();
    let mut column = start;
    text.push_str(line.get(..start).unwrap_or_default());
    let body = line.get(start..).unwrap_or_default();
    for (at, word) in body.split(' ').enumerate() {
        let length = word.chars().count();
        if at > 0 && column + 1 + length > WIDTH && column > indent {
            let _ = write!(text, "\n{:indent$}", "");
            column = indent;
        } else if at > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
}
