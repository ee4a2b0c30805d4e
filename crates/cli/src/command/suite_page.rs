//! The page of a suite.

use plimsoll_page::{Suite, suite_page};
use plimsoll_report::screen::Rest;
use plimsoll_suite::Report;

/// `report.html` of a suite.
pub(super) fn page(report: &Report) -> String {
    let compared = report.comparisons.iter();
    suite_page(&Suite {
        name: &report.suite,
        screen: &report.screen(Rest::Flag),
        comparisons: compared.filter_map(|c| Some((&*c.label, c.versus.as_ref()?))).collect(),
    })
}
