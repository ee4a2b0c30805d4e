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
    /// Its columns cannot be told.
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
}

impl Document {
    pub(crate) fn heading(&mut self, number: usize, text: &str) {
        self.section += 1;
        self.line(number, text, true);
    }

    /// Adds a line; `code` marks what is no claim.
    pub(crate) fn line(&mut self, number: usize, text: &str, code: bool) {
        let text = text.trim();
        if !text.is_empty() {
            let section = self.section;
            self.lines.push(Line { number, text: text.to_owned(), section, code });
        }
    }

    pub(crate) fn grid(&mut self, grid: Grid) {
        let end = grid.rows.last().map_or(grid.line, |(line, _)| *line) + 1;
        if !grid.rows.is_empty() && !grid.broken {
            self.grids.push(Grid { section: self.section, end, ..grid });
        }
    }

    /// At most 200 are kept.
    pub(crate) fn not_read(&mut self, line: usize, what: &str) {
        if self.not_read.len() < 200 {
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
