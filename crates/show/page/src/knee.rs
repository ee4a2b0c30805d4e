//! The page of a capacity search: the capacity of each target, and its probes.

use maud::html;
use plimsoll_knee::KneeReport;
use plimsoll_report::printable;
use plimsoll_report::screen::Rest;

use crate::chart::{self, name_of};
use crate::document::{self, document};
use crate::outcome;

/// The page of a capacity search, as a whole HTML document.
pub fn knee_page(report: &KneeReport) -> String {
    let title = title(report);
    let charts = chart::of_knee(report);
    let asked = html! { p.soft { (printable(&asked(report))) } };
    let body = html! {
        (outcome::header(&title, &report.screen(Rest::Flag), &asked))
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
