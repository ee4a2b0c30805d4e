//! What single requests found of the user's gateway, as rows of the report.

use plimsoll_report::table::Table;

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TriedRoute {
    /// The request.
    pub(crate) what: String,
    /// Its status, or how it ended.
    pub(crate) answer: String,
    /// Its time, without connection set-up.
    pub(crate) time: String,
    /// What follows.
    pub(crate) conclusion: String,
}

/// The rows as a table.
pub(crate) fn table(rows: &[TriedRoute]) -> Table {
    let mut table = Table::new(["The target, when tried once", "answer", "time", "conclusion"]);
    for row in rows {
        table.row([&*row.what, &*row.answer, &*row.time, &*row.conclusion]);
    }
    table
}
