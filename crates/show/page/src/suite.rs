//! The page of a suite: the verdict, what follows from the figures, what is added, the tables.

use maud::{Markup, html};
use plimsoll_report::printable;
use plimsoll_report::table::Table as Texts;

use crate::chart;
use crate::document::document;
use crate::input::{Section, Suite, Tone};
use crate::table::Table;

/// The page of a suite, as a whole HTML document.
pub fn suite_page(suite: &Suite<'_>) -> String {
    let charts = chart::of_suite(suite);
    let body = html! {
        (header(suite))
        main {
            (findings(suite))
            @for chart in &charts { (chart.render()) }
            (bounds(suite))
            @for part in &suite.sections { (section(part)) }
        }
        (footer(suite))
    };
    document(&format!("suite {}", suite.name), &body)
}

fn header(suite: &Suite<'_>) -> Markup {
    let (tone, sentence) = &suite.verdict;
    let (word, rest) = sentence.split_once(':').unwrap_or((sentence, ""));
    html! {
        header {
            h1 { "Suite " (printable(suite.name)) }
            p.soft { (printable(suite.title)) }
            p.verdict {
                span class=(class(*tone)) { (printable(word)) }
                @if !rest.is_empty() { ":" (printable(rest)) }
            }
            @let shown = suite.doubts.len().min(DOUBTS);
            (list(suite.doubts[..shown].iter().map(|doubt| (Tone::Note, &**doubt))))
            (folded("more reasons", suite.doubts[shown..].iter().map(|doubt| (Tone::Note, &**doubt))))
            @for remark in &suite.remarks { p { b { (printable(remark)) } } }
            (folded("left out", suite.left_out.iter().map(|what| (Tone::Note, &**what))))
        }
    }
}

/// The most reasons that are shown first.
const DOUBTS: usize = 5;

/// What follows from the figures; what limits them is folded, as there may be much of it.
fn findings(suite: &Suite<'_>) -> Markup {
    let findings = suite.findings.iter().copied();
    let limits = findings.clone().filter(|(tone, _)| *tone == Tone::Warning);
    let others = findings.filter(|(tone, _)| *tone != Tone::Warning);
    html! {
        @if !suite.findings.is_empty() {
            section.wide id="findings" {
                h2 { "Findings: each follows from the figures by rule" }
                (list(others))
                (folded("what limits these figures", limits))
            }
        }
    }
}

fn bounds(suite: &Suite<'_>) -> Markup {
    html! {
        @if let Some((title, table, notes)) = &suite.bounds {
            section.wide id="bounds" {
                h2 { (printable(title)) }
                (texts(table))
                (lines(notes))
            }
        }
    }
}

fn list<'a>(items: impl Iterator<Item = (Tone, &'a str)>) -> Markup {
    html! { ul { @for (tone, text) in items { li { (mark(tone)) (printable(text)) } } } }
}

/// A list that is opened by a click or a key; nothing if it is empty.
fn folded<'a>(title: &str, items: impl Iterator<Item = (Tone, &'a str)>) -> Markup {
    let items: Vec<_> = items.collect();
    html! {
        @if !items.is_empty() {
            details { summary { (title) ": " (items.len()) } (list(items.into_iter())) }
        }
    }
}

const fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Note => "plain",
        Tone::Warning => "open",
        Tone::Bad => "bad",
    }
}

/// A word and not a colour alone.
fn mark(tone: Tone) -> Markup {
    html! {
        @match tone {
            Tone::Good => b.good { "good: " },
            Tone::Note => "",
            Tone::Warning => b { "warning: " },
            Tone::Bad => b.bad { "bad: " },
        }
    }
}

fn section(part: &Section<'_>) -> Markup {
    let wide = part.table.head.len() > 5;
    html! {
        section.wide[wide] {
            h2 { (printable(part.title)) }
            @if !part.table.rows.is_empty() { (texts(part.table)) }
            (lines(part.notes))
        }
    }
}

fn texts(table: &Texts) -> Markup {
    html! { div.fine { (Table::from(table.clone()).render()) } }
}

fn lines(notes: &[String]) -> Markup {
    html! { @for note in notes { p.soft { (printable(note)) } } }
}

fn footer(suite: &Suite<'_>) -> Markup {
    html! {
        footer {
            details {
                summary { "environment, and what the marks mean" }
                dl {
                    @for (name, value) in &suite.environment {
                        dt { (printable(name)) } dd { (printable(value)) }
                    }
                }
                p { (printable(suite.marks)) }
            }
            p { "To repeat it: " code { (printable(suite.command)) } }
        }
    }
}
