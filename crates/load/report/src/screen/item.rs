//! A sentence of a screen: its mark, its text, and what to do about it.

use super::Line;
use crate::escape::one_line;
use crate::format::wrap;

/// Meaning of a word for the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tone {
    /// As it should be.
    Good,
    /// Not known, or to be looked at.
    Unsure,
    /// Broken, or not to be used.
    Bad,
}

impl Tone {
    const fn color(self) -> Color {
        match self {
            Self::Good => Color::Good,
            Self::Unsure => Color::Unsure,
            Self::Bad => Color::Bad,
        }
    }
}

/// A sentence.
#[derive(Clone, Debug)]
pub struct Item {
    tone: Tone,
    /// The word before the text; empty for none.
    word: String,
    text: String,
    fix: Option<String>,
}

/// `3 more warnings` for items that do not fit; `findings` if not all of them are warnings.
pub fn count_of_more(items: &[Item]) -> String {
    let what = if items.iter().all(|item| item.tone != Tone::Good) { "warning" } else { "finding" };
    let end = if items.len() == 1 { "" } else { "s" };
    format!("{} more {what}{end}", items.len())
}

impl Item {
    /// A sentence that a reader should see.
    pub fn new(tone: Tone, text: &str) -> Self {
        Self { tone, word: String::new(), text: one_line(text), fix: None }
    }

    /// A sentence that begins with its judgement: `FAIL: what`.
    pub fn marked(tone: Tone, text: &str) -> Self {
        let text = one_line(text);
        let word = text.split(|c: char| !c.is_ascii_uppercase()).next().unwrap_or_default();
        Self { tone, word: word.to_owned(), text, fix: None }
    }

    /// A judgement and what was judged: `FAIL  what`.
    pub fn judged(tone: Tone, word: &str, text: &str) -> Self {
        Self { word: word.to_owned(), ..Self::new(tone, text) }
    }

    /// The same, with the name of one of several results.
    pub fn named(mut self, what: &str) -> Self {
        self.text = format!("{}: {}", one_line(what), self.text);
        self
    }

    /// Adds advice to the item.
    pub fn fix(mut self, fix: &str) -> Self {
        self.fix = (!fix.is_empty()).then(|| format!("fix: {}", one_line(fix)));
        self
    }

    /// How it is to be taken.
    pub const fn tone(&self) -> Tone {
        self.tone
    }

    /// The word of its judgement; empty for none.
    pub fn word(&self) -> &str {
        &self.word
    }

    /// The sentence without the word that it may begin with.
    pub fn text(&self) -> &str {
        self.text.strip_prefix(&self.word).unwrap_or(&self.text)
    }

    /// The advice: `fix: ...`.
    pub fn advice(&self) -> Option<&str> {
        self.fix.as_deref()
    }

    /// One line, however long, that begins with the word.
    pub(super) fn line(&self) -> Line {
        Line { text: self.text.clone(), painted: Some((self.tone.color(), self.word.len())) }
    }

    /// Lines of a file, of which the first begins with the word.
    pub(super) fn wrapped(&self, width: usize) -> Vec<Line> {
        let mut lines: Vec<_> = wrap(&self.text, width).into_iter().map(Line::plain).collect();
        if let Some(first) = lines.first_mut() {
            first.painted = self.line().painted;
        }
        lines
    }

    /// The word in a column of `column` characters, and the text beside it.
    pub(super) fn beside(&self, column: usize, width: usize) -> Vec<Line> {
        let lead = format!("{:<column$}  ", self.word);
        let mut lines = self.lines(&lead, (self.tone.color(), self.word.len()), width);
        lines.extend(self.fix_lines(lead.chars().count(), width));
        lines
    }

    /// The text behind a mark, and the fix below it.
    pub(super) fn bullet(&self, width: usize) -> Vec<Line> {
        const MARK: &str = "! ";
        if !self.word.is_empty() {
            return self.beside(self.word.len(), width);
        }
        let mut lines = self.lines(MARK, (self.tone.color(), 1), width);
        lines.extend(self.fix_lines(MARK.len(), width));
        lines
    }

    /// The fix, indented.
    fn fix_lines(&self, indent: usize, width: usize) -> Vec<Line> {
        let Some(fix) = &self.fix else { return Vec::new() };
        let fix = wrap(fix, width.saturating_sub(indent));
        fix.into_iter().map(|line| Line::plain(format!("{:indent$}{line}", ""))).collect()
    }

    fn lines(&self, lead: &str, painted: (Color, usize), width: usize) -> Vec<Line> {
        let indent = " ".repeat(lead.chars().count());
        let wrapped = wrap(&self.text, width.saturating_sub(indent.len()));
        wrapped
            .into_iter()
            .enumerate()
            .map(|(number, text)| match number {
                0 => Line { text: format!("{lead}{text}"), painted: Some(painted) },
                _ => Line::plain(format!("{indent}{text}")),
            })
            .collect()
    }
}

// ANSI colours.

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
