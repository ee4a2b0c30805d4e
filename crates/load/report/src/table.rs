//! Tables with aligned columns, for people to read.
//!
//! One small type and no library: a page of ours is as wide as its reader wants. The first column
//! contains names, all others contain figures and are right-aligned. If a table is too wide, long
//! names move to a line of their own, above their figures; then the columns that do not fit follow
//! in a second table below. Words are never broken. `comfy-table` and `tabled` wrap or truncate
//! every column alike.

use serde::{Deserialize, Serialize};

use crate::format::{DASH, cut, wrap};

/// A table of texts: headings, and rows as long as them. A row of nothing but a name is a title of
/// those below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Headings.
    pub head: Vec<String>,
    /// Rows.
    pub rows: Vec<Vec<String>>,
}

/// How a table is laid out. A column that is empty in every row is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Columns of the page.
    pub width: usize,
    /// Spaces before each row.
    pub indent: usize,
    /// The column of names is never narrower than this, or than its longest name.
    pub narrowest: usize,
    /// Whether a column without a figure is left out, too: every cell is empty or [`DASH`]. A
    /// report keeps it, so that equal runs have equal columns.
    pub drops_dashes: bool,
    /// Whether columns that do not fit are left out, instead of following below.
    pub drops_columns: bool,
    /// This number of columns at the end is left out if they do not fit.
    pub spare_columns: usize,
}

impl Layout {
    /// For a page of `width` columns: indented by two, and every column with a text is shown.
    pub const fn new(width: usize) -> Self {
        Self {
            width,
            indent: 2,
            narrowest: 8,
            drops_dashes: false,
            drops_columns: false,
            spare_columns: 0,
        }
    }

    /// Columns between the indentation and the end of the page.
    fn room(&self) -> usize {
        self.width.saturating_sub(self.indent)
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
        let figures = self.figures(layout);
        let (names, parts) = self.parts(&figures, layout);
        let mut lines = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let part = Part { columns: part, names, layout };
            if index == 0 || !part.columns.is_empty() {
                lines.extend(part.row(&self.head));
                let rows = self.rows.iter().filter(|row| index == 0 || part.concerns(row));
                lines.extend(rows.flat_map(|row| part.row(row)));
            }
            if layout.drops_columns {
                break;
            }
        }
        lines
    }

    /// The lines as one text; each ends with a line feed.
    pub fn text(&self, layout: &Layout) -> String {
        self.lines(layout).into_iter().map(|line| line + "\n").collect()
    }

    /// The same without the columns that have no figure.
    #[must_use]
    pub fn with_content(&self) -> Self {
        let columns: Vec<_> = std::iter::once(0).chain(self.filled(true)).collect();
        let kept = |row: &Vec<String>| {
            columns.iter().filter_map(|column| row.get(*column).cloned()).collect::<Vec<_>>()
        };
        Self { head: kept(&self.head), rows: self.rows.iter().map(kept).collect() }
    }

    /// The columns that have a text; with `drops_dashes` one that is not a dash.
    fn filled(&self, drops_dashes: bool) -> impl Iterator<Item = usize> {
        let count = self.all().map(Vec::len).max().unwrap_or_default();
        (1..count).filter(move |column| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(*column));
            self.rows.is_empty()
                || cells.any(|cell| !(cell.is_empty() || drops_dashes && *cell == DASH))
        })
    }

    /// The columns of figures that are shown, with their widths.
    fn figures(&self, layout: &Layout) -> Vec<(usize, usize)> {
        self.filled(layout.drops_dashes)
            .map(|column| {
                let cells = self.all().filter_map(|row| row.get(column));
                let width = cells.map(|cell| length(cell)).max().unwrap_or_default();
                (column, width.min(layout.room()))
            })
            .collect()
    }

    /// The width of the column of names, and the columns of figures of each table.
    fn parts(&self, figures: &[(usize, usize)], layout: &Layout) -> (usize, Vec<Columns>) {
        let with_figures = self.all().filter(|row| row.len() > 1);
        let natural = with_figures.filter_map(|row| row.first()).map(|name| length(name)).max();
        let natural = natural.unwrap_or_default();
        let whole: usize = figures.iter().map(|(_, width)| width + GAP.len()).sum();
        let left = layout.room().saturating_sub(whole);
        if natural.min(layout.narrowest) <= left {
            return (natural.min(left), vec![figures.to_vec()]);
        }
        if let Some(without) = self.without_spare(figures, layout) {
            let rest = Layout { spare_columns: 0, ..*layout };
            return self.parts(without, &rest);
        }
        let widest = figures.iter().map(|(_, width)| width + GAP.len()).max().unwrap_or_default();
        let names = natural.min(layout.room() / 2).min(layout.room().saturating_sub(widest));
        let mut parts: Vec<Columns> = Vec::new();
        let mut used = 0;
        for column in figures {
            let needed = column.1 + GAP.len();
            if let Some(part) = parts.last_mut().filter(|_| names + used + needed <= layout.room())
            {
                part.push(*column);
            } else {
                parts.push(vec![*column]);
                used = 0;
            }
            used += needed;
        }
        (names, parts)
    }

    /// The columns without those that may be left out, if any of these is there.
    fn without_spare<'f>(
        &self,
        figures: &'f [(usize, usize)],
        layout: &Layout,
    ) -> Option<&'f [(usize, usize)]> {
        let first = self.head.len().checked_sub(layout.spare_columns)?;
        let kept = figures.partition_point(|(column, _)| *column < first);
        (kept < figures.len()).then(|| &figures[..kept])
    }

    fn all(&self) -> impl Iterator<Item = &Vec<String>> {
        std::iter::once(&self.head).chain(&self.rows)
    }
}

