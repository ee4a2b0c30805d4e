//! Tables in columns of plain text, two spaces or more between cells, like our own report.

use std::ops::Range;

use crate::document::{Document, Grid};
use crate::number::{Locale, Number};

/// A cell and its columns of the terminal.
#[derive(Clone, Debug)]
struct Cell {
    columns: Range<usize>,
    text: String,
}

/// Adds the tables of a text; returns the lines that they take.
pub(super) fn read(text: &str, first: usize, document: &mut Document) -> Vec<Range<usize>> {
    let lines: Vec<Vec<Cell>> = text.lines().map(split).collect();
    let mut taken = Vec::new();
    let mut at = 0;
    while let Some(cells) = lines.get(at) {
        let end = if is_header(cells) { rows_end(&lines, at) } else { at + 1 };
        // Above the labels there may be a heading, or nothing.
        let (label, names) = headings(cells, lines.get(at + 1));
        let rows = body(&lines, at + 1..end, names, first);
        if rows.is_empty() {
            at += 1;
            continue;
        }
        let names = names.iter().map(|cell| cell.text.clone());
        let header = std::iter::once(label).chain(names).collect();
        document.grid(Grid { line: first + at, header, rows, ..Grid::default() });
        taken.push(first + at..first + end);
        at = end;
    }
    taken
}

/// The heading of the labels, and those of the figures.
fn headings<'row>(cells: &'row [Cell], row: Option<&Vec<Cell>>) -> (String, &'row [Cell]) {
    let below = row.and_then(|row| row.first());
    match cells.split_first().zip(below) {
        Some(((name, rest), label)) if label.columns.start == name.columns.start => {
            (name.text.clone(), rest)
        }
        _ => (String::new(), cells),
    }
}

fn split(line: &str) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    let (mut text, mut start, mut spaces, mut column) = (String::new(), 0, 2, 0);
    for c in line.chars().take(400).chain("  ".chars()) {
        if c == ' ' || c == '\t' {
            spaces += if c == '\t' { 2 } else { 1 };
            if spaces >= 2 && !text.is_empty() {
                let end = start + text.chars().count();
                cells.push(Cell { columns: start..end, text: std::mem::take(&mut text) });
            }
        } else {
            if text.is_empty() {
                start = column;
            } else if spaces == 1 {
                text.push(' ');
            }
            spaces = 0;
            text.push(c);
        }
        column += 1;
    }
    cells
}

/// Two names or more, and no number.
fn is_header(cells: &[Cell]) -> bool {
    cells.len() >= 2 && cells.iter().all(|cell| Number::parse(&cell.text, Locale::Point).is_none())
}

/// Rows follow until a blank line or the next header.
fn rows_end(lines: &[Vec<Cell>], header: usize) -> usize {
    let mut end = header + 1;
    while lines.get(end).is_some_and(|cells| !cells.is_empty() && !is_header(cells)) {
        end += 1;
    }
    end
}

/// Rows with their label first; a row whose cells do not lie below one header each is left out.
fn body(
    lines: &[Vec<Cell>],
    rows: Range<usize>,
    names: &[Cell],
    first: usize,
) -> Vec<(usize, Vec<String>)> {
    let left = names.first().map_or(0, |cell| cell.columns.start);
    let mut body = Vec::new();
    let mut group = String::new();
    for at in rows {
        let Some(cells) = lines.get(at) else { continue };
        if let [only] = cells.as_slice() {
            group.clone_from(&only.text);
            continue;
        }
        let Some(row) = place(cells, names, left, &group) else { continue };
        body.push((first + at, row));
    }
    body
}

fn place(cells: &[Cell], names: &[Cell], left: usize, group: &str) -> Option<Vec<String>> {
    let mut row = vec![String::new(); names.len() + 1];
    let (label, values) = cells.split_first()?;
    if label.columns.start >= left {
        return None;
    }
    let label =
        if group.is_empty() { label.text.clone() } else { format!("{group} / {}", label.text) };
    *row.first_mut()? = label;
    for cell in values {
        let (start, end) = (cell.columns.start, cell.columns.end);
        let mut columns = names
            .iter()
            .enumerate()
            .filter(|(_, name)| name.columns.end == end || name.columns.start == start);
        let (column, _) = columns.next()?;
        if columns.next().is_some() {
            return None;
        }
        row.get_mut(column + 1)?.clone_from(&cell.text);
    }
    Some(row)
}
