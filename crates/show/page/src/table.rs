//! Tables: the numbers of a chart, and those at the head of the page.

use maud::{Markup, html};
use plimsoll_report::printable;
use plimsoll_report::table::Table as Texts;

/// A table of texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl From<Texts> for Table {
    fn from(Texts { head, rows }: Texts) -> Self {
        Self { head, rows }
    }
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    /// The table; a wide one scrolls by itself, so that the page does not. A row of nothing but a
    /// name takes the whole width.
    pub(crate) fn render(&self) -> Markup {
        html! {
            div.scroll tabindex="0" {
                table {
                    thead { tr { @for cell in &self.head { th scope="col" { (printable(cell)) } } } }
                    tbody {
                        @for row in &self.rows { tr { (self.cells(row)) } }
                    }
                }
            }
        }
    }

    fn cells(&self, row: &[String]) -> Markup {
        html! {
            @if let ([name], 2..) = (row, self.head.len()) {
                td colspan=(self.head.len()) { (printable(name)) }
            } @else {
                @for cell in row { td { (printable(cell)) } }
            }
        }
    }
}
