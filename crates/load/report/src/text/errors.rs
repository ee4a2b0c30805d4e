//! Failures by error class and side, HTTP statuses, and errors of JSON-RPC.

use plimsoll_measure::ErrorClass;
use plimsoll_metrics::Group;
use plimsoll_metrics::catalog::side_word;

use super::table::Table;
use super::{Page, format};

pub(super) fn write(page: &mut Page, total: &Group) {
    if !total.errors.is_empty() {
        page.heading("Errors");
        page.table(&table(total));
    }
    if !total.statuses.is_empty() {
        let pairs =
            total.statuses.iter().map(|(code, n)| format!("{code} x {}", format::count(*n)));
        page.note(&format!("HTTP statuses: {}", pairs.collect::<Vec<_>>().join(", ")));
    }
    if !total.rpc_errors.is_empty() {
        let pairs =
            total.rpc_errors.iter().map(|(code, n)| format!("{code} x {}", format::count(*n)));
        page.note(&format!("JSON-RPC errors: {}", pairs.collect::<Vec<_>>().join(", ")));
    }
    let tool_errors = total.counters.tool_errors;
    if tool_errors > 0 {
        page.note(&format!(
            "{} completed requests came back with a tool's or a task's own error (`isError`, failed, \
             rejected). They are no failures of the target.",
            format::count(tool_errors)
        ));
    }
}

fn table(total: &Group) -> Table {
    let mut table = Table::new(["class", "side", "requests", "of scheduled"]);
    for class in ErrorClass::ALL {
        if let Some(&count) = total.errors.get(class.name()) {
            let share = count as f64 / total.counters.scheduled as f64;
            table.row(vec![
                class.name().to_owned(),
                side_word(class.side()).to_owned(),
                format::count(count),
                format::share(share),
            ]);
        }
    }
    table
}
