//! Servers by their own metrics, and the use of prefix caches.

use plimsoll_metrics::{RunSummary, ServerFigure, ServerLoad};

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
        let stage = level_name(summary, &server.stage);
        let name = if has_several { format!("{} {stage}", server.name) } else { name(server) };
        let cells = shown.iter().map(|figure| {
            server.figure(figure.key).map(|value| figure_text(figure, value)).unwrap_or_default()
        });
        table.row(std::iter::once(name).chain(cells));
    }
    let rows = Rows { unit: "rows of servers", most: MOST, drops_columns: true, ..Rows::default() };
    screen.rows("servers, by their own metrics", Rows { table, ..rows });
}

fn name(server: &ServerLoad) -> String {
    let ServerLoad { name, server, .. } = server;
    if server.is_empty() { name.clone() } else { format!("{name} ({server})") }
}

/// A figure of a server as reports show it.
pub fn figure_text(figure: &ServerFigure, value: f64) -> String {
    match figure.format {
        "share" => format::percent(value),
        "time" => format::time(value),
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
    let mut names: Vec<_> = summary.servers.iter().map(|server| &server.name).collect();
    names.dedup();
    for name in names {
        let own = summary.servers.iter().filter(|server| server.name == *name);
        let shares: Vec<_> = own.filter_map(|server| server.figure("prefix_hit_share")).collect();
        let Some(low) = shares.iter().copied().reduce(f64::min) else { continue };
        let high = shares.iter().copied().fold(low, f64::max);
        let ends = [low, high].map(format::percent);
        let text = if ends[0] == ends[1] { ends[0].clone() } else { ends.join(" to ") };
        parts.push(format!("by {name}: {text}"));
    }
    let repeated = format::percent(repeated);
    Some(format!(
        "Prefix cache: {repeated} of the input tokens were sent before; {}.",
        parts.join(", ")
    ))
}
