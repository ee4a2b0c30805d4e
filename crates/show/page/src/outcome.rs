//! What a command found, as the head of its page: the sentences of its screen, all of them.

use maud::{Markup, html};
use plimsoll_report::printable;
use plimsoll_report::screen::{Item, Part, Screen, Tone};

use crate::document::with_code;
use crate::table::Table;

/// Of what stands out, the rest is folded.
const UNFOLDED: usize = 5;

/// The head of a page: its name, what was measured, the verdict, then what is its own (`between`),
/// then the rest of the screen.
pub(crate) fn header(name: &str, screen: &Screen, between: &Markup) -> Markup {
    html! {
        header {
            h1 { (printable(name)) }
            @for part in screen.parts() {
                @if let Part::Title(title) = part { p.soft { (with_code(title)) } }
            }
            @if let Some(verdict) = screen.last() { p.verdict { (marked(verdict)) } }
            (between)
            @for part in screen.parts() {
                @match part {
                    Part::Title(_) => {},
                    Part::Judged { heading, items } => (judged(heading, items)),
                    Part::Table { heading, table } => {
                        @if !heading.is_empty() { p.soft { (with_code(heading)) } }
                        (Table::from(table).render())
                    },
                }
            }
            (stands_out(screen.pointed_out()))
            @for fact in screen.facts() { p { (with_code(fact)) } }
        }
    }
}

fn judged(heading: &str, items: &[Item]) -> Markup {
    html! {
        @if !heading.is_empty() { p { (with_code(heading)) } }
        ul { @for item in items { li { (marked(item)) } } }
    }
}

fn stands_out(items: &[Item]) -> Markup {
    let (shown, folded) = items.split_at(items.len().min(UNFOLDED));
    html! {
        (advised(shown))
        @if !folded.is_empty() {
            details { summary { "more to look at: " (folded.len()) } (advised(folded)) }
        }
    }
}

/// Sentences, each with what to do about it.
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

/// A sentence, its word in colour; one that has no word is marked if it is bad.
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
