//! The end of a command: fits on a terminal of 80 x 24, with the verdict as its last line.
//!
//! Each kind of result lists its parts by importance; this module decides for all of them how much
//! is shown. The rest is counted: `3 more in report.txt`. Texts may come from targets, so control
//! characters are escaped; only our own colours reach the terminal.
//!
//! This is the one document of a result: its file, its page and its Markdown are made from it, too.

mod item;
mod junit;
mod markdown;
mod section;

use item::Color;
pub use item::{Item, Tone, count_of_more};
pub use junit::{SKIPPED, junit};
use plimsoll_metrics::Environment;
pub use quick_junit::SerializeError;
use section::{Plan, Section, Shown};

use crate::escape::one_line;
use crate::format::wrap;
use crate::screen::section::escaped;
use crate::table::{Layout, Table};

/// Lines of a screen that is not printed on a terminal, and the minimum on a terminal: 24 lines,
/// one of them for the prompt.
pub const LINES: usize = 23;

/// Columns of a screen that is not printed on a terminal.
pub const COLUMNS: usize = 80;

/// Before the path of a folder that was written.
const FILES: &str = "files: ";

/// One finding is allowed for this number of lines of a screen.
const LINES_OF_ONE: usize = 7;

/// How a text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns; tables need about 100.
    pub width: usize,
    /// The most lines of a screen.
    pub lines: usize,
    /// Whether to use ANSI colours.
    pub color: bool,
}

impl Style {
    /// Without colours, and with as many lines as every terminal has.
    pub const fn plain(width: usize) -> Self {
        Self { width, lines: LINES, color: false }
    }
}

impl Default for Style {
    fn default() -> Self {
        Self::plain(120)
    }
}

/// Where a reader finds what the screen leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    /// In the report.txt of this folder.
    Folder(String),
    /// No file was written: the flag `--full` prints the rest.
    Flag,
}

impl Rest {
    const fn words(&self) -> &'static str {
        match self {
            Self::Folder(_) => "in report.txt",
            Self::Flag => "with --full",
        }
    }
}

/// Rows of a table, of which only some may be shown.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// The table.
    pub table: Table,
    /// The plural of a row: `stages`.
    pub unit: &'static str,
    /// The rows by importance; those that are not named follow in their order.
    pub first: Vec<usize>,
    /// The most rows that are shown, however much room there is.
    pub most: usize,
    /// Rows that are left out only when nothing else can be; 3 if it is less.
    pub least: usize,
    /// Whether columns that do not fit are left out, instead of following below.
    pub drops_columns: bool,
    /// This number of columns at the end is left out if they do not fit.
    pub spare_columns: usize,
    /// How the names of rows begin that must not be used: a terminal has a dash for their marked
    /// figures.
    pub unusable: &'static [&'static str],
    /// Sentences below the table, for which a terminal has no room.
    pub notes: Vec<String>,
}

/// Its figures are many times too slow; notes and reports explain it.
pub const DEBUG_BUILD: &str = "; DEBUG BUILD";

/// The remark on a debug build in the title; empty for other builds.
pub fn debug_build(environment: &Environment) -> &'static str {
    match environment.versions.get("build").map(String::as_str) {
        Some("debug") => DEBUG_BUILD,
        _ => "",
    }
}

/// A result: what the end of a command shows of it, and what its file, its page and its Markdown
/// have.
#[derive(Clone, Debug)]
pub struct Screen {
    rest: Rest,
    sections: Vec<Section>,
    stands_out: Vec<Item>,
    facts: Vec<String>,
    next: Vec<String>,
    /// Chapters that a file has, and no screen.
    chapters: Vec<Chapter>,
    /// Number of these that a screen counts, and their name in the plural.
    more: Option<(usize, &'static str)>,
    files: Vec<String>,
    verdict: Option<Item>,
}

impl Screen {
    /// A screen without anything; `rest` holds what it will leave out.
    pub fn new(rest: Rest) -> Self {
        let folder = match &rest {
            Rest::Folder(path) => Some(path.clone()),
            Rest::Flag => None,
        };
        let mut screen = Self {
            rest,
            sections: Vec::new(),
            stands_out: Vec::new(),
            facts: Vec::new(),
            next: Vec::new(),
            chapters: Vec::new(),
            more: None,
            files: Vec::new(),
            verdict: None,
        };
        if let Some(path) = folder {
            screen.folder(&path);
        }
        screen
    }

    /// Adds what was measured, as a heading.
    pub fn title(&mut self, text: &str) {
        self.sections.push(Section::title(one_line(text)));
    }

