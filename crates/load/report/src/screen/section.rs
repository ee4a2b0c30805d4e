//! A part of a screen, of whose rows some may be left out.

use super::{Item, Line, Part, Rest, Rows, indented};
use crate::escape::one_line;
use crate::format::{DASH, has_limit, wrap};
use crate::table::{Layout, Table};

/// Rows of any table that are left out only when nothing else can be.
const LEAST_ROWS: usize = 3;

/// The column of names of a screen's tables is not narrower, unless its names are.
const NARROWEST: usize = 10;

/// A part of the screen.
#[derive(Clone, Debug)]
pub(super) struct Section {
    heading: String,
    unit: &'static str,
    body: Body,
    /// Rows that are left out last.
    pub(super) least: usize,
    /// Whether these are never left out.
    pub(super) keeps_least: bool,
    /// The most rows that are shown.
    most: usize,
}

/// Content of a part.
#[derive(Clone, Debug)]
enum Body {
    /// Only its heading.
    Title,
    /// The sentence at the end of a screen, and at the start of a file.
    Verdict(Item),
    Items(Vec<Item>),
    Table(Rows),
}

impl Section {
    fn with_body(unit: &'static str, body: Body) -> Self {
        let heading = String::new();
        Self { heading, unit, body, least: 0, keeps_least: false, most: usize::MAX }
    }

    pub(super) fn items(
        heading: String,
        unit: &'static str,
        items: Vec<Item>,
        least: usize,
    ) -> Self {
        Self { heading, least, ..Self::with_body(unit, Body::Items(items)) }
    }

    pub(super) fn findings(items: Vec<Item>, least: usize) -> Self {
        let section = Self::items(String::new(), "findings", items, least);
        Self { keeps_least: true, ..section }
    }

    pub(super) fn title(heading: String) -> Self {
        Self { heading, ..Self::with_body("", Body::Title) }
    }

    pub(super) fn verdict(verdict: Item) -> Self {
        Self::with_body("", Body::Verdict(verdict))
    }

    pub(super) fn table(heading: &str, mut rows: Rows) -> Self {
        rows.table = escaped(&rows.table);
        rows.notes = cells(&rows.notes);
        let (unit, most) = (rows.unit, rows.most);
        let least = LEAST_ROWS.max(rows.least).min(most);
        let cells = [rows.table.head.clone(), rows.table.rows.concat()].concat();
        let heading = explained(heading, &cells.join("\n"));
        Self { heading, least, most, ..Self::with_body(unit, Body::Table(rows)) }
    }

