//! The shards of a merged run, side by side, and which of them is unlike the others.

use maud::{Markup, html};
use plimsoll_metrics::RunSummary;
use plimsoll_report::{odd_shards, printable, shard_table};

use crate::table::Table;

/// Nothing for a run that was not divided.
pub(crate) fn section(summary: &RunSummary) -> Markup {
    let Some(table) = shard_table(summary) else { return html! {} };
    html! {
        section id="shards" {
            h2 { "Shards" }
            @for sentence in odd_shards(summary) { p { (printable(&sentence)) } }
            (Table::from(table).render())
        }
    }
}
