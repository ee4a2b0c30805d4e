//! The head of the page of a run: what its screen says, between that its facts and main figures.

use maud::{Markup, html};
use plimsoll_report::run_screen;
use plimsoll_report::screen::{Rest, Screen};

use crate::chart::Chart;
use crate::input::Input;
use crate::{cards, outcome};

/// The result that the page shows: of a comparison, that of its targets with the chapters of its
/// run. What the run's own validity means for it is among its reasons and warnings.
pub(crate) fn screen(input: &Input<'_>) -> Screen {
    match input.versus {
        Some(versus) => plimsoll_versus::report(versus, input.summary),
        None => run_screen(input.summary, Rest::Flag),
    }
}

/// The verdict, the curves of a sweep, what speaks for it, and the figures by stage; of a
/// comparison, by target.
pub(crate) fn render(input: &Input<'_>, screen: &Screen, curves: &[Chart]) -> Markup {
    let metadata = &input.summary.metadata;
    let between = html! {
        @if !curves.is_empty() { div.curves { @for chart in curves { (chart.render()) } } }
        (cards::facts(metadata))
        // Over all targets of a comparison, or all levels, the figures are of none of them.
        @if input.versus.is_none() && curves.is_empty() { (cards::cards(input.summary)) }
    };
    outcome::header(&metadata.run.name, screen, &between)
}
