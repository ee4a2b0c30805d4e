//! From grids to tables of figures: which way a table runs, and what its cells are.

mod by_columns;
mod by_rows;
mod conditions;

use crate::document::{Document, Grid, Line, MOST_ROWS, Tool};
use crate::heading::{self, Meaning, Quantity};
use crate::number::{self, Bound, Locale, Number};
use crate::record::{Table, Value};
use crate::unit::{Dimension, Unit};
use crate::vocabulary::Vocabulary;

/// A file as figures and sentences.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) tables: Vec<Table>,
    pub(crate) lines: Vec<Line>,
    pub(crate) not_read: Vec<(usize, String)>,
    /// Headings that the user explains.
    pub(crate) mapped: Vec<String>,
}

impl Reading {
    /// The sentences that the author claims.
    pub(crate) fn claims(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| !line.code)
    }

    /// Whether any line has one of these words, in lower case.
    pub(crate) fn mentions(&self, words: &[&str]) -> bool {
        self.lines.iter().any(|line| {
            let text = line.text.to_lowercase();
            words.iter().any(|word| text.contains(word))
        })
    }

    /// Whether the file is the output of a tool, or speaks of it.
    pub(crate) fn is_of(&self, tool: Tool) -> bool {
        self.tables.iter().any(|table| table.tool == Some(tool))
            || self.mentions(&[&format!("{} ", tool.name().to_lowercase())])
    }
}

pub(crate) fn read(document: Document, vocabulary: &Vocabulary) -> Reading {
    let mut reading = Reading { not_read: document.not_read, ..Reading::default() };
    let mut grids = document.grids;
    for grid in &mut grids {
        if grid.rows.len() > MOST_ROWS {
            grid.rows.truncate(MOST_ROWS);
            reading.not_read.push((grid.line, format!("the rows after the first {MOST_ROWS}")));
        }
        clean(grid);
        reading.mapped.extend(vocabulary.apply(grid));
        let mut table = table(grid, vocabulary);
        conditions::apply(&mut table, grid, &document.lines);
        if table.records.is_empty() && table.bands.is_empty() && table.changes.is_empty() {
            let what = format!("table `{}`", number::short(&grid.header.join(" | ")));
            reading.not_read.push((grid.line, what));
        } else {
            reading.tables.push(table);
        }
    }
    reading.lines = document.lines;
    reading.mapped.sort();
    reading.mapped.dedup();
    reading
}

/// Removes emphasis, which cells of HTML and CSV do not have.
fn clean(grid: &mut Grid) {
    let cells = grid.rows.iter_mut().flat_map(|(_, row)| row).chain(&mut grid.header);
    for cell in cells {
        let text = cell.trim_matches(|c: char| matches!(c, '*' | '`') || c.is_whitespace());
        if text.len() != cell.len() {
            *cell = text.to_owned();
        }
    }
}

/// Reads the table the way that gives more figures: quantities as columns, or as rows.
fn table(grid: &Grid, vocabulary: &Vocabulary) -> Table {
    let body = grid.rows.iter().flat_map(|(_, row)| row.iter().map(String::as_str));
    let terms = Terms { locale: number::locale_of(body), vocabulary };
    let columns = by_columns::known(grid, terms);
    let rows = by_rows::known(grid, terms);
    let table =
        if rows > columns { by_rows::table(grid, terms) } else { by_columns::table(grid, terms) };
    Table { line: grid.line, section: grid.section, tool: grid.tool, ..table }
}

/// How the cells and headings of a table are read.
#[derive(Clone, Copy)]
struct Terms<'v> {
    locale: Locale,
    vocabulary: &'v Vocabulary,
}

impl Terms<'_> {
    /// What the user says of a heading; else its meaning, unless it is that of a change, a limit or
    /// a status.
    fn meaning(&self, heading: &str) -> Option<Meaning> {
        let known = self.vocabulary.meaning(heading).cloned();
        known.or_else(|| if is_status(heading) { None } else { heading::meaning(heading) })
    }
}

/// Where a cell is, and how it is called.
struct Place {
    line: usize,
    cell: String,
}

/// The figure of a cell below or beside a heading; `None` if they do not fit together.
fn value(meaning: &Meaning, number: &Number, place: Place) -> Option<Value> {
    let Place { line, cell } = place;
    let quantity = quantity_of(meaning, number)?;
    let unit = number.unit.or_else(|| {
        meaning.unit.filter(|unit: &Unit| Some(unit.dimension) == quantity.dimension())
    });
    let scale = unit.map_or(1.0, |unit| unit.scale);
    let mut number = number.scaled(scale);
    if matches!(number.rest.chars().next(), Some('?' | '!')) {
        number.bound = Bound::About;
    }
    let is_count = quantity.dimension().is_none();
    let always = matches!(quantity, Quantity::Clients | Quantity::Threads);
    if is_count && (number.whole || always) {
        number = number.exact();
    }
    if quantity == Quantity::DataRate {
        // MB are 10^6 bytes for some, 2^20 for others.
        let wider = if scale >= 1e9 { 1.073_742 } else { 1.048_577 };
        (number.low, number.high) = (number.low / wider, number.high * wider);
    }
    let per_second = matches!(quantity, Quantity::Rate | Quantity::OfferedRate);
    let has_unit = unit.is_some() || is_count || per_second;
    let sure = meaning.sure || unit.is_some();
    let (line, cell) = (line, number::short(&cell));
    Some(Value { quantity, of: meaning.of.clone(), number, has_unit, sure, line, cell })
}

/// A cell's unit may say more than its heading: `errors` in per cent are a share.
fn quantity_of(meaning: &Meaning, number: &Number) -> Option<Quantity> {
    let quantity = meaning.quantity;
    let Some(unit) = number.unit else { return Some(quantity) };
    match (quantity, unit.dimension) {
        (Quantity::Errors, Dimension::Share) => Some(Quantity::ErrorShare),
        (Quantity::Successes, Dimension::Share) => Some(Quantity::SuccessShare),
        (Quantity::Rate, Dimension::DataRate) => Some(Quantity::DataRate),
        (Quantity::Requests, Dimension::Rate) => Some(Quantity::Rate),
        (_, dimension) => (quantity.dimension() == Some(dimension)).then_some(quantity),
    }
}

/// How a heading was understood, for the report.
fn understood(heading: &str, meaning: &Meaning) -> String {
    let name = meaning.quantity.name();
    let of = if meaning.of.is_empty() { String::new() } else { format!(" of {}", meaning.of) };
    let doubt = if meaning.sure { "" } else { " (likely)" };
    format!("{} = {name}{of}{doubt}", number::short(heading))
}

/// A percentage or a factor, as a change is printed.
fn change_number(cell: &str, locale: Locale) -> Option<Number> {
    let number = Number::parse(cell, locale)?;
    let unit = number.unit?;
    let fits = matches!(unit.dimension, Dimension::Share | Dimension::Factor);
    (fits && number.is_plain()).then_some(number)
}

/// Headings of limits.
fn is_limit(heading: &str) -> bool {
    const WORDS: [&str; 8] =
        ["target", "goal", "slo", "threshold", "limit", "budget", "objective", "requirement"];
    let heading = heading.to_lowercase();
    heading.split(|c: char| !c.is_alphanumeric()).any(|word| WORDS.contains(&word))
}

fn is_status(heading: &str) -> bool {
    matches!(
        heading.to_lowercase().trim(),
        "status" | "verdict" | "pass" | "pass/fail" | "outcome" | "met"
    )
}
