//! From the bytes of a file to a document.

mod aligned;
mod csv_table;
mod html;
mod markdown;
mod parts;
mod plain;
mod summary;
mod tools;

use std::borrow::Cow;

use crate::document::Document;
use crate::error::{AuditError, LARGEST_FILE};

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Markdown,
    Html,
    Csv,
    Text,
    Summary,
}

impl Format {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Markdown => "Markdown",
            Self::Html => "HTML",
            Self::Csv => "CSV",
            Self::Text => "text",
            Self::Summary => "summary.json",
        }
    }

    /// By the name's ending, else by the first characters.
    fn of(name: &str, text: &str) -> Self {
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        match ending.as_deref() {
            Some("md" | "markdown") => return Self::Markdown,
            Some("html" | "htm" | "xhtml") => return Self::Html,
            Some("csv" | "tsv") => return Self::Csv,
            Some("json") => return Self::Summary,
            _ => {}
        }
        let start = text.trim_start_matches('\u{feff}').trim_start();
        let head: String = start.chars().take(15).collect::<String>().to_ascii_lowercase();
        if head.starts_with("<!doctype html")
            || head.starts_with("<html")
            || head.starts_with("<table")
        {
            Self::Html
        } else if head.starts_with('{') {
            Self::Summary
        } else {
            Self::Text
        }
    }
}

fn is_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\r' | '\t')
}

/// Without control characters, which would reach a terminal: no heading and no figure has them.
fn plain(text: &str) -> Cow<'_, str> {
    if text.contains(is_control) {
        Cow::Owned(text.replace(is_control, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Reads a file.
pub(crate) fn read(name: &str, bytes: &[u8]) -> Result<(Format, Document), AuditError> {
    if bytes.len() > LARGEST_FILE {
        return Err(AuditError::TooLarge);
    }
    let text = str::from_utf8(bytes).map_err(|_| AuditError::Binary)?;
    if text.contains('\0') {
        return Err(AuditError::Binary);
    }
    let text = plain(text.trim_start_matches('\u{feff}'));
    let text = text.as_ref();
    let format = Format::of(name, text);
    let document = match format {
        Format::Markdown => markdown::read(text),
        Format::Html => html::read(text),
        Format::Csv => csv_table::read(text),
        Format::Text => plain::read(text),
        Format::Summary => summary::read(text)?,
    };
    Ok((format, document))
}
