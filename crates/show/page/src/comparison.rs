//! The page of a comparison of old and new runs: the verdict first, then both sides next to each
//! other.

use maud::{Markup, html};
use plimsoll_compare::{Comparison, RunRef};
use plimsoll_report::format::utc;
use plimsoll_report::printable;
use plimsoll_report::table::Table;

use crate::document::{self, document};
use crate::table::render_table;
use crate::{chart, outcome};

/// The page of a comparison, as a whole HTML document.
pub fn comparison_page(comparison: &Comparison) -> String {
    const NAME: &str = "Old runs against new ones";
    let charts = [chart::gates(comparison), chart::runs_by_percentile(comparison)];
    let charts: Vec<_> = charts.into_iter().flatten().collect();
    let body = html! {
        (outcome::header(NAME, &comparison.screen(), &sides(comparison)))
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
