//! Texts that are always the same: the notes below tables, and published tables.

use plimsoll_report::table::Table;

use super::Section;

/// For each heading the rows of a table, and notes, a paragraph each.
const TEXTS: &str = include_str!("texts.md");

/// The first heading that fits, and the text below it.
fn below(fits: impl Fn(&str) -> bool) -> (&'static str, &'static str) {
    let mut all = TEXTS.split("\n# ").filter_map(|text| text.split_once('\n'));
    all.find(|(heading, _)| fits(heading)).unwrap_or_default()
}

/// The notes of a section whose title contains a heading of the file.
pub(super) fn notes(title: &str) -> Vec<String> {
    let (_, text) = below(|heading| title.contains(heading));
    let notes = text.split("\n\n").filter(|note| !note.starts_with('|'));
    let notes = notes.map(|note| note.trim().replace('\n', " "));
    notes.filter(|note| !note.is_empty()).collect()
}

/// The published table whose heading begins like this.
pub(crate) fn published(beginning: &str) -> Section {
    let (heading, text) = below(|heading| heading.starts_with(beginning));
    let mut rows = text.lines().filter_map(|line| {
        Some(line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim))
    });
    let mut table = Table::default();
    if let Some(head) = rows.next() {
        table = Table::new(head);
    }
    rows.for_each(|row| table.row(row));
    Section::new(heading, table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_table_has_its_rows_and_notes() {
        let section = published("Reference: RustyGW");
        assert!(section.title.starts_with("Reference: RustyGW v1.0.1"), "{}", section.title);
        assert_eq!(section.table.rows[0][1], "21,989");
        assert_eq!((section.table.rows.len(), section.notes.len()), (2, 1));
        assert_eq!(published("no such heading").title, "");
    }

    /// Every row of a table has a cell for each column.
    #[test]
    fn no_row_lacks_a_cell() {
        for (heading, _) in TEXTS.split("\n# ").filter_map(|text| text.split_once('\n')) {
            let table = published(heading).table;
            let cells = table.head.len();
            assert!(table.rows.iter().all(|row| row.len() == cells), "{heading}");
        }
    }
}
