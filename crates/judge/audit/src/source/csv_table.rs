//! CSV, with commas, semicolons or tabs.

use csv::{ReaderBuilder, Trim};

use crate::document::{Document, Grid, MOST_CELLS, MOST_ROWS};

pub(super) fn read(text: &str) -> Document {
    let first = text.lines().next().unwrap_or_default();
    let delimiter = [b',', b';', b'\t']
        .into_iter()
        .max_by_key(|wanted| first.bytes().filter(|byte| byte == wanted).count())
        .unwrap_or(b',');
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .from_reader(text.as_bytes());
    let (mut rows, mut read) = (Vec::new(), 0);
    for record in reader.records().filter_map(Result::ok) {
        read += record.len();
        // The header, what is kept, and one more, by which it is seen that there are more.
        if rows.len() > MOST_ROWS + 1 || read > 2 * MOST_CELLS {
            break;
        }
        let line = record.position().map_or(1, csv::Position::line);
        let cells: Vec<String> = record.iter().map(str::to_owned).collect();
        rows.push((usize::try_from(line).unwrap_or(usize::MAX), cells));
    }
    let mut document = Document::default();
    if rows.len() > 1 {
        let (line, header) = rows.remove(0);
        document.grid(Grid { line, header, rows, ..Grid::default() });
    }
    document
}
