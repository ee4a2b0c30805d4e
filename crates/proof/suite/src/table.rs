//! Aligned columns.

use serde::{Deserialize, Serialize};

/// A table of texts: the first column left-aligned, the others right-aligned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Headings.
    pub head: Vec<String>,
    /// Rows, as long as the head.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// As lines, indented by two. Where it does not fit the width, the first column is broken off.
    pub(crate) fn text(&self, width: usize) -> String {
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let columns = all().map(Vec::len).max().unwrap_or(0);
        let widest = |column: usize| {
            all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let mut widths: Vec<_> = (0..columns).map(|c| widest(c).unwrap_or(0)).collect();
        let total: usize = widths.iter().map(|width| width + 2).sum();
        if let Some(first) = widths.first_mut() {
            let least = first.saturating_sub(total.saturating_sub(width));
            *first = least.max(NARROWEST.min(*first));
        }
        all().map(|row| line(row, &widths)).collect()
    }
}

/// The first column is never cut below this.
const NARROWEST: usize = 20;

fn line(row: &[String], widths: &[usize]) -> String {
    let aligned = row.iter().zip(widths).enumerate().map(|(column, (cell, &width))| match column {
        0 => format!("  {:<width$}", cut(cell, width)),
        _ => format!("  {cell:>width$}"),
    });
    let line: String = aligned.collect();
    format!("{}\n", line.trim_end())
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_the_first_gives_way() {
        let mut table = Table::new(["Endpoint", "RPS"]);
        table.row(["GET /health/live with much behind it", "68,010"]);
        table.row(["x", "1"]);
        // Never below 20 columns, and never wider than it is.
        let head = format!("  Endpoint{}RPS\n", " ".repeat(12 + 2 + 3));
        let cut = "  GET /health/live wi…  68,010\n";
        let last = format!("  x{}1\n", " ".repeat(19 + 2 + 5));
        assert_eq!(table.text(30), format!("{head}{cut}{last}"));
        assert!(table.text(80).contains("with much behind it  68,010"));
    }
}
