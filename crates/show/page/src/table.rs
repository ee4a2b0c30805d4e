//! Tables: the numbers of a chart, and the tables at the head of the page.

use maud::{Markup, html};
use plimsoll_report::printable;
use plimsoll_report::table::Table;

/// Renders a table; a wide one scrolls by itself, so that the page does not. A row with only a name
/// takes the whole width.
pub(crate) fn render_table(table: &Table) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table {
                thead { tr { @for cell in &table.head { th scope="col" { (printable(cell)) } } } }
                tbody {
                    @for row in &table.rows { tr { (cells(row, table.head.len())) } }
                }
            }
        }
    }
}

fn cells(row: &[String], columns: usize) -> Markup {
    html! {
        @if let ([name], 2..) = (row, columns) {
            td colspan=(columns) { (printable(name)) }
        } @else {
            @for cell in row { td { (printable(cell)) } }
        }
    }
}
