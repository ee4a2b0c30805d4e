//! Tables with aligned columns, for people to read.
//!
//! One small type and no library: a page of ours is as wide as its reader wants, numbers are
//! right-aligned, and the one column of names gives way where a table does not fit. `comfy-table`
//! and `tabled` wrap or truncate every column alike.

use serde::{Deserialize, Serialize};

/// A table of texts: headings, and rows as long as them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Headings.
    pub head: Vec<String>,
    /// Rows.
    pub rows: Vec<Vec<String>>,
}

/// How a table is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Columns of the page.
    pub width: usize,
    /// Spaces before each row.
    pub indent: usize,
    /// The column of names. It is left-aligned, and cut where the table is wider than the page;
    /// all others hold numbers and are right-aligned.
    pub names: usize,
    /// The column of names is never cut below this width.
    pub narrowest: usize,
}

impl Layout {
    /// For a page of `width` columns: indented by two, names first, cut down to 8 characters.
    pub const fn new(width: usize) -> Self {
        Self { width, indent: 2, names: 0, narrowest: 8 }
    }
}

impl Table {
    /// A table without rows.
    pub fn new(head: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { head: texts(head), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(texts(cells));
    }

    /// The lines, the headings first, with two spaces between columns and none at the end.
    pub fn lines(&self, layout: &Layout) -> Vec<String> {
        let mut widths = self.widths();
        let total: usize =
            layout.indent + widths.iter().map(|width| width + GAP.len()).sum::<usize>();
        let excess = total.saturating_sub(GAP.len()).saturating_sub(layout.width);
        if let Some(names) = widths.get_mut(layout.names) {
            *names = names.saturating_sub(excess).max(layout.narrowest.min(*names));
        }
        self.all().map(|row| line(row, &widths, layout)).collect()
    }

    /// The lines as one text; each ends with a line feed.
    pub fn text(&self, layout: &Layout) -> String {
        self.lines(layout).into_iter().map(|line| line + "\n").collect()
    }

    fn all(&self) -> impl Iterator<Item = &Vec<String>> {
        std::iter::once(&self.head).chain(&self.rows)
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.all().map(Vec::len).max().unwrap_or_default();
        let width = |column| {
            let cells = self.all().filter_map(|row| row.get(column));
            cells.map(|cell: &String| cell.chars().count()).max().unwrap_or_default()
        };
        (0..columns).map(width).collect()
    }
}

/// Between two columns.
const GAP: &str = "  ";

fn texts(cells: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    cells.into_iter().map(Into::into).collect()
}

fn line(row: &[String], widths: &[usize], layout: &Layout) -> String {
    let aligned = row.iter().zip(widths).enumerate().map(|(column, (cell, &width))| {
        if column == layout.names {
            format!("{:<width$}", cut(cell, width))
        } else {
            format!("{cell:>width$}")
        }
    });
    let line = aligned.collect::<Vec<_>>().join(GAP);
    format!("{}{}", " ".repeat(layout.indent), line.trim_end())
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

    fn table() -> Table {
        let mut table = Table::new(["Endpoint", "RPS"]);
        table.row(["GET /health/live with much behind it", "68,010"]);
        table.row(["x", "1"]);
        table
    }

    #[test]
    fn names_are_left_aligned_and_numbers_right_aligned() {
        let mut table = table();
        table.rows[0][0] = "GET /health".to_owned();
        assert_eq!(
            table.text(&Layout::new(80)),
            "  Endpoint        RPS\n  GET /health  68,010\n  x                 1\n"
        );
        let last = Layout { indent: 0, names: 1, ..Layout::new(80) };
        assert_eq!(
            table.lines(&last),
            ["   Endpoint  RPS", "GET /health  68,010", "          x  1"]
        );
    }

    #[test]
    fn a_column_of_names_gives_way_but_not_below_its_narrowest() {
        let widest = table().lines(&Layout::new(80)).iter().map(|l| l.chars().count()).max();
        assert_eq!(widest, Some(2 + 36 + 2 + 6));
        for (width, first_row) in [
            (46, "  GET /health/live with much behind it  68,010"),
            (45, "  GET /health/live with much behind …  68,010"),
            (30, "  GET /health/live wi…  68,010"),
            (5, "  GET /he…  68,010"),
        ] {
            assert_eq!(table().lines(&Layout::new(width))[1], first_row, "{width}");
        }
        let wide = Layout { narrowest: 20, ..Layout::new(5) };
        assert_eq!(table().lines(&wide)[1], "  GET /health/live wi…  68,010");
    }

    #[test]
    fn a_row_may_be_short_and_a_table_empty() {
        let mut table = Table::new(["a", "b"]);
        assert_eq!(table.lines(&Layout::new(80)), ["  a  b"]);
        table.row(["only"]);
        assert_eq!(table.lines(&Layout::new(80)), ["  a     b", "  only"]);
        assert_eq!(Table::default().lines(&Layout::new(80)), [""; 1].map(|_| "  ".to_owned()));
    }
}
