//! Parses CSV and Markdown's pipe tables.

/// A table whose columns have headings.
pub(crate) struct Table {
    /// Line of the headings, from 1.
    pub(crate) line: usize,
    pub(crate) headings: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

impl Table {
    /// Whether a cell has a decimal comma, so that `1,234` could mean 1.234.
    pub(crate) fn has_decimal_commas(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.cells).any(|cell| {
            let number = cell.split(' ').next().unwrap_or_default();
            let number = number.trim_end_matches(|c: char| !c.is_ascii_digit());
            number.split_once(',').is_some_and(|(whole, decimals)| {
                let digits =
                    |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
                digits(whole) && digits(decimals) && decimals.len() != 3
            })
        })
    }
}

/// One measurement, with as many cells as the table has headings.
pub(crate) struct Row {
    pub(crate) line: usize,
    pub(crate) cells: Vec<String>,
}

/// Parses every table of a file: CSV by its file extension, Markdown otherwise.
pub(crate) fn read(name: &str, text: &str) -> Vec<Table> {
    let ending = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    match ending.as_str() {
        "csv" => vec![csv(text, b',')],
        "tsv" => vec![csv(text, b'\t')],
        _ => markdown(text),
    }
}

fn csv(text: &str, delimiter: u8) -> Table {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let headings: Vec<_> =
        reader.headers().map(|row| row.iter().map(plain).collect()).unwrap_or_default();
    let records = reader.records().filter_map(Result::ok);
    let rows = records.map(|record| {
        let line = record.position().map_or(0, csv::Position::line);
        row(usize::try_from(line).unwrap_or(0), record.iter(), headings.len())
    });
    Table { line: 1, rows: rows.collect(), headings }
}

/// Parses tables: a line of cells, a line of dashes, and any following lines of cells.
fn markdown(text: &str) -> Vec<Table> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut tables = Vec::new();
    let mut at = 1;
    while at < lines.len() {
        let headings = cells(lines[at - 1]);
        if !is_rule(lines[at]) || headings.len() != cells(lines[at]).len() {
            at += 1;
            continue;
        }
        let body = lines[at + 1..].iter().take_while(|line| line.contains('|'));
        let rows: Vec<_> = body
            .enumerate()
            .map(|(index, line)| row(at + 2 + index, cells(line).into_iter(), headings.len()))
            .collect();
        let next = at + 1 + rows.len();
        tables.push(Table { line: at, headings: headings.into_iter().map(plain).collect(), rows });
        at = next + 1;
    }
    tables
}

fn is_rule(line: &str) -> bool {
    line.contains('-') && line.contains('|') && line.chars().all(|c| "|-: ".contains(c))
}

fn cells(line: &str) -> Vec<&str> {
    let line = line.strip_prefix('|').unwrap_or(line);
    line.strip_suffix('|').unwrap_or(line).split('|').map(str::trim).collect()
}

fn row<'a>(line: usize, cells: impl Iterator<Item = &'a str>, width: usize) -> Row {
    let mut cells: Vec<String> = cells.map(plain).collect();
    cells.resize(width, String::new());
    Row { line, cells }
}

/// Removes Markdown's emphasis and code marks.
fn plain(cell: &str) -> String {
    cell.replace(['*', '`'], "").trim().to_owned()
}
