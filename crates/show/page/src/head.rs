//! The head of a run's page: the content of its screen, with facts and main figures in between.

use maud::{Markup, html};
use plimsoll_report::run_screen;
use plimsoll_report::screen::{Rest, Screen};

use crate::chart::Chart;
use crate::input::Input;
use crate::{cards, outcome};

/// The result shown on the page: for a comparison, the screen of its targets with the chapters of
/// its run. Consequences of the run's own validity are among its reasons and warnings.
pub(crate) fn screen(input: &Input<'_>) -> Screen {
    match input.versus {
        Some(versus) => plimsoll_versus::report(versus, input.summary),
        None => run_screen(input.summary, Rest::Flag),
    }
}

/// The verdict, the curves of a sweep, the reasons, and the figures by stage, or by target for a
/// comparison.
pub(crate) fn render(input: &Input<'_>, screen: &Screen, curves: &[Chart]) -> Markup {
    let metadata = &input.summary.metadata;
    let between = html! {
        @if !curves.is_empty() { div.curves { @for chart in curves { (chart.render()) } } }
        (cards::facts(metadata))
        // Figures pooled over all targets of a comparison, or over all levels, describe none of
        // them.
        @if input.versus.is_none() && curves.is_empty() { (cards::cards(input.summary)) }
    };
    outcome::header(&metadata.run.name, screen, &between)
}
