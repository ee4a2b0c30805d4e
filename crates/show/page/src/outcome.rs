//! The result of a command as the head of its page: all sentences of its screen.

use maud::{Markup, html};
use plimsoll_compare::{Comparison, RunRef};
use plimsoll_knee::KneeReport;
use plimsoll_report::format::utc;
use plimsoll_report::printable;
use plimsoll_report::screen::{
    Chapter, ChapterPart, Item, Part, Rest, Screen, Tone, count_of_more,
};
use plimsoll_report::table::Table;

use crate::chart::{self, Suite, name_of, render_table};
use crate::document::{self, document, with_code};

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
                        div.fine { (render_table(&table)) }
                        (lines(notes))
                    },
                }
            }
            (closing(screen))
        }
    }
}

/// A card for each of these chapters.
pub(crate) fn cards<'a>(chapters: impl IntoIterator<Item = &'a Chapter>) -> Markup {
    html! { @for chapter in chapters { (card(chapter)) } }
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
pub(crate) fn folded(chapters: &[Chapter]) -> Markup {
    html! {
        @if !chapters.is_empty() {
            section.wide id="more" {
                h2 { "More figures" }
                @for chapter in chapters {
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
    let (shown, folded) = items.split_at(items.len().min(JUDGED));
    html! {
        @if !heading.is_empty() { p { (with_code(heading)) } }
        (advised(shown))
        (opened(&format!("{} more", folded.len()), folded))
    }
}

fn stands_out(items: &[Item]) -> Markup {
    let (shown, folded) = items.split_at(items.len().min(UNFOLDED));
    html! { (advised(shown)) (opened(&count_of_more(folded), folded)) }
}

/// Further sentences, which a click shows.
fn opened(summary: &str, items: &[Item]) -> Markup {
    html! { @if !items.is_empty() { details { summary { (summary) } (advised(items)) } } }
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

// The page of a suite: the content of its screen, overhead, and every table of its file.

/// The page of a suite, as a whole HTML document.
pub fn suite_page(suite: &Suite<'_>) -> String {
    let name = format!("Suite {}", suite.name);
    let charts = chart::compared("Overhead of each target", &suite.comparisons);
    let body = html! {
        (header(&name, suite.screen, &html! {}))
        main {
            @for chart in &charts { (chart.render()) }
            (cards(suite.screen.chapters()))
        }
    };
    document(&name, &body, &charts)
}

// The page of a comparison of old and new runs: the verdict first, then both sides next to each
// other.

/// The page of a comparison, as a whole HTML document.
pub fn comparison_page(comparison: &Comparison) -> String {
    const NAME: &str = "Old runs against new ones";
    let charts = [chart::gates(comparison), chart::runs_by_percentile(comparison)];
    let charts: Vec<_> = charts.into_iter().flatten().collect();
    let body = html! {
        (header(NAME, &comparison.screen(), &sides(comparison)))
        main { @for chart in &charts { (chart.render()) } }
        footer {
            "The run is the unit: how much runs of unchanged code differ is seen only in repeats. "
            (document::notation())
        }
    };
    document(NAME, &body, &charts)
}

/// Both sides next to each other, and their differences.
fn sides(comparison: &Comparison) -> Markup {
    let differs = &comparison.same_machine.differs;
    html! {
        div.sides {
            (side("Old", &comparison.base))
            (side("New", &comparison.new))
        }
        @if !differs.is_empty() {
            h2 { "What differs" }
            ul {
                @for difference in differs {
                    li { (printable(&difference.words())) @if difference.allowed { " (allowed)" } }
                }
            }
        }
    }
}

fn side(name: &str, runs: &[RunRef]) -> Markup {
    let mut table = Table::new(["run", "name", "started", "folder"]);
    for (nth, run) in runs.iter().enumerate() {
        let started = utc(run.started_unix_ns);
        table.rows.push(vec![(nth + 1).to_string(), run.name.clone(), started, run.path.clone()]);
    }
    html! { div { h2 { (name) ": " (runs.len()) @if runs.len() == 1 { " run" } @else { " runs" } } (render_table(&table)) } }
}

// The page of a capacity search: the capacity of each target, and its probes.

/// The page of a capacity search, as a whole HTML document.
pub fn knee_page(report: &KneeReport) -> String {
    let title = title(report);
    let charts = chart::of_knee(report);
    let asked = html! { p.soft { (printable(&asked(report))) } };
    let body = html! {
        (header(&title, &report.screen(Rest::Flag), &asked))
        main { @for chart in &charts { (chart.render()) } }
        footer {
            "Plimsoll " (printable(&report.tool_version)) ", profile " (printable(&report.profile))
            ", began " (printable(&report.started)) ". " (document::notation())
        }
    };
    document(&title, &body, &charts)
}

fn title(report: &KneeReport) -> String {
    match report.knees.as_slice() {
        [one] => format!("Capacity of {}", name_of(one)),
        several => format!("Capacity of {} targets", several.len()),
    }
}

fn asked(report: &KneeReport) -> String {
    format!(
        "Objective: {} of all planned requests. One that fails, is refused or is never sent misses it. The capacity is the highest load that meets it.",
        report.objective
    )
}
