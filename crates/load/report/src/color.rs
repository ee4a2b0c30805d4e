//! ANSI colours.

/// The colour of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Color {
    Bold,
    Good,
    Bad,
    Unsure,
}

impl Color {
    /// Wraps the text in the sequences that switch the colour on and off.
    pub(crate) fn wrap(self, text: &str) -> String {
        let code = match self {
            Self::Bold => "1",
            Self::Good => "1;32",
            Self::Bad => "1;31",
            Self::Unsure => "1;33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
