//! `report.html`: the page of a run, a comparison, a suite or a capacity search, for the colleague
//! who receives the result.
//!
//! ```text
//! RunSummary + RunTimeline + Versus --page-------------> one HTML file
//! Comparison                        --comparison_page-->
//! Suite                             --suite_page------->
//! KneeReport                        --knee_page-------->
//! ```
//!
//! The file loads no resources: it works from a disk, by mail, on paper and in a screen reader. Its
//! scripts draw the charts (ADR 0110), and every chart has its numbers in a table below it, which
//! needs no script. The page computes no figures: it shows figures from the run's files, with the
//! same rules for missing values. The crate uses no files or sockets.

mod chart;
mod document;
mod head;
mod outcome;

pub use chart::{Input, Suite};
use head::Named;
use maud::{Markup, html};
pub use outcome::{comparison_page, knee_page, suite_page};
use plimsoll_report::screen::Rest;
use plimsoll_report::{printable, run_screen};

/// The page of a run, as a whole HTML document.
pub fn page(input: &Input<'_>) -> String {
    let named = Named::new(input);
    let input = &named.input(input);
    let (curves, screen) = (chart::curves(input.summary), head::screen(input));
    let run = input.versus.map(|_| run_screen(input.summary, Rest::Flag));
    // The chapters of a comparison are open, those of its run can be opened.
    let (open, closed) = match &run {
        Some(run) => (screen.chapters(), run.chapters()),
        None => (&[][..], screen.chapters()),
    };
    let mut charts = chart::all(input, !curves.is_empty());
    let body = html! {
        (head::render(input, &screen, &curves))
        main {
            @for chart in &charts { (chart.render()) }
            (outcome::cards(open))
            (outcome::folded(closed))
        }
        (footer(input))
    };
    charts.extend(curves);
    document::document(&input.summary.metadata.run.name, &body, &charts)
}

fn footer(input: &Input<'_>) -> Markup {
    let run = &input.summary.metadata.run;
    html! {
        footer {
            "Plimsoll " (printable(&run.tool_version)) ", seed " (run.seed) ", run "
            (printable(&run.run_id)) ". " (document::notation())
        }
    }
}
