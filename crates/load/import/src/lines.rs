//! Lines, and the places of rows.

use std::fmt;
use std::io::{self, BufRead, Read as _};
use std::ops::ControlFlow;

use plimsoll_input::MOST;
use serde_json::Value;

/// Where a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Line(u64),
    Row(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Row(number) => write!(f, "row {number}"),
        }
    }
}

/// Takes rows, or why a line is none.
pub(crate) type Sink<'s> = dyn FnMut(Place, Result<Value, String>) -> ControlFlow<()> + 's;

/// Lines without their ends; empty ones are passed over.
pub(crate) fn read_lines(
    mut reader: impl BufRead,
    sink: &mut dyn FnMut(Place, Result<String, String>) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        if reader.by_ref().take(MOST).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.len() as u64 == MOST {
            return Err(io::Error::other(format!(
                "line {number} has more than {} MiB",
                MOST >> 20
            )));
        }
        let line = str::from_utf8(&bytes).map_err(|_| "is not UTF-8".to_owned());
        let line = line.map(|line| line.trim_end_matches(['\n', '\r']).to_owned());
        if line.as_ref().is_ok_and(|line| line.trim().is_empty()) {
            continue;
        }
        if sink(Place::Line(number), line).is_break() {
            break;
        }
    }
    Ok(())
}
