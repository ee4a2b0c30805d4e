//! Passes the rows of a log to the join.

use std::ops::ControlFlow;
use std::path::Path;

use plimsoll_import::Rows;

use crate::cell::cells;
use crate::error::{JoinError, unreadable};
use crate::matcher::Joiner;

/// Opens a log, and finds the names of its columns.
pub(crate) fn open(path: &Path) -> Result<(Rows, Vec<String>), JoinError> {
    let rows = Rows::open(path).map_err(|error| unreadable(path, &error))?;
    let columns = rows.columns();
    if columns.is_empty() {
        return Err(JoinError::NoRows(format!("{} has no rows", path.display())));
    }
    Ok((rows, columns))
}

/// Passes every row to the joiner.
pub(crate) fn read(path: &Path, rows: Rows, joiner: &mut Joiner<'_, '_>) -> Result<(), JoinError> {
    let read = rows.read(&mut |(unit, number), row| {
        match row {
            Ok(row) if row.is_object() => joiner.add(&cells(&row, joiner.map)),
            Ok(_) => joiner.add_unreadable(&format!("{unit} {number}: is not an object")),
            Err(why) => joiner.add_unreadable(&format!("{unit} {number}: {why}")),
        }
        ControlFlow::Continue(())
    });
    read.map_err(|error| unreadable(path, &error))
}