/// Columns of figures and their widths.
type Columns = Vec<(usize, usize)>;

/// Between two columns.
const GAP: &str = "  ";

/// A table with some of the columns.
struct Part<'t> {
    columns: &'t Columns,
    names: usize,
    layout: &'t Layout,
}

impl Part<'_> {
    /// Whether a row is a title, or has a figure in these columns.
    fn concerns(&self, row: &[String]) -> bool {
        row.len() < 2
            || self
                .columns
                .iter()
                .any(|(column, _)| row.get(*column).is_some_and(|c| !c.is_empty()))
    }

    /// The lines of a row: one, and more for a name that is too long.
    fn row(&self, row: &[String]) -> Vec<String> {
        let indent = " ".repeat(self.layout.indent);
        let name = row.first().map_or("", String::as_str);
        let is_title = row.len() < 2;
        let mut lines = Vec::new();
        let mut name = name;
        if is_title || length(name) > self.names {
            lines = self.name_lines(name, &indent);
            name = "";
        }
        if !is_title {
            let mut line = format!("{indent}{name:<width$}", width = self.names);
            for (column, width) in self.columns {
                let cell = row.get(*column).map_or("", String::as_str);
                let padding = width.saturating_sub(length(cell));
                line.extend([GAP, &" ".repeat(padding), &cut(cell, *width)]);
            }
            lines.push(line.trim_end().to_owned());
        }
        lines
    }

    /// A name without figures beside it, which may take the whole page.
    fn name_lines(&self, name: &str, indent: &str) -> Vec<String> {
        let text = name.trim_start();
        let own = " ".repeat(length(name) - length(text));
        let room = self.layout.room().saturating_sub(own.len());
        let lines = wrap(text, room);
        lines.iter().map(|line| format!("{indent}{own}{}", cut(line, room))).collect()
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn texts(cells: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    cells.into_iter().map(Into::into).collect()
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
    fn names_are_left_aligned_and_figures_right_aligned() {
        let mut table = table();
        table.rows[0][0] = "GET /health".to_owned();
        assert_eq!(
            table.text(&Layout::new(80)),
            "  Endpoint        RPS\n  GET /health  68,010\n  x                 1\n"
        );
    }

    #[test]
    fn a_name_that_does_not_fit_stands_above_its_figures() {
        let name = "GET /health/live with much behind it";
        assert_eq!(table().lines(&Layout::new(46))[1], format!("  {name}  68,010"));
        let wrapped = ["  GET /health/live", "  with much behind", "  it"].map(str::to_owned);
        for (width, lines) in
            [(45, vec![format!("  {name}"), format!("{:39}68,010", "")]), (20, wrapped.to_vec())]
        {
            let found = table().lines(&Layout::new(width));
            assert_eq!(found[1..=lines.len()], lines, "{width}");
            assert!(found.iter().all(|line| line.chars().count() <= width), "{found:?}");
        }
    }

    #[test]
    fn columns_that_do_not_fit_follow_below_with_the_names() {
        let mut table = Table::new(["", "sent/s", "p50", "p99", "TTFT"]);
        table.row(["@100:10s", "100", "12.3ms", "24.0ms", ""]);
        table.row(["@200:10s", "200", "12.9ms", "31.0ms", "8.00ms"]);
        let narrow = Layout { indent: 0, ..Layout::new(25) };
        assert_eq!(
            table.lines(&narrow),
            [
                "          sent/s     p50",
                "@100:10s     100  12.3ms",
                "@200:10s     200  12.9ms",
                "             p99    TTFT",
                "@100:10s  24.0ms",
                "@200:10s  31.0ms  8.00ms",
            ]
        );
        let dropped = table.lines(&Layout { drops_columns: true, ..narrow });
        assert_eq!(dropped, table.lines(&narrow)[..3]);
        // The last column alone may be left out, and is where the others then fit.
        let spare = table.lines(&Layout { spare_columns: 1, width: 33, ..narrow });
        assert_eq!(spare[1], "@100:10s     100  12.3ms  24.0ms");
        assert_eq!(spare.len(), 3);
        let wide = Layout { spare_columns: 1, width: 60, ..narrow };
        assert_eq!(table.lines(&wide), table.lines(&Layout { width: 60, ..narrow }));
    }

    #[test]
    fn a_column_without_a_text_is_left_out_and_one_of_dashes_where_that_is_asked_for() {
        let mut table = Table::new(["a", "b", "c", "d"]);
        table.row(["x", "", "-", "1"]);
        table.row(["y", "", "-", "-"]);
        let bare = Layout { drops_dashes: true, indent: 0, ..Layout::new(80) };
        assert_eq!(table.lines(&bare), ["a  d", "x  1", "y  -"]);
    }

    #[test]
    fn a_title_does_not_make_the_column_of_names_wide() {
        let mut table = Table::new(["", "p50"]);
        table.row(["a title that is longer than every name"]);
        table.row(["  TTFT", "8.00ms"]);
        assert_eq!(
            table.lines(&Layout { indent: 0, ..Layout::new(80) }),
            ["           p50", "a title that is longer than every name", "  TTFT  8.00ms"]
        );
    }

    #[test]
    fn no_line_is_wider_than_the_page_and_no_word_is_lost() {
        let mut table = Table::new(["what", "one", "another", "a third one", "the last"]);
        table.row(["GET /v1/models, 128 clients", "12,345,678", "1.23ms", "99.95%", "-"]);
        table.row(["short", "1", "+1.4301ms [1.4288, 1.4314]", "", "x"]);
        let wide = table.text(&Layout::new(200));
        for width in 45..=200 {
            let text = table.text(&Layout::new(width));
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
            for word in wide.split_whitespace() {
                assert!(text.split_whitespace().any(|w| w == word), "{word} at {width}:\n{text}");
            }
        }
    }

    #[test]
    fn a_row_may_be_short_and_a_table_empty() {
        let mut table = Table::new(["a", "b"]);
        assert_eq!(table.lines(&Layout::new(80)), ["  a  b"]);
        table.row(["only"]);
        table.row(["both", "1"]);
        assert_eq!(table.lines(&Layout::new(80)), ["  a     b", "  only", "  both  1"]);
        assert_eq!(Table::default().lines(&Layout::new(80)), [""; 0]);
    }
}
