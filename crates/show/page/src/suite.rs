//! The page of a suite: the content of its screen, overhead, and every table of its file.

use maud::html;

use crate::document::document;
use crate::input::Suite;
use crate::{chart, outcome};

/// The page of a suite, as a whole HTML document.
pub fn suite_page(suite: &Suite<'_>) -> String {
    let name = format!("Suite {}", suite.name);
    let title = "Overhead of each target";
    let charts: Vec<_> = chart::added_in(title, &suite.comparisons).into_iter().collect();
    let body = html! {
        (outcome::header_without_tables(&name, suite.screen))
        main {
            @for chart in &charts { (chart.render()) }
            (outcome::cards(suite.screen))
        }
    };
    document(&name, &body, &charts)
}
