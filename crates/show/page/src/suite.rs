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
            @for chart in &charts { (chart.render()) }
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
            @if !suite.doubts.is_empty() {
                ul { @for doubt in &suite.doubts { li { (printable(doubt)) } } }
            }
            @for remark in &suite.remarks { p { b { (printable(remark)) } } }
            @if let Some((title, table, notes)) = &suite.bounds {
                h2 { (printable(title)) }
                (texts(table))
                (lines(notes))
            }
            @if !suite.findings.is_empty() {
                h2 { "Findings: each follows from the figures by rule" }
                ul.plain { @for (tone, text) in &suite.findings { li { (mark(*tone)) (printable(text)) } } }
            }
            @if !suite.left_out.is_empty() {
                details {
                    summary { "left out: " (suite.left_out.len()) }
                    ul { @for what in suite.left_out { li { (printable(what)) } } }
                }
            }
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
    let table = Table { head: table.head.clone(), rows: table.rows.clone() };
    html! { div.fine { (table.render()) } }
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
