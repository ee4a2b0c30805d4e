//! The page of a comparison of old and new runs: the verdict first, both sides next to each other.

use maud::{Markup, html};
use plimsoll_compare::{Comparison, RunRef, Verdict};
use plimsoll_report::format::utc;
use plimsoll_report::printable;

use crate::chart;
use crate::document::{self, document};
use crate::table::Table;

/// The page of a comparison, as a whole HTML document.
pub fn comparison_page(comparison: &Comparison) -> String {
    let shown = comparison.shown();
    let charts = chart::of_comparison(comparison, &shown.gates);
    let gates = Table { head: shown.gates.head.clone(), rows: shown.gates.rows.clone() };
    let body = html! {
        header {
            h1 { "Old runs against new ones" }
            p.soft { (printable(&shown.headline)) }
            p.verdict { (verdict(comparison)) }
            (list(&comparison.obstacles))
            @if !gates.rows.is_empty() { (gates.render()) }
            (list(&shown.explanations))
            @for fact in &shown.facts { p.soft { (printable(fact)) } }
            (sides(comparison))
        }
        main { @for chart in &charts { (chart.render()) } }
        footer {
            "The run is the unit: how much runs of unchanged code differ is seen only in repeats. "
            (document::refused())
        }
    };
    document(&shown.headline, &body)
}

/// The sentence of the verdict, its word in colour.
fn verdict(comparison: &Comparison) -> Markup {
    let sentence = comparison.verdict_sentence();
    let word = comparison.verdict.word();
    let class = match comparison.verdict {
        Verdict::Pass => "good",
        Verdict::Fail => "bad",
        Verdict::Inconclusive => "open",
    };
    let rest = sentence.strip_prefix(word).unwrap_or(&sentence);
    html! { span class=(class) { (word) } (printable(rest)) }
}

fn list(items: &[String]) -> Markup {
    html! {
        @if !items.is_empty() { ul { @for item in items { li { (printable(item)) } } } }
    }
}

/// Both sides next to each other, and in what they differ.
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
    let mut table = Table::new(&["run", "name", "started", "folder"]);
    for (nth, run) in runs.iter().enumerate() {
        let started = utc(run.started_unix_ns);
        table.rows.push(vec![(nth + 1).to_string(), run.name.clone(), started, run.path.clone()]);
    }
    html! { div { h2 { (name) ": " (runs.len()) @if runs.len() == 1 { " run" } @else { " runs" } } (table.render()) } }
}
