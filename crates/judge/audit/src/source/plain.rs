//! Plain text: outputs of tools, pipe tables, tables in columns, `label: value`, and sentences.

use super::{aligned, markdown, tools};
use crate::document::{Document, Tool};
use crate::number::{Locale, Number};

/// A whole file of plain text.
pub(super) fn read(text: &str) -> Document {
    let mut document = Document::default();
    if tools::read(text, 1, &mut document) {
        for (at, line) in text.lines().enumerate() {
            document.line(at + 1, line, true);
        }
        return document;
    }
    if markdown::is_likely(text) {
        return markdown::read(text);
    }
    let tables = aligned::read(text, 1, &mut document);
    let mut pairs = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        if tables.iter().any(|lines| lines.contains(&number)) {
            continue;
        }
        if line.trim().is_empty() {
            document.pairs(None, std::mem::take(&mut pairs));
        } else if let Some((label, value)) = pair(line) {
            pairs.push((number, label, value));
        }
        document.line(number, line, false);
    }
    document.pairs(None, pairs);
    // Our own report says how each of its tables was measured.
    if text.starts_with("plimsoll ") {
        for grid in &mut document.grids {
            grid.tool = Some(Tool::Plimsoll);
        }
    }
    document
}

/// A block of code in a page: its lines are no claims, and it may be the output of a tool.
pub(super) fn read_code(text: &str, first: usize, document: &mut Document) {
    if !tools::read(text, first, document) {
        aligned::read(text, first, document);
    }
    for (at, line) in text.lines().enumerate() {
        document.line(first + at, line, true);
    }
}

/// `Label: value` or `label = value` with a number as value.
pub(super) fn pair(line: &str) -> Option<(String, String)> {
    let line = line.trim().trim_start_matches(['-', '*', '\u{2022}']).trim_start();
    let (label, value) = line.split_once(':').or_else(|| line.split_once('='))?;
    let (label, value) = (label.trim().trim_matches('*'), value.trim().trim_matches('*').trim());
    let known =
        label.len() <= 40 && value.len() <= 60 && Number::parse(value, Locale::Point).is_some();
    known.then(|| (label.to_owned(), value.to_owned()))
}
