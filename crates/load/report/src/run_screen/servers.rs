//! Servers by their own metrics, and the use of prefix caches.

use plimsoll_metrics::{RunSummary, ServerFigure};

use crate::format;
use crate::levels::level_name;
use crate::screen::{Rows, Screen};
use crate::table::Table;

/// The most rows: as many as of stages.
const MOST: usize = 12;

/// Adds a line for each server and stage.
pub(super) fn add(screen: &mut Screen, summary: &RunSummary) {
    let loads: Vec<_> =
        summary.servers.iter().filter(|server| !server.figures.is_empty()).collect();
    let has_several = loads.iter().any(|server| server.stage != loads[0].stage);
    let shown: Vec<_> = ServerFigure::all()
        .filter(|figure| loads.iter().any(|server| server.figures.contains_key(figure.key)))
        .collect();
    let titles = std::iter::once("").chain(shown.iter().map(|figure| figure.title));
    let mut table = Table::new(titles.collect::<Vec<_>>());
    for server in loads {
        let stage = if has_several { level_name(summary, &server.stage) } else { String::new() };
        let name = format!("{} {stage}", server.name).trim_end().to_owned();
        let cells = shown.iter().map(|figure| {
            server.figure(figure.key).map(|value| figure_text(figure, value)).unwrap_or_default()
        });
        table.row(std::iter::once(name).chain(cells));
    }
    let rows = Rows { unit: "rows of servers", most: MOST, drops_columns: true, ..Rows::default() };
    screen.rows("servers, by their own metrics", Rows { table, ..rows });
}

/// A figure of a server as reports show it.
pub fn figure_text(figure: &ServerFigure, value: f64) -> String {
    match figure.format {
        "share" => format::percent(value),
        "time" => format::time(value),
        "count" => format!("{value:.0}"),
        _ => format::digits(value),
    }
}

/// The shared prefixes that were sent again, and how much of them caches served.
pub(super) fn prefix_cache(summary: &RunSummary) -> Option<String> {
    let total = &summary.results.total;
    let repeated = total.rates.repeated_share.filter(|share| *share > 0.0)?;
    let cached = total.rates.cached_share.filter(|share| *share > 0.0);
    let cached = cached.map_or_else(|| "none".to_owned(), format::percent);
    let mut parts = vec![format!("cached by usage: {cached}")];
    let last = summary.servers.last().map(|server| &server.stage);
    let several = summary.servers.iter().any(|server| Some(&server.stage) != last);
    for server in summary.servers.iter().filter(|server| Some(&server.stage) == last) {
        let stage = if several { format!(" in {}", server.stage) } else { String::new() };
        let share = server.figure("prefix_hit_share").map(format::percent);
        parts.extend(share.map(|share| format!("by {}{stage}: {share}", server.name)));
    }
    let repeated = format::percent(repeated);
    Some(format!(
        "Prefix cache: {repeated} of the input tokens were sent before; {}.",
        parts.join(", ")
    ))
}
