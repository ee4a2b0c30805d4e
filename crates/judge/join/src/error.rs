//! Errors, each with its cause and fix.

use std::io::{self, ErrorKind};
use std::path::Path;

/// Why a run cannot be matched with a log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// A wrong map, a log of another run, or a database that does not answer, with the fix.
    #[error("{0}")]
    Usage(String),
    /// The log has no rows, perhaps because it is not yet written.
    #[error("{0}")]
    NoRows(String),
    /// The files are valid, but allow no conclusion.
    #[error("{0}")]
    Unjudged(String),
}

impl JoinError {
    /// Whether the call was wrong, rather than the data.
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::Usage(_) | Self::NoRows(_))
    }

    /// Whether the log has no rows yet.
    pub const fn lacks_rows(&self) -> bool {
        matches!(self, Self::NoRows(_))
    }

    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::Usage(text.into())
    }
}

/// The error for a file that cannot be read to its end.
pub(crate) fn unreadable(path: &Path, error: &io::Error) -> JoinError {
    let path = path.display();
    JoinError::Usage(match error.kind() {
        ErrorKind::UnexpectedEof => {
            format!("{path} ends in the middle of its compressed data: copy it again completely")
        }
        ErrorKind::InvalidInput | ErrorKind::InvalidData => {
            format!("{path} is not a readable file, or has damaged data ({error}): copy it again")
        }
        ErrorKind::NotFound => format!("{path} does not exist: pass the path of the log"),
        _ => format!("cannot read {path}: {error}"),
    })
}

/// Quotes a text of a log or a database for use in a line: truncated, and with escaped control
/// characters.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut out = String::new();
    for c in text.chars().take(LONGEST) {
        match c {
            '\n' => out += "\\n",
            '\t' => out += "\\t",
            // Escaped one by one, because together they could form one of our own colour codes.
            c => out += &plimsoll_report::printable(c.encode_utf8(&mut [0; 4])),
        }
    }
    if text.chars().nth(LONGEST).is_some() {
        out += "...";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn quoted_texts_are_short_and_control_nothing() {
        assert_eq!(quoted("a\nb\x1b[2J"), "a\\nb\\u{1b}[2J");
        assert_eq!(quoted("\x1b[1;32mVALID\x1b[0m"), "\\u{1b}[1;32mVALID\\u{1b}[0m");
        assert_eq!(quoted(&"x".repeat(100)), format!("{}...", "x".repeat(60)));
    }
}