    /// The whole of it.
    pub(super) fn part(&self) -> Part<'_> {
        let heading = &*self.heading;
        match &self.body {
            Body::Title => Part::Title(heading),
            Body::Verdict(item) => Part::Judged { heading, items: std::slice::from_ref(item) },
            Body::Items(items) => Part::Judged { heading, items },
            Body::Table(rows) => {
                Part::Table { heading, table: rows.table.with_content(), notes: &rows.notes }
            }
        }
    }

    /// Whether it is the title.
    pub(super) const fn is_title(&self) -> bool {
        matches!(self.body, Body::Title)
    }

    /// Whether an empty line precedes it, if there is room; a file has room.
    pub(super) const fn stands_apart(&self, in_file: bool) -> bool {
        match self.body {
            Body::Verdict(_) => false,
            Body::Items(_) => in_file || !self.heading.is_empty(),
            Body::Title | Body::Table(_) => true,
        }
    }

    /// The number of its rows.
    pub(super) fn all(&self) -> usize {
        match &self.body {
            Body::Title | Body::Verdict(_) => 0,
            Body::Items(items) => items.len(),
            Body::Table(rows) => rows.table.rows.len(),
        }
    }

    /// Whether the heading of its table has room on its last line for how many rows are shown; else
    /// a line below them says how many are not.
    pub(super) fn heading_has_room(&self, width: usize, rest: &Rest) -> bool {
        let is_table = matches!(self.body, Body::Table(_));
        let counted = self.counted(self.all(), rest);
        is_table
            && !self.heading.is_empty()
            && wrap(&counted, width).len() == wrap(&self.heading, width).len()
    }

    fn counted(&self, count: usize, rest: &Rest) -> String {
        let (all, rest) = (self.all(), rest.words());
        format!("{} ({count} of {all} {}, all {rest})", self.heading, self.unit)
    }

    /// The most of them that are shown.
    pub(super) fn most(&self) -> usize {
        self.all().min(self.most)
    }

    /// The lines, with `count` rows as the plan has them, and how many are left out.
    pub(super) fn lines(&self, count: usize, width: usize, plan: &Plan, rest: &Rest) -> Vec<Line> {
        let left_out = self.all().saturating_sub(count);
        let in_heading = count > 0 && left_out > 0 && self.heading_has_room(width, rest);
        let heading = if in_heading { self.counted(count, rest) } else { self.heading.clone() };
        let laid_out = match &self.body {
            Body::Table(rows) if count > 0 => {
                let mut table = rows.table_of(count);
                if !plan.whole {
                    hide_limited(&mut table, rows.unusable);
                }
                table.lines(&rows.layout(width, plan.whole))
            }
            _ => Vec::new(),
        };
        let heading = explained(&heading, &laid_out.join("\n"));
        let heading = wrap(&heading, width).into_iter();
        let mut lines: Vec<_> = match self.body {
            Body::Title => heading.map(Line::bold).collect(),
            _ => heading.map(Line::plain).collect(),
        };
        match &self.body {
            Body::Items(items) => {
                let items = &items[..count.min(items.len())];
                let column = items.iter().map(|item| item.word().len()).max().unwrap_or_default();
                lines.extend(items.iter().flat_map(|item| item.beside(column, width)));
            }
            Body::Verdict(item) => lines = item.wrapped(width),
            Body::Table(rows) if count > 0 => {
                lines.extend(laid_out.into_iter().map(Line::plain));
                let notes = if plan.whole { &rows.notes[..] } else { &[] };
                lines.extend(notes.iter().flat_map(|note| indented(note, width)));
            }
            Body::Title | Body::Table(_) => {}
        }
        if left_out > 0 && !in_heading {
            let more = if count > 0 { "more " } else { "" };
            let unit = if left_out == 1 { self.unit.trim_end_matches('s') } else { self.unit };
            let rest = rest.words();
            lines.push(Line::plain(format!("{left_out} {more}{unit} {rest}")));
        }
        lines
    }
}

/// Signs that a heading explains, and their form in the cells.
const SIGNS: [(&str, &str); 8] = [
    ("[]:", " ["),
    ("(a to b):", " to "),
    (">=:", ">= "),
    ("*:", " *"),
    ("(-x):", "(-"),
    ("(+x):", "(+"),
    ("added:", "added"),
    ("per s:", "per s"),
];

/// A heading, without signs that a text does not have.
fn explained(heading: &str, text: &str) -> String {
    let is_used = |part: &&str| {
        SIGNS.iter().all(|(sign, cell)| !part.starts_with(sign) || text.contains(cell))
    };
    heading.split("; ").filter(is_used).collect::<Vec<_>>().join("; ")
}

/// A table whose texts may come from others.
pub(super) fn escaped(table: &Table) -> Table {
    Table { head: cells(&table.head), rows: table.rows.iter().map(|row| cells(row)).collect() }
}

/// Replaces refused figures in unusable rows by a dash.
fn hide_limited(table: &mut Table, unusable: &[&str]) {
    let figures = table
        .rows
        .iter_mut()
        .filter(|row: &&mut Vec<String>| {
            unusable.iter().any(|name| row.first().is_some_and(|cell| cell.starts_with(name)))
        })
        .flat_map(|row| row.iter_mut().skip(1));
    for cell in figures.filter(|cell| has_limit(cell)) {
        DASH.clone_into(cell);
    }
}

fn cells(row: &[String]) -> Vec<String> {
    row.iter().map(|cell| one_line(cell)).collect()
}

impl Rows {
    /// The table of the `count` most important rows, in their order.
    fn table_of(&self, count: usize) -> Table {
        let all = self.table.rows.len();
        let others = (0..all).filter(|row| !self.first.contains(row));
        let mut shown: Vec<_> = self.first.iter().copied().chain(others).take(count).collect();
        shown.sort_unstable();
        let rows = shown.into_iter().filter_map(|row| self.table.rows.get(row).cloned());
        Table { head: self.table.head.clone(), rows: rows.collect() }
    }

    /// `whole`: columns without room follow below.
    fn layout(&self, width: usize, whole: bool) -> Layout {
        Layout {
            indent: 0,
            narrowest: NARROWEST,
            drops_dashes: !whole,
            drops_columns: self.drops_columns && !whole,
            spare_columns: if whole { 0 } else { self.spare_columns },
            ..Layout::new(width)
        }
    }
}

// How much of each part is shown, and what gives way first.