    /// Adds sentences, each with its judgement, below a heading, which may be empty; `unit` is what
    /// they are in the plural. The first `least` of them are left out last.
    pub fn judged(&mut self, heading: &str, unit: &'static str, items: Vec<Item>, least: usize) {
        if !items.is_empty() {
            self.sections.push(Section::items(one_line(heading), unit, items, least));
        }
    }

    /// Adds findings with their advice. The first `least` of them are never left out.
    pub fn findings(&mut self, items: Vec<Item>, least: usize) {
        if !items.is_empty() {
            self.sections.push(Section::findings(items, least));
        }
    }

    /// Adds a table below its heading, which may be empty.
    pub fn rows(&mut self, heading: &str, rows: Rows) {
        if !rows.table.rows.is_empty() {
            self.sections.push(Section::table(&one_line(heading), rows));
        }
    }

    /// Adds a chapter, unless it is empty; only a file shows it.
    pub fn chapter(&mut self, chapter: Chapter) {
        if !chapter.parts().is_empty() {
            self.chapters.push(chapter);
        }
    }

    /// Says on a screen how many of the chapters are what its reader may look for: `4 more tables`.
    pub fn more(&mut self, count: usize, unit: &'static str) {
        self.more = (count > 0).then_some((count, unit));
    }

    /// Adds what a reader should see before using the figures; the first ones are shown.
    pub fn stands_out(&mut self, items: impl IntoIterator<Item = Item>) {
        self.stands_out.extend(items);
    }

    /// Adds a line of facts, as the accounting is.
    pub fn fact(&mut self, text: &str) {
        self.facts.push(one_line(text));
    }

    /// Adds what the reader may do next.
    pub fn next(&mut self, lines: impl IntoIterator<Item = String>) {
        self.next.extend(lines);
    }

    /// Adds a folder of results that was written.
    pub fn folder(&mut self, path: &str) {
        self.file(&format!("{FILES}{path}"));
    }

    /// Adds a line about a file that was written.
    pub fn file(&mut self, line: &str) {
        self.files.push(one_line(line));
    }

    /// Sets the last line, which begins with the word of the verdict.
    pub fn verdict(&mut self, tone: Tone, text: &str) {
        self.verdict = Some(Item::marked(tone, text));
    }

    /// All parts above the findings, in order.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.sections.iter().map(Section::part)
    }

    /// All that a reader should see before using the figures.
    pub fn pointed_out(&self) -> &[Item] {
        &self.stands_out
    }

    /// The lines of facts.
    pub fn facts(&self) -> &[String] {
        &self.facts
    }

    /// The chapters that only a file shows.
    pub fn chapters(&self) -> &[Chapter] {
        &self.chapters
    }

    /// The last line, if there is one.
    pub const fn last(&self) -> Option<&Item> {
        self.verdict.as_ref()
    }

    /// This screen with another below it. The worse verdict counts.
    pub fn and(mut self, other: Self) -> Self {
        self.sections.extend(other.sections);
        self.stands_out.extend(other.stands_out);
        self.facts.extend(other.facts);
        self.next.extend(other.next);
        self.chapters.extend(other.chapters);
        self.more = self.more.or(other.more);
        self.files.extend(other.files);
        self.rest = other.rest;
        let (mine, others) = (&self.verdict, &other.verdict);
        if mine.as_ref().map(Item::tone) <= others.as_ref().map(Item::tone) {
            self.verdict = other.verdict;
        }
        self
    }

    /// The text; each line ends with a line feed.
    pub fn text(&self, style: Style) -> String {
        self.lines(style).into_iter().map(|line| line + "\n").collect()
    }

    /// Everything: nothing is left out, and nothing is cut. The verdict is the last line.
    pub fn whole(&self, style: Style) -> String {
        let plan = Plan::whole(self.shown(style.width), self.stands_out.len(), self.next.len());
        let lines = self.laid_out(&plan, style.width);
        lines.iter().map(|line| line.painted(style.color) + "\n").collect()
    }

    /// [`Screen::whole`] for a file, which is read from its top: the verdict follows the title, and
    /// files are not named.
    pub fn report(&self, style: Style) -> String {
        let mut file = Self { files: Vec::new(), verdict: None, ..self.clone() };
        if let Some(verdict) = self.verdict.clone() {
            let after = file.sections.iter().take_while(|section| section.is_title()).count();
            file.sections.insert(after, Section::verdict(verdict));
        }
        file.whole(style)
    }

    /// Its last lines alone, for below a full report: the files and the verdict.
    pub fn end(&self, style: Style) -> String {
        let lines = self.end_lines(style.width);
        lines.iter().map(|line| line.painted(style.color) + "\n").collect()
    }

