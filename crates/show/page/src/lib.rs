//! `report.html`: the page of a run, for the colleague to whom its result is sent.
//!
//! ```text
//! RunSummary + RunTimeline + Versus --page--> one HTML file
//! ```
//!
//! The file loads nothing and has no script: it works from a disk, by mail, on paper and in a
//! screen reader. Every chart is an SVG with a title and a description, and has its numbers in a
//! table below it. The page computes no figure: what it shows stands in the files of the run, with
//! the same rules of what is refused. Nothing here knows files or sockets.

mod axis;
mod chart;
mod drawn_chart;
mod head;
mod input;
mod over_time;
mod plot;
mod style;
mod table;

pub use input::Input;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use plimsoll_report::printable;

/// Nothing is loaded, and nothing runs.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// The page, as a whole HTML document.
pub fn page(input: &Input<'_>) -> String {
    let name = printable(&input.summary.metadata.run.name);
    let charts = chart::all(input);
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (name) " - Plimsoll" }
                style { (PreEscaped(style::CSS)) }
            }
            body {
                (head::render(input))
                main { @for chart in &charts { (chart.render()) } }
                (footer(input))
            }
        }
    };
    document.into_string()
}

fn footer(input: &Input<'_>) -> Markup {
    let run = &input.summary.metadata.run;
    html! {
        footer {
            "Plimsoll " (printable(&run.tool_version)) ", seed " (run.seed) ", run "
            (printable(&run.run_id)) ". A figure that the data do not carry is " b { "-" } ": "
            "fewer than 10 values beyond it, or it must not be used. Where one stands with " b { "!" }
            ", the generator's own part in it may be too large; with " b { "?" }
            ", too many requests had no end: do not use it."
        }
    }
}