/// Parts below the sections: findings, facts, next steps, the end.
const PARTS_BELOW: usize = 4;

/// How much is shown.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Empty lines between the parts; those further up are the last to go.
    pub(super) blanks: usize,
    /// For each section, the part that is shown.
    pub(super) shown: Vec<Shown>,
    /// Things that are pointed out.
    pub(super) stands_out: usize,
    /// Lines about what the reader may do next.
    pub(super) next: usize,
    /// Whether nothing is left out, as in a file.
    pub(super) whole: bool,
}

/// The rows of a section that are shown, and how many of them are left out last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    pub(super) count: usize,
    all: usize,
    least: usize,
    /// Rows that are never left out.
    kept: usize,
    /// Whether the first omitted row needs a line that counts the omitted rows.
    needs_line: bool,
}

impl Plan {
    /// Everything.
    pub(super) fn everything(shown: Vec<Shown>, stands_out: usize, next: usize) -> Self {
        Self { blanks: usize::MAX, shown, stands_out, next, whole: false }
    }

    /// Everything, without a limit of any kind.
    pub(super) fn whole(shown: Vec<Shown>, stands_out: usize, next: usize) -> Self {
        let mut plan = Self::everything(shown, stands_out, next);
        for shown in &mut plan.shown {
            shown.count = shown.all;
        }
        Self { whole: true, ..plan }
    }

    /// Shows a little less; `false` if nothing is left that may go. The order: empty lines, rows
    /// beyond the least of their section, all but two things that are pointed out, what comes next
    /// but for a line, and then all that is left. A sentence that is shown is whole.
    pub(super) fn give_way(&mut self) -> bool {
        let steps: [fn(&mut Self) -> bool; 9] = [
            Self::drop_blank,
            |plan| plan.drop_row(|shown| shown.least),
            |plan| plan.point_out_less(2),
            |plan| less(&mut plan.next, 1),
            |plan| plan.point_out_less(1),
            |plan| plan.drop_row(|shown| shown.kept.max(1)),
            |plan| plan.point_out_less(0),
            |plan| plan.drop_row(|shown| shown.kept),
            |plan| less(&mut plan.next, 0),
        ];
        steps.into_iter().any(|step| step(self))
    }

    /// There are never more empty lines than sections and parts below them.
    fn drop_blank(&mut self) -> bool {
        let most = self.shown.len() + PARTS_BELOW;
        let can = self.blanks > 0;
        self.blanks = self.blanks.min(most).saturating_sub(1);
        can
    }

    fn point_out_less(&mut self, least: usize) -> bool {
        less(&mut self.stands_out, least)
    }

    /// Leaves out a row of the section that shows the most, of those with more than `least`.
    fn drop_row(&mut self, least: impl Fn(&Shown) -> usize) -> bool {
        let can = self
            .shown
            .iter_mut()
            .filter(|shown| shown.count.saturating_sub(least(shown)) >= shown.rows_at_once());
        let largest = can.max_by_key(|shown| shown.count);
        let Some(shown) = largest else { return false };
        shown.count = shown.count.saturating_sub(shown.rows_at_once()).max(least(shown));
        true
    }
}

impl Shown {
    /// All that may be shown of a section on a screen of this width.
    pub(super) fn everything(section: &Section, width: usize, rest: &Rest) -> Self {
        Self {
            count: section.most(),
            all: section.all(),
            least: section.least,
            kept: if section.keeps_least { section.least } else { 0 },
            needs_line: !section.heading_has_room(width, rest),
        }
    }

    /// Removing a first row needs a line that reports it, so two rows must go at once.
    const fn rows_at_once(&self) -> usize {
        if self.needs_line && self.count == self.all { 2 } else { 1 }
    }
}

/// One less, but not less than `least`; whether it could be.
const fn less(count: &mut usize, least: usize) -> bool {
    let can = *count > least;
    if can {
        *count -= 1;
    }
    can
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_explains_the_signs_that_its_cells_have() {
        let heading = "times; []: 95 % interval; >=: lower limit; (-x): ours; (+x): more";
        for (cells, expected) in [
            ("12.0ms (-2.00ms)", "times; (-x): ours"),
            (">= 12.0ms\n30.0 (+2.00)", "times; >=: lower limit; (+x): more"),
            ("40.0 [38.0, 42.0]", "times; []: 95 % interval"),
            ("12.0ms", "times"),
        ] {
            assert_eq!(explained(heading, cells), expected);
        }
    }
}
