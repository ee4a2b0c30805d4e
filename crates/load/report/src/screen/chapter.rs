//! A chapter: what a file has below all that a screen may show.

use super::section::escaped;
use super::{INDENT, Line, indented};
use crate::escape::one_line;
use crate::format::wrap;
use crate::table::{Layout, Table};

/// Tables, lists and sentences below a heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chapter {
    heading: String,
    parts: Vec<ChapterPart>,
}

/// A part of a chapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChapterPart {
    /// A table.
    Table(Table),
    /// Names and their values.
    List(Vec<(String, String)>),
    /// A sentence, or a few.
    Text(String),
}

impl Chapter {
    /// A chapter without anything.
    pub fn new(heading: &str) -> Self {
        Self { heading: one_line(heading), parts: Vec::new() }
    }

    /// Adds a table; one without rows is left out.
    pub fn table(&mut self, table: &Table) {
        if !table.rows.is_empty() {
            self.parts.push(ChapterPart::Table(escaped(table)));
        }
    }

    /// Adds names with their values; what is not known is left out.
    pub fn list<N: AsRef<str>>(&mut self, items: impl IntoIterator<Item = (N, Option<String>)>) {
        let known = items.into_iter().filter_map(|(name, value): (N, Option<String>)| {
            Some((one_line(name.as_ref()), one_line(&value?)))
        });
        let known: Vec<_> = known.collect();
        if !known.is_empty() {
            self.parts.push(ChapterPart::List(known));
        }
    }

    /// Adds a sentence, if it is one.
    pub fn text(&mut self, sentence: &str) {
        if !sentence.is_empty() {
            self.parts.push(ChapterPart::Text(one_line(sentence)));
        }
    }

    /// Adds sentences, each by itself.
    pub fn texts(&mut self, sentences: impl IntoIterator<Item = impl AsRef<str>>) {
        sentences.into_iter().for_each(|sentence| self.text(sentence.as_ref()));
    }

    /// What it is about.
    pub fn heading(&self) -> &str {
        &self.heading
    }

    /// What it consists of.
    pub fn parts(&self) -> &[ChapterPart] {
        &self.parts
    }

    /// The lines. A table and a list begin after an empty one, a sentence does not.
    pub(super) fn lines(&self, width: usize) -> Vec<Line> {
        let mut lines: Vec<_> = wrap(&self.heading, width).into_iter().map(Line::bold).collect();
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 && !matches!(part, ChapterPart::Text(_)) {
                lines.push(Line::default());
            }
            match part {
                ChapterPart::Table(table) => {
                    let table = table.lines(&Layout::new(width)).into_iter();
                    lines.extend(table.map(Line::plain));
                }
                ChapterPart::List(items) => lines.extend(list(items, width)),
                ChapterPart::Text(text) => lines.extend(indented(text, width)),
            }
        }
        lines
    }
}

/// The values in one column.
fn list(items: &[(String, String)], width: usize) -> Vec<Line> {
    let names = items.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let indent = INDENT.len() + names + INDENT.len();
    let mut lines = Vec::new();
    for (name, value) in items {
        let wrapped = wrap(value, width.saturating_sub(indent)).into_iter().enumerate();
        lines.extend(wrapped.map(|(number, line)| {
            let name = if number == 0 { name.as_str() } else { "" };
            Line::plain(format!("{INDENT}{name:<names$}{INDENT}{line}"))
        }));
    }
    lines
}
