//! Errors: each says the cause and the fix.

/// Why a run cannot be matched with a log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// A wrong map, a log of another run, a database that does not answer. The text says what to
    /// change.
    #[error("{0}")]
    Usage(String),
    /// The log has no row at all: it may not be written yet.
    #[error("{0}")]
    NoRows(String),
    /// The files are as they should be, and yet nothing can be said.
    #[error("{0}")]
    Unjudged(String),
}

impl JoinError {
    /// Whether the call was wrong, and not the data.
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::Usage(_) | Self::NoRows(_))
    }

    /// Whether the log has no row, which it may have later.
    pub const fn lacks_rows(&self) -> bool {
        matches!(self, Self::NoRows(_))
    }

    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::Usage(text.into())
    }
}

/// A text of a log or a database as part of one line: control characters written out, and cut.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut out = String::new();
    for c in text.chars().take(LONGEST) {
        match c {
            '\n' => out += "\\n",
            '\t' => out += "\\t",
            // One by one: together they may be a colour of our own reports.
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