    /// The files, and the verdict in one line.
    fn end_lines(&self, width: usize) -> Vec<Line> {
        let mut files: Vec<String> = Vec::new();
        for file in &self.files {
            let both = files.last().and_then(|line| beside(line, file, width));
            if both.is_some() {
                files.pop();
            }
            files.push(both.unwrap_or_else(|| file.clone()));
        }
        let mut end: Vec<_> = files.into_iter().map(Line::plain).collect();
        end.extend(self.verdict.iter().map(Item::line));
        end
    }

    /// The lines, at most as many and as wide as the terminal's. Only the paths of files and the
    /// verdict may be longer, so that they can be copied; the rows that they take are counted.
    pub fn lines(&self, style: Style) -> Vec<String> {
        let stands_out = self.stands_out.len().min(style.lines / LINES_OF_ONE);
        let mut plan = Plan::everything(self.shown(style.width), stands_out, self.next.len());
        loop {
            let lines = self.laid_out(&plan, style.width);
            let rows: usize = lines.iter().map(|line| line.rows(style.width)).sum();
            if rows <= style.lines || !plan.give_way() {
                return lines.iter().map(|line| line.painted(style.color)).collect();
            }
        }
    }

    /// The parts of each section that may be shown.
    fn shown(&self, width: usize) -> Vec<Shown> {
        self.sections.iter().map(|one| Shown::everything(one, width, &self.rest)).collect()
    }

    fn laid_out(&self, plan: &Plan, width: usize) -> Vec<Line> {
        let mut blocks: Vec<Vec<Line>> = Vec::new();
        for (section, shown) in self.sections.iter().zip(&plan.shown) {
            let lines = section.lines(shown.count, width, plan, &self.rest);
            match blocks.last_mut().filter(|_| !section.stands_apart(plan.whole)) {
                Some(block) => block.extend(lines),
                None => blocks.push(lines),
            }
        }
        blocks.push(self.standing_out(plan, width));
        let more: Vec<String> = self.left_out().filter(|_| !plan.whole).into_iter().collect();
        let facts = [more, self.facts.clone()].concat();
        for texts in [&facts[..], &self.next[..plan.next]] {
            let wrapped = texts.iter().flat_map(|text| hanging(text, width));
            blocks.push(wrapped.map(Line::plain).collect());
        }
        if plan.whole {
            blocks.extend(self.chapters.iter().map(|chapter| chapter.lines(width)));
        }
        blocks.push(self.end_lines(width));
        blocks.retain(|block| !block.is_empty());
        let mut lines = Vec::new();
        for (index, block) in blocks.into_iter().enumerate() {
            if (1..=plan.blanks).contains(&index) {
                lines.push(Line::default());
            }
            lines.extend(block);
        }
        lines
    }

    /// `4 more tables in report.txt`: what of its chapters a reader may look for.
    fn left_out(&self) -> Option<String> {
        let (count, unit) = self.more?;
        let unit = if count == 1 { unit.trim_end_matches('s') } else { unit };
        Some(format!("{count} more {unit} {}", self.rest.words()))
    }

    fn standing_out(&self, plan: &Plan, width: usize) -> Vec<Line> {
        let shown = self.stands_out.iter().take(plan.stands_out);
        let mut lines: Vec<_> = shown.flat_map(|item| item.bullet(width)).collect();
        let others = self.stands_out.get(plan.stands_out..).unwrap_or_default();
        if !others.is_empty() {
            let (what, words) = (count_of_more(others), self.rest.words());
            lines.push(Line::plain(format!("{what} {words}")));
        }
        lines
    }
}

/// A folder on the line of the one before it, if there is room.
fn beside(line: &str, file: &str, width: usize) -> Option<String> {
    let both = format!("{line} and {}", file.strip_prefix(FILES)?);
    (line.starts_with(FILES) && both.chars().count() <= width).then_some(both)
}

/// The lines of a text; those after the first are indented by two.
fn hanging(text: &str, width: usize) -> Vec<String> {
    wrap(text, width.saturating_sub(2))
        .into_iter()
        .enumerate()
        .map(|(number, line)| match number {
            0 => line,
            _ => format!("  {line}"),
        })
        .collect()
}

/// Before each line below a heading.
const INDENT: &str = "  ";

/// A sentence below a heading or a table, with indented continuation lines. Nothing is cut.
fn indented(text: &str, width: usize) -> Vec<Line> {
    let lines = wrap(text, width.saturating_sub(2 * INDENT.len())).into_iter().enumerate();
    lines
        .map(|(number, line)| match number {
            0 => Line::plain(format!("{INDENT}{line}")),
            _ => Line::plain(format!("{INDENT}{INDENT}{line}")),
        })
        .collect()
}

