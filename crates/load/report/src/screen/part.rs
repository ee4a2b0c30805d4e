//! The parts of a screen, for another medium that has room for all of them.

use super::Item;
use crate::table::Table;

/// A part of a screen.
#[derive(Clone, Debug)]
pub enum Part<'s> {
    /// What was measured.
    Title(&'s str),
    /// Sentences with their judgements below a heading, which may be empty.
    Judged {
        /// The heading.
        heading: &'s str,
        /// The sentences.
        items: &'s [Item],
    },
    /// A table below a line that says what it shows, which may be empty.
    Table {
        /// That line.
        heading: &'s str,
        /// The table without columns in which nothing stands.
        table: Table,
        /// Sentences below it.
        notes: &'s [String],
    },
}
