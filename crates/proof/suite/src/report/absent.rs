//! Rows that are not measured, in their sections.

use super::Section;

/// A row that is not measured: the reason stands where a reader looks for the figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AbsentRow {
    /// A part of the title of its sections; empty for a row outside all sections.
    pub(crate) section: &'static str,
    /// Its name and the reason.
    pub(crate) text: String,
}

/// Appends each row to its sections. A section without measurements is added with its reasons
/// alone.
pub(crate) fn add(rows: &[AbsentRow], sections: &mut Vec<Section>) {
    for row in rows.iter().filter(|row| !row.section.is_empty()) {
        let mut own: Vec<_> =
            sections.iter_mut().filter(|section| section.title.contains(row.section)).collect();
        for section in &mut own {
            if section.table.head.is_empty() {
                section.notes.push(row.text.clone());
            } else {
                section.table.row([&*row.text]);
            }
        }
        if own.is_empty() {
            let (title, notes) = (row.section.to_owned(), vec![row.text.clone()]);
            sections.push(Section { title, notes, ..Section::default() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_report::table::Table;

    #[test]
    fn a_reason_stands_in_every_section_of_its_row() {
        let table = || {
            let mut table = Table::new(["Endpoint", "RPS"]);
            table.row(["GET /health", "100"]);
            table
        };
        let mut sections = vec![
            Section::new("32 clients, no keys", table()),
            Section::new("256 clients, no keys", table()),
            Section::new("Chats", table()),
        ];
        let row = |section, text: &str| AbsentRow { section, text: text.to_owned() };
        let rows = [
            row("clients, no keys", "GET /metrics: not measured, because x"),
            row("Log writing", "rows: not measured, because y"),
            row("Log writing", "its limit: not measured, because z"),
            row("", "a note of the whole suite"),
        ];
        add(&rows, &mut sections);
        for section in &sections[..2] {
            assert_eq!(section.table.rows[1], ["GET /metrics: not measured, because x"]);
        }
        assert_eq!(sections[2].table.rows.len(), 1);
        assert_eq!(sections[3].title, "Log writing");
        assert_eq!(
            sections[3].notes,
            ["rows: not measured, because y", "its limit: not measured, because z"]
        );
        assert_eq!(sections.len(), 4);
    }
}
