//! A file as lines and grids of cells, whatever its format was.

/// A line of running text or code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// In the file, from 1.
    pub(crate) number: usize,
    pub(crate) text: String,
    /// Which heading it is below.
    pub(crate) section: usize,
    /// Program text, an example or a cell: no claim of the author.
    pub(crate) code: bool,
}

/// A table as it is printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) line: usize,
    /// The line behind its last row.
    pub(crate) end: usize,
    pub(crate) section: usize,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<(usize, Vec<String>)>,
    /// The tool whose output it is.
    pub(crate) tool: Option<Tool>,
    /// Its columns are unknown.
    pub(crate) broken: bool,
}

/// Tools whose output is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    Wrk,
    Hey,
    Oha,
    Ab,
    K6,
    Plimsoll,
}

impl Tool {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Wrk => "wrk",
            Self::Hey => "hey",
            Self::Oha => "oha",
            Self::Ab => "ab",
            Self::K6 => "k6",
            Self::Plimsoll => "Plimsoll",
        }
    }
}

/// The whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) lines: Vec<Line>,
    pub(crate) grids: Vec<Grid>,
    /// What was left out, and why.
    pub(crate) not_read: Vec<(usize, String)>,
    section: usize,
    /// Cells of all grids.
    cells: usize,
}

/// Tables of more rows are read up to here.
pub(crate) const MOST_ROWS: usize = 5000;

/// Lines that are kept of a file, and cells of all its tables: a page has fewer. They bound the
/// memory.
const MOST_LINES: usize = 100_000;
pub(crate) const MOST_CELLS: usize = 200_000;
/// What a table counts at least, so that there are at most 2,000.
const CELLS_OF_A_TABLE: usize = 100;

impl Document {
    pub(crate) fn heading(&mut self, number: usize, text: &str) {
        self.section += 1;
        self.line(number, text, true);
    }

    /// Adds a line; `code` marks what is no claim.
    pub(crate) fn line(&mut self, number: usize, text: &str, code: bool) {
        let text = text.trim();
        if !text.is_empty() && self.lines.len() == MOST_LINES {
            self.not_read_once(number, &format!("the lines after the first {MOST_LINES}"));
        } else if !text.is_empty() {
            let section = self.section;
            self.lines.push(Line { number, text: text.to_owned(), section, code });
        }
    }

    pub(crate) fn grid(&mut self, mut grid: Grid) {
        let end = grid.rows.last().map_or(grid.line, |(line, _)| *line) + 1;
        grid.rows.truncate(MOST_ROWS + 1);
        let cells: usize = grid.rows.iter().map(|(_, row)| row.len()).sum();
        let cells = cells.max(CELLS_OF_A_TABLE);
        if self.cells + cells > MOST_CELLS {
            self.not_read_once(grid.line, "the tables after so many");
        } else if !grid.rows.is_empty() && !grid.broken {
            self.cells += cells;
            self.grids.push(Grid { section: self.section, end, ..grid });
        }
    }

    /// At most 200 are kept.
    pub(crate) fn not_read(&mut self, line: usize, what: &str) {
        if self.not_read.len() < 200 {
            self.not_read.push((line, what.to_owned()));
        }
    }

    fn not_read_once(&mut self, line: usize, what: &str) {
        if !self.not_read.iter().any(|(_, known)| known == what) {
            self.not_read.push((line, what.to_owned()));
        }
    }

    /// A list of `label: value` pairs as a grid of two columns.
    pub(crate) fn pairs(&mut self, tool: Option<Tool>, pairs: Vec<(usize, String, String)>) {
        if pairs.len() < 2 {
            return;
        }
        let line = pairs.first().map_or(1, |pair| pair.0);
        let title = tool.map_or("", Tool::name).to_owned();
        let rows =
            pairs.into_iter().map(|(line, label, value)| (line, vec![label, value])).collect();
        self.grid(Grid { line, header: vec![String::new(), title], rows, tool, ..Grid::default() });
    }
}

/// The line of each byte offset.
#[derive(Debug)]
pub(crate) struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    pub(crate) fn new(text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { starts: breaks.map(|(at, _)| at + 1).collect() }
    }

    /// From 1.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_tables_beyond_the_limits_are_not_kept_and_said_once() {
        let mut document = Document::default();
        for number in 1..=MOST_LINES + 2 {
            document.line(number, "word", false);
        }
        let grid = Grid { rows: vec![(1, vec![String::new(); 2])], ..Grid::default() };
        for _ in 0..MOST_CELLS / CELLS_OF_A_TABLE + 2 {
            document.grid(grid.clone());
        }
        assert_eq!((document.lines.len(), document.grids.len()), (100_000, 2_000));
        let said: Vec<&str> = document.not_read.iter().map(|(_, what)| what.as_str()).collect();
        assert_eq!(said, ["the lines after the first 100000", "the tables after so many"]);
    }
}