/// A line, and the part at its start that has a colour.
#[derive(Clone, Debug, Default)]
struct Line {
    text: String,
    painted: Option<(Color, usize)>,
}

impl Line {
    const fn plain(text: String) -> Self {
        Self { text, painted: None }
    }

    fn bold(text: String) -> Self {
        let painted = Some((Color::Bold, text.len()));
        Self { text, painted }
    }

    /// The rows that it takes on a terminal.
    fn rows(&self, width: usize) -> usize {
        self.text.chars().count().div_ceil(width.max(1)).max(1)
    }

    fn painted(&self, color: bool) -> String {
        match self.painted {
            Some((paint, length)) if color => {
                let (word, rest) = self.text.split_at_checked(length).unwrap_or((&self.text, ""));
                format!("{}{rest}", paint.wrap(word))
            }
            _ => self.text.clone(),
        }
    }
}

/// Tables, lists and sentences below a heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chapter {
    heading: String,
    parts: Vec<ChapterPart>,
}

/// A part of a chapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChapterPart {
    /// A table.
    Table(Table),
    /// Names and their values.
    List(Vec<(String, String)>),
    /// A sentence, or a few.
    Text(String),
}

impl Chapter {
    /// A chapter without anything.
    pub fn new(heading: &str) -> Self {
        Self { heading: one_line(heading), parts: Vec::new() }
    }

    /// Adds a table; one without rows is left out.
    pub fn table(&mut self, table: &Table) {
        if !table.rows.is_empty() {
            self.parts.push(ChapterPart::Table(escaped(table)));
        }
    }

    /// Adds names with their values; what is not known is left out.
    pub fn list<N: AsRef<str>>(&mut self, items: impl IntoIterator<Item = (N, Option<String>)>) {
        let known = items.into_iter().filter_map(|(name, value): (N, Option<String>)| {
            Some((one_line(name.as_ref()), one_line(&value?)))
        });
        let known: Vec<_> = known.collect();
        if !known.is_empty() {
            self.parts.push(ChapterPart::List(known));
        }
    }

    /// Adds a sentence, if it is one.
    pub fn text(&mut self, sentence: &str) {
        if !sentence.is_empty() {
            self.parts.push(ChapterPart::Text(one_line(sentence)));
        }
    }

    /// Adds sentences, each by itself.
    pub fn texts(&mut self, sentences: impl IntoIterator<Item = impl AsRef<str>>) {
        sentences.into_iter().for_each(|sentence| self.text(sentence.as_ref()));
    }

    /// Its heading.
    pub fn heading(&self) -> &str {
        &self.heading
    }

    /// Its parts.
    pub fn parts(&self) -> &[ChapterPart] {
        &self.parts
    }

    /// The lines. A table and a list begin after an empty one, a sentence does not.
    fn lines(&self, width: usize) -> Vec<Line> {
        let mut lines: Vec<_> = wrap(&self.heading, width).into_iter().map(Line::bold).collect();
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 && !matches!(part, ChapterPart::Text(_)) {
                lines.push(Line::default());
            }
            match part {
                ChapterPart::Table(table) => {
                    let table = table.lines(&Layout::new(width)).into_iter();
                    lines.extend(table.map(Line::plain));
                }
                ChapterPart::List(items) => lines.extend(list(items, width)),
                ChapterPart::Text(text) => lines.extend(indented(text, width)),
            }
        }
        lines
    }
}

/// The values in one column.
fn list(items: &[(String, String)], width: usize) -> Vec<Line> {
    let names = items.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let indent = INDENT.len() + names + INDENT.len();
    let mut lines = Vec::new();
    for (name, value) in items {
        let wrapped = wrap(value, width.saturating_sub(indent)).into_iter().enumerate();
        lines.extend(wrapped.map(|(number, line)| {
            let name = if number == 0 { name.as_str() } else { "" };
            Line::plain(format!("{INDENT}{name:<names$}{INDENT}{line}"))
        }));
    }
    lines
}

/// A part of a screen.
#[derive(Clone, Debug)]
pub enum Part<'s> {
    /// The run or comparison.
    Title(&'s str),
    /// Sentences with their judgements below a heading, which may be empty.
    Judged {
        /// The heading.
        heading: &'s str,
        /// The sentences.
        items: &'s [Item],
    },
    /// A table below its heading, which may be empty.
    Table {
        /// The heading.
        heading: &'s str,
        /// The table without columns in which nothing stands.
        table: Table,
        /// Sentences below it.
        notes: &'s [String],
    },
}
