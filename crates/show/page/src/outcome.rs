//! The result of a command as the head of its page: all sentences of its screen.

use maud::{Markup, html};
use plimsoll_report::printable;
use plimsoll_report::screen::{Chapter, ChapterPart, Item, Part, Screen, Tone, count_of_more};
use plimsoll_report::table::Table;

use crate::document::with_code;
use crate::table::render_table;

/// Number of judged items that are shown unfolded, failed ones first.
const JUDGED: usize = 12;

/// Number of notable findings that are shown unfolded.
const UNFOLDED: usize = 5;

/// The head of a page: its name, the load, the verdict, then its own part (`between`), then the
/// rest of the screen.
pub(crate) fn header(name: &str, screen: &Screen, between: &Markup) -> Markup {
    html! {
        header {
            (opening(name, screen))
            (between)
            @for part in screen.parts() {
                @match part {
                    Part::Title(_) => {},
                    Part::Judged { heading, items } => (judged(heading, items)),
                    Part::Table { heading, table, notes } => {
                        @if !heading.is_empty() { p.soft { (with_code(heading)) } }
                        (render_table(&table))
                        (lines(notes))
                    },
                }
            }
            (closing(screen))
        }
    }
}

/// The head of a page with many tables, which follow below it; see [`cards`].
pub(crate) fn header_without_tables(name: &str, screen: &Screen) -> Markup {
    html! {
        header {
            (opening(name, screen))
            @for part in screen.parts() {
                @if let Part::Judged { heading, items } = part { (judged(heading, items)) }
            }
            (closing(screen))
        }
    }
}

/// Each table of the screen, and each chapter that is only in the file.
pub(crate) fn cards(screen: &Screen) -> Markup {
    html! {
        @for part in screen.parts() {
            @if let Part::Table { heading, table, notes } = part {
                section.wide[has_wide_rows(&table)] {
                    h2 { (with_code(heading)) }
                    div.fine { (render_table(&table)) }
                    (lines(notes))
                }
            }
        }
        @for chapter in screen.chapters() { (card(chapter)) }
    }
}

/// Number of characters from which a table row takes the whole width instead of half a page.
const HALF: usize = 64;
/// Width of the gap between two columns, in characters.
const GAP: usize = 2;

fn card(chapter: &Chapter) -> Markup {
    html! {
        section.wide[chapter.parts().iter().any(is_wide)] {
            h2 { (with_code(chapter.heading())) }
            (parts(chapter))
        }
    }
}

/// Chapters that are only in the file; each is opened by a click or a key.
pub(crate) fn folded(screen: &Screen) -> Markup {
    html! {
        @if !screen.chapters().is_empty() {
            section.wide id="more" {
                h2 { "More figures" }
                @for chapter in screen.chapters() {
                    details { summary { (printable(chapter.heading())) } (parts(chapter)) }
                }
            }
        }
    }
}

fn parts(chapter: &Chapter) -> Markup {
    html! {
        @for part in chapter.parts() {
            @match part {
                ChapterPart::Table(table) => div.fine { (render_table(table)) },
                ChapterPart::List(items) => dl.facts {
                    @for (name, value) in items { dt { (printable(name)) } dd { (printable(value)) } }
                },
                ChapterPart::Text(text) => p { (with_code(text)) },
            }
        }
    }
}

fn is_wide(part: &ChapterPart) -> bool {
    match part {
        ChapterPart::Table(table) => has_wide_rows(table),
        ChapterPart::List(_) => true,
        ChapterPart::Text(_) => false,
    }
}

fn has_wide_rows(table: &Table) -> bool {
    let widths = (0..table.head.len()).filter_map(|column: usize| {
        let cells = table.rows.iter().chain([&table.head]).filter(|row| row.len() > 1);
        cells.filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    });
    widths.map(|width| width + GAP).sum::<usize>() > HALF
}

/// Name, load, and verdict.
fn opening(name: &str, screen: &Screen) -> Markup {
    html! {
        h1 { (printable(name)) }
        @for part in screen.parts() {
            @if let Part::Title(title) = part { p.soft { (with_code(title)) } }
        }
        @if let Some(verdict) = screen.last() { p.verdict { (marked(verdict)) } }
        @if let Some(answer) = screen.facts().first() { p { b { (with_code(answer)) } } }
    }
}

/// Notable findings, and the facts.
fn closing(screen: &Screen) -> Markup {
    html! {
        (stands_out(screen.pointed_out()))
        @for fact in screen.facts().iter().skip(1) { p { (with_code(fact)) } }
    }
}

fn lines(notes: &[String]) -> Markup {
    html! { @for note in notes { p.soft { (with_code(note)) } } }
}

fn judged(heading: &str, items: &[Item]) -> Markup {
    html! {
        @if !heading.is_empty() { p { (with_code(heading)) } }
        @let (shown, folded) = items.split_at(items.len().min(JUDGED));
        (list(shown))
        @if !folded.is_empty() {
            details { summary { (folded.len()) " more" } (list(folded)) }
        }
    }
}

fn list(items: &[Item]) -> Markup {
    html! { ul { @for item in items { li { (marked(item)) } } } }
}

fn stands_out(items: &[Item]) -> Markup {
    let (shown, folded) = items.split_at(items.len().min(UNFOLDED));
    html! {
        (advised(shown))
        @if !folded.is_empty() {
            details { summary { (count_of_more(folded)) } (advised(folded)) }
        }
    }
}

/// Sentences, each with its recommended action.
fn advised(items: &[Item]) -> Markup {
    html! {
        ul {
            @for item in items {
                li {
                    (marked(item))
                    @if let Some(advice) = item.advice() { br; (with_code(advice)) }
                }
            }
        }
    }
}

/// A sentence with its first word in colour; a bad one without such a word is marked.
fn marked(item: &Item) -> Markup {
    let word = item.word();
    let mark = if word.is_empty() && item.tone() == Tone::Bad { "!" } else { word };
    let gap = if item.text().starts_with(':') { "" } else { " " };
    html! {
        @if !mark.is_empty() { b class=(class(item.tone())) { (printable(mark)) } (gap) }
        (with_code(item.text()))
    }
}

const fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Unsure => "open",
        Tone::Bad => "bad",
    }
}
