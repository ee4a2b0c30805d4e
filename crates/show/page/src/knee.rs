//! The page of a search: how much each target carries, and what it comes from.

use maud::{Markup, html};
use plimsoll_knee::KneeReport;
use plimsoll_report::format::{digits, or_dash};
use plimsoll_report::printable;
use plimsoll_report::screen::Tone;

use crate::chart::{self, name_of};
use crate::document::{self, document};
use crate::table::Table;

/// The page of a search of knees, as a whole HTML document.
pub fn knee_page(report: &KneeReport) -> String {
    let title = title(report);
    let charts = chart::of_knee(report);
    let body = html! {
        header {
            h1 { (printable(&title)) }
            p.soft { (printable(&asked(report))) }
            p.verdict { (verdict(report)) }
            @if report.interrupted { p.bad { "The search was interrupted: what follows is what was known then." } }
            (list(&sentences(report)))
            (targets(report).render())
        }
        main { @for chart in &charts { (chart.render()) } }
        footer {
            "Plimsoll " (printable(&report.tool_version)) ", profile " (printable(&report.profile))
            ", began " (printable(&report.started)) ". " (document::refused())
        }
    };
    document(&title, &body)
}

fn title(report: &KneeReport) -> String {
    match report.knees.as_slice() {
        [one] => format!("How much {} carries", name_of(one)),
        several => format!("How much {} targets carry", several.len()),
    }
}

fn asked(report: &KneeReport) -> String {
    format!(
        "Asked: {} of all requests that were due. One that fails, is refused or is never sent misses it. The knee is the highest load at which so many keep it.",
        report.objective
    )
}

/// The sentence of the verdict, its word in colour.
fn verdict(report: &KneeReport) -> Markup {
    let (tone, sentence) = report.verdict();
    let class = match tone {
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Unsure => "open",
    };
    let (word, rest) = sentence.split_once(':').unwrap_or((&sentence, ""));
    html! { span class=(class) { (printable(word)) } @if !rest.is_empty() { ":" (printable(rest)) } }
}

/// What limits each finding, and what else was found.
fn sentences(report: &KneeReport) -> Vec<String> {
    let several = report.knees.len() > 1;
    report
        .knees
        .iter()
        .flat_map(|knee| {
            let name = if several { format!("{}: ", name_of(knee)) } else { String::new() };
            let said = knee.knee.why.iter().cloned();
            let said = said.chain(knee.provider_sentence(report.load)).chain(knee.usl_sentence());
            said.map(|text| format!("{name}{text}")).collect::<Vec<_>>()
        })
        .collect()
}

fn list(items: &[String]) -> Markup {
    html! { @if !items.is_empty() { ul { @for item in items { li { (printable(item)) } } } } }
}

fn targets(report: &KneeReport) -> Table {
    let head = [
        "target",
        "found",
        "confirmed at",
        "for",
        "kept there",
        "goodput",
        "probes",
        "time",
        "URL",
    ];
    let mut table = Table::new(&head);
    for knee in &report.knees {
        let confirmed = knee.knee.confirmed;
        table.rows.push(vec![
            name_of(knee).to_owned(),
            knee.headline(report.load),
            or_dash(confirmed, |confirmed| report.load.text(confirmed.load)),
            or_dash(confirmed, |confirmed| format!("{:.0}s", confirmed.seconds)),
            or_dash(confirmed, |confirmed| confirmed.kept.text()),
            or_dash(knee.goodput, |goodput| format!("{}/s", digits(goodput.per_s))),
            knee.probes.len().to_string(),
            format!("{:.0}s", knee.took_s),
            knee.target.clone(),
        ]);
    }
    table
}
