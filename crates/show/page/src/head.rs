//! The head of the page of a run: what its screen says, between that its facts and main figures.

use maud::{Markup, html};
use plimsoll_metrics::RunSummary;
use plimsoll_report::run_screen;
use plimsoll_report::screen::Rest;

use crate::document::with_code;
use crate::input::Input;
use crate::{cards, outcome};

/// The verdict, what speaks for it, and the figures by stage; of a comparison, by target.
pub(crate) fn render(input: &Input<'_>) -> Markup {
    let summary = input.summary;
    let metadata = &summary.metadata;
    let (screen, cards) = match input.versus {
        // What the run's own validity means for it is among its reasons and warnings. Over all
        // targets of a comparison the figures are of none of them.
        Some(versus) => (plimsoll_versus::screen(versus, summary, Rest::Flag), html! {}),
        None => (run_screen(summary, Rest::Flag), cards::cards(summary)),
    };
    let between = html! { (cards::facts(metadata)) (cards) };
    html! {
        (outcome::header(&metadata.run.name, &screen, &between))
        (notes(summary))
    }
}

fn notes(summary: &RunSummary) -> Markup {
    let notes = &summary.metadata.notes;
    html! {
        @if !notes.is_empty() {
            details { summary { "notes: " (notes.len()) } ul { @for note in notes { li { (with_code(note)) } } } }
        }
    }
}
