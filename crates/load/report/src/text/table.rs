//! Aligned columns.

use super::Page;

/// Columns between which lie two spaces: the first left-aligned, the others right-aligned.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

/// The first column is never cut below this.
const NARROWEST: usize = 8;

impl Table {
    pub(super) fn new<'a>(head: impl IntoIterator<Item = &'a str>) -> Self {
        Self { rows: vec![head.into_iter().map(str::to_owned).collect()] }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Writes the table, indented by two. Where it does not fit the page, the first column is cut.
    pub(super) fn write(&self, page: &mut Page) {
        let mut widths = self.widths();
        let total: usize = widths.iter().map(|width| width + 2).sum();
        let excess = total.saturating_sub(page.style.width);
        if let Some(first) = widths.first_mut() {
            *first = first.saturating_sub(excess).max(NARROWEST.min(*first));
        }
        for row in &self.rows {
            page.line(&line(row, &widths));
        }
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell: &String| cell.chars().count()).max().unwrap_or_default()
        };
        (0..columns).map(width).collect()
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let aligned = row.iter().zip(widths).enumerate().map(|(column, (cell, &width))| match column {
        0 => format!("  {:<width$}", cut(cell, width)),
        _ => format!("  {cell:>width$}"),
    });
    aligned.collect()
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}
