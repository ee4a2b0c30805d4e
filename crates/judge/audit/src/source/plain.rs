//! Plain text: outputs of tools, pipe tables, tables in columns, `label: value`, and sentences.

use super::parts::pair;
use super::{aligned, markdown, tools};
use crate::document::{Document, Tool};

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
    if text.contains(OWN) {
        for grid in &mut document.grids {
            grid.tool = Some(Tool::Plimsoll);
        }
    }
    document
}

/// A heading that our own reports have, of any version.
const OWN: &str = "\nInstrument health\n";
