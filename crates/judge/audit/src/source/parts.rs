//! What plain text and Markdown have in common: outputs in code, and `label: value`.

use super::{aligned, tools};
use crate::document::Document;
use crate::number::{Locale, Number};

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
