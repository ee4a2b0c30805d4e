//! Forest plots: differences with their intervals, a row each, around a line at 0.

use maud::{Markup, html};
use plimsoll_report::printable;

use crate::axis::Axis;
use crate::mark::{Mark, shape};
use crate::plot::{Plot, place};

/// Height of a row, and of what stands above and below the rows of a panel.
const ROW: f64 = 42.0;
const CAPTION: f64 = 24.0;
const AXIS: f64 = 46.0;
/// Most characters of a row's words: at 360 pixels more do not fit.
const WORDS: usize = 48;

/// How far a figure may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) at: f64,
    /// Whether more is worse, so that what is below is allowed.
    pub(crate) more_is_worse: bool,
}

/// A difference.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// Its name, which may be cut.
    pub(crate) name: String,
    /// Its value in words, or why there is none.
    pub(crate) words: String,
    pub(crate) mark: Mark,
    /// Value, and its interval.
    pub(crate) value: Option<f64>,
    pub(crate) interval: Option<(f64, f64)>,
    /// A narrower interval that knows less.
    pub(crate) within: Option<(f64, f64)>,
    pub(crate) limit: Option<Limit>,
}

impl Row {
    fn ends(&self) -> impl Iterator<Item = f64> {
        let pairs = [self.interval, self.within].into_iter().flatten();
        let ends = pairs.flat_map(|(low, high)| [low, high]);
        self.value.into_iter().chain(ends)
    }

    /// The name and the value, in what fits in a line.
    fn label(&self) -> String {
        let name = printable(&self.name);
        let left = WORDS.saturating_sub(self.words.chars().count() + 2).max(14);
        format!("{}: {}", cut(&name, left), cut(&printable(&self.words), WORDS - 14))
    }
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let short: String = text.chars().take(most - 1).collect();
    short + "…"
}

/// Rows on one axis.
pub(crate) struct Panel<'a> {
    /// What its rows have in common; empty if there is nothing to say.
    pub(crate) caption: String,
    pub(crate) rows: Vec<Row>,
    /// A value beside the axis.
    pub(crate) label: &'a dyn Fn(f64) -> String,
    /// What the axis shows.
    pub(crate) axis: &'a str,
}

impl Panel<'_> {
    fn height(&self) -> f64 {
        self.caption_height() + ROW * self.rows.len() as f64 + AXIS
    }

    const fn caption_height(&self) -> f64 {
        if self.caption.is_empty() { 4.0 } else { CAPTION }
    }

    /// Whether there is anything to draw.
    pub(crate) fn has_value(&self) -> bool {
        self.rows.iter().any(|row| row.value.is_some())
    }

    fn x(&self) -> Axis {
        let limits = self.rows.iter().filter_map(|row| Some(row.limit?.at));
        let ends = self.rows.iter().flat_map(Row::ends).chain(limits);
        let (low, high) =
            ends.fold((0.0, 0.0), |(low, high): (f64, f64), end| (low.min(end), high.max(end)));
        let sizes = self.rows.iter().map(|row| row.ends().map(f64::abs).fold(0.0, f64::max));
        let margins = self.rows.iter().filter_map(|row| Some(row.limit?.at.abs()));
        let sizes: Vec<f64> = sizes.chain(margins).collect();
        Axis::of_differences(low, high, &sizes)
    }

    fn draw(&self) -> Markup {
        let plot = Plot { x: self.x(), y: Axis::linear(0.0, 1.0) };
        let top = self.caption_height();
        let bottom = top + ROW * self.rows.len() as f64 + 4.0;
        html! {
            @if !self.caption.is_empty() { text.caption x="4" y="15" { (printable(&self.caption)) } }
            @for (nth, row) in self.rows.iter().enumerate() {
                (band(&plot, row, top + ROW * nth as f64))
            }
            (plot.upright(top, bottom, self.label, self.axis))
            line.zero x1=(place(plot.x(0.0))) x2=(place(plot.x(0.0))) y1=(place(top)) y2=(place(bottom)) {}
            @for (nth, row) in self.rows.iter().enumerate() {
                (mark(&plot, row, top + ROW * nth as f64))
            }
        }
    }
}

/// Where the row may be.
fn band(plot: &Plot, row: &Row, top: f64) -> Markup {
    let Some(limit) = row.limit.filter(|_| row.value.is_some()) else { return html! {} };
    let (low, high) = (plot.x(plot.x.low()), plot.x(plot.x.high()));
    let at = plot.x(limit.at);
    let (from, to) = if limit.more_is_worse { (low, at) } else { (at, high) };
    let (top, height) = (place(top + 18.0), place(ROW - 20.0));
    html! {
        rect.ok x=(place(from)) width=(place((to - from).max(0.5))) y=(top) height=(height) {}
        path.margin d=(format!("M{} {top}v{height}", place(at))) {}
    }
}

/// The path of an interval.
fn across(plot: &Plot, y: f64, low: f64, high: f64) -> String {
    let right = plot.x(high).max(plot.x(low) + 0.5);
    format!("M{} {}H{}", place(plot.x(low)), place(y), place(right))
}

fn mark(plot: &Plot, row: &Row, top: f64) -> Markup {
    let y = top + 30.0;
    let (line, area) = row.mark.classes();
    html! {
        text.over x="4" y=(place(top + 14.0)) { (row.label()) }
        @if let Some((low, high)) = row.within { path class="l within" d=(across(plot, y, low, high)) {} }
        @if let Some((low, high)) = row.interval {
            path class=(format!("l {line}")) style="stroke-dasharray:none" stroke-width="2.5" d=(across(plot, y, low, high)) {}
        }
        @if let Some(value) = row.value { (shape(row.mark, area, plot.x(value), y)) }
    }
}

/// The panels below each other, and their height.
pub(crate) fn draw(panels: &[Panel<'_>]) -> (Markup, f64) {
    let mut top = 0.0;
    let drawn = html! {
        @for panel in panels {
            g transform=(format!("translate(0 {})", place(top))) { (panel.draw()) }
            ({ top += panel.height(); "" })
        }
    };
    (drawn, top)
}
