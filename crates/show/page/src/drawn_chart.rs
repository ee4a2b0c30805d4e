//! One chart: words, drawing and numbers.

use maud::{Markup, html};
use plimsoll_report::table::Table;

use crate::plot::{HEIGHT, WIDTH, place};
use crate::table::render_table;

/// A chart: what it shows in words, in a drawing and in numbers.
#[derive(Debug)]
pub(crate) struct Chart {
    /// Unique in the page; letters, digits and `-`.
    pub(crate) id: String,
    pub(crate) title: String,
    /// The main numbers in a sentence or two.
    pub(crate) text: String,
    pub(crate) drawing: Markup,
    /// Height of the drawing, where it is not that of all.
    pub(crate) height: Option<f64>,
    pub(crate) legend: Markup,
    pub(crate) table: Table,
}

impl Chart {
    pub(crate) fn render(&self) -> Markup {
        let height = self.height.unwrap_or(HEIGHT);
        let (title, text) = (format!("{}-title", self.id), format!("{}-text", self.id));
        html! {
            section id=(self.id) {
                h2 { (self.title) }
                p { (self.text) }
                figure {
                    svg role="img" aria-labelledby=(format!("{title} {text}"))
                        viewBox=(format!("0 0 {} {}", place(WIDTH), place(height))) {
                        title id=(title) { (self.title) }
                        desc id=(text) { (self.text) }
                        (self.drawing)
                    }
                    (self.legend)
                }
                details { summary { "the numbers" } (render_table(&self.table)) }
            }
        }
    }
}
