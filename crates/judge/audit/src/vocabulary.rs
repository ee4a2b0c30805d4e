//! Headings that the user explains, because they are in another language or in words of their own.

use crate::document::Grid;
use crate::error::AuditError;
use crate::heading::{self, Meaning};

/// What one heading means.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// As the table has it, in small letters.
    heading: String,
    /// `None`: it is left out.
    meaning: Option<Meaning>,
}

impl Mapping {
    /// Parses `HEADING=MEANING`, like `Antwortzeit=mean:ms`. Any heading that is understood is a
    /// meaning; what follows the colon is the unit. Without a meaning the figures are left out.
    ///
    /// # Errors
    /// [`AuditError::Map`] if the meaning is not known.
    pub fn parse(text: &str) -> Result<Self, AuditError> {
        Self::read(text).ok_or_else(|| AuditError::Map(text.to_owned()))
    }

    fn read(text: &str) -> Option<Self> {
        let (heading, meaning) = text.rsplit_once('=')?;
        let heading = Some(folded(heading)).filter(|heading| !heading.is_empty())?;
        if meaning.trim().is_empty() {
            return Some(Self { heading, meaning: None });
        }
        let meaning = heading::meaning(meaning)?;
        // The user knows what the column is.
        Some(Self { heading, meaning: Some(Meaning { sure: true, ..meaning }) })
    }

    /// The heading, in small letters.
    pub fn heading(&self) -> &str {
        &self.heading
    }
}

/// All headings that the user explains.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    entries: Vec<Mapping>,
}

impl Vocabulary {
    /// Of these headings; of two for the same one the last counts.
    pub fn new(entries: Vec<Mapping>) -> Self {
        Self { entries }
    }

    /// What the user says of a heading.
    pub(crate) fn meaning(&self, heading: &str) -> Option<&Meaning> {
        self.entry(heading)?.meaning.as_ref()
    }

    fn entry(&self, heading: &str) -> Option<&Mapping> {
        if self.entries.is_empty() {
            return None;
        }
        let heading = folded(heading);
        self.entries.iter().rev().find(|entry| entry.heading == heading)
    }

    /// Empties the columns and removes the rows whose heading is without a meaning; returns all
    /// headings of the grid that are explained.
    pub(crate) fn apply(&self, grid: &mut Grid) -> Vec<String> {
        let mut found = Vec::new();
        if self.entries.is_empty() {
            return found;
        }
        for at in 0..grid.header.len() {
            let Some(entry) = grid.header.get(at).and_then(|heading| self.entry(heading)) else {
                continue;
            };
            found.push(entry.heading.clone());
            if entry.meaning.is_none() {
                let cells = grid.rows.iter_mut().map(|(_, row)| row).chain([&mut grid.header]);
                cells.filter_map(|row| row.get_mut(at)).for_each(String::clear);
            }
        }
        grid.rows.retain(|(_, row)| {
            let Some(entry) = row.first().and_then(|heading| self.entry(heading)) else {
                return true;
            };
            found.push(entry.heading.clone());
            entry.meaning.is_some()
        });
        found
    }
}

/// Without emphasis, in small letters, one blank between words.
fn folded(heading: &str) -> String {
    let words: Vec<&str> = heading.split_whitespace().collect();
    words.join(" ").trim_matches(['*', '`', '"']).trim().to_lowercase()
}
