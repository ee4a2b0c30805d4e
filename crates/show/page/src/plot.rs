//! The frame of a chart: its size, axes, labels and legend, in SVG.

use maud::{Markup, html};
use plimsoll_report::format::{digits, time};

use crate::axis::Axis;

/// Units of the drawing; the page scales it.
pub(crate) const WIDTH: f64 = 480.0;
pub(crate) const HEIGHT: f64 = 250.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;

/// A place in the drawing, with one decimal.
pub(crate) fn place(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// A number beside an axis, short: `850`, `12k`, `1.5M`.
pub(crate) fn short(value: f64) -> String {
    let (unit, size) = match value.abs() {
        large if large >= 1e6 => ("M", 1e6),
        large if large >= 1e4 => ("k", 1e3),
        _ => return without_zeros(&digits(value)),
    };
    format!("{}{unit}", without_zeros(&format!("{:.1}", value / size)))
}

/// A time beside an axis, from milliseconds: `50ms` and not `50.0ms`.
pub(crate) fn short_time(millis: f64) -> String {
    let text = time(millis);
    let unit = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    format!("{}{unit}", without_zeros(number))
}

/// The same with the sign of a difference.
pub(crate) fn signed_time(millis: f64) -> String {
    format!("{}{}", if millis > 0.0 { "+" } else { "" }, short_time(millis))
}

/// A number without the zeros that end it after the point.
pub(crate) fn without_zeros(number: &str) -> String {
    if !number.contains('.') {
        return number.to_owned();
    }
    number.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Two axes, and the place between them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plot {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
}

impl Plot {
    pub(crate) fn x(&self, value: f64) -> f64 {
        LEFT + self.x.at(value) * (WIDTH - LEFT - RIGHT)
    }

    pub(crate) fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.at(value) * (HEIGHT - TOP - BOTTOM)
    }

    /// Lines and labels of both axes.
    pub(crate) fn axes(
        &self,
        x_label: &dyn Fn(f64) -> String,
        y_label: &dyn Fn(f64) -> String,
        title: &str,
    ) -> Markup {
        let bottom = HEIGHT - BOTTOM;
        html! {
            @for tick in self.y.ticks() {
                @let y = self.y(tick);
                line.grid x1=(place(LEFT)) x2=(place(WIDTH - RIGHT)) y1=(place(y)) y2=(place(y)) {}
                text x=(place(LEFT - 5.0)) y=(place(y + 4.0)) text-anchor="end" { (y_label(tick)) }
            }
            @for (nth, tick) in self.x.ticks().into_iter().enumerate() {
                @let x = self.x(tick);
                line.frame x1=(place(x)) x2=(place(x)) y1=(place(bottom)) y2=(place(bottom + 4.0)) {}
                text.spare[self.x.is_spare(nth, tick)] x=(place(x)) y=(place(bottom + 16.0)) text-anchor="middle" {
                    (x_label(tick))
                }
            }
            text.soft x=(place(WIDTH - 6.0)) y=(place(HEIGHT - 3.0)) text-anchor="end" { (title) }
        }
    }

    /// The axis of rows that stand below each other between two heights: lines over all of them,
    /// labels below.
    pub(crate) fn upright(
        &self,
        top: f64,
        bottom: f64,
        label: &dyn Fn(f64) -> String,
        title: &str,
    ) -> Markup {
        let outward = if self.x.is_symmetric() { ", logarithmic from 0 outward" } else { "" };
        html! {
            @for (nth, tick) in self.x.ticks().into_iter().enumerate() {
                @let x = place(self.x(tick));
                line.grid x1=(x) x2=(x) y1=(place(top)) y2=(place(bottom)) {}
                text.spare[self.x.is_spare(nth, tick)] x=(x) y=(place(bottom + 16.0)) text-anchor="middle" {
                    (label(tick))
                }
            }
            text.soft x=(place(WIDTH - 6.0)) y=(place(bottom + 36.0)) text-anchor="end" { (title) (outward) }
        }
    }

    /// A line through points; `None` interrupts it. A point between two gaps is a dot.
    pub(crate) fn line(&self, class: &str, points: &[Option<(f64, f64)>]) -> Markup {
        let runs = points.split(Option::is_none).map(|run| self.run(run));
        let path: Vec<_> = runs.collect();
        let path = path.concat();
        html! { path class=(format!("l {class}")) d=(path) stroke-linecap="round" {} }
    }

    /// A line without gaps; one point is a dot.
    fn run(&self, points: &[Option<(f64, f64)>]) -> String {
        let places: Vec<_> = points
            .iter()
            .flatten()
            .map(|(x, y): &(f64, f64)| format!("{} {}", place(self.x(*x)), place(self.y(*y))))
            .collect();
        match places.as_slice() {
            [] => String::new(),
            [one] => format!("M{one}m-2 0h4"),
            several => format!("M{}", several.join("L")),
        }
    }

    /// A band over the whole height between two values of x.
    pub(crate) fn band(&self, class: &str, from: f64, to: f64) -> Markup {
        let (from, to) = (self.x(from), self.x(to));
        html! {
            rect class=(class) x=(place(from)) width=(place((to - from).max(1.0)))
                y=(place(TOP)) height=(place(HEIGHT - TOP - BOTTOM)) {}
        }
    }

    /// A band over the whole width between two values of y.
    pub(crate) fn stripe(&self, class: &str, from: f64, to: f64) -> Markup {
        let (bottom, top) = (self.y(from), self.y(to));
        html! {
            rect class=(class) x=(place(LEFT)) width=(place(WIDTH - LEFT - RIGHT))
                y=(place(top)) height=(place((bottom - top).max(1.0))) {}
        }
    }

    /// A line over the whole width at a value of y.
    pub(crate) fn level(&self, class: &str, at: f64) -> Markup {
        let y = self.y(at);
        html! {
            line class=(class) x1=(place(LEFT)) x2=(place(WIDTH - RIGHT)) y1=(place(y)) y2=(place(y)) {}
        }
    }

    /// A line over the whole height at a value of x.
    pub(crate) fn rule(&self, class: &str, at: f64) -> Markup {
        let x = self.x(at);
        html! {
            line class=(class) x1=(place(x)) x2=(place(x)) y1=(place(TOP)) y2=(place(HEIGHT - BOTTOM)) {}
        }
    }
}

/// What lines and areas mean, below a chart: class of the mark, and words.
pub(crate) fn legend(entries: &[(String, String)]) -> Markup {
    legend_with(&[], entries)
}

/// The same with shapes before them: each drawn in the middle of 24 x 10, and words.
pub(crate) fn legend_with(shapes: &[(Markup, String)], entries: &[(String, String)]) -> Markup {
    let samples = entries.iter().map(|(class, words)| {
        let drawn = html! {
            @if class.starts_with('l') || class.starts_with("p5") || class.starts_with("p9") {
                path class=(format!("l {class}")) d="M1 5H23" {}
            } @else {
                rect class=(class) width="24" height="10" {}
            }
        };
        (drawn, words.clone())
    });
    html! {
        p.soft {
            @for (drawn, words) in shapes.iter().cloned().chain(samples) {
                span.entry {
                    svg viewBox="0 0 24 10" style="display:inline-block;width:24px;height:10px" aria-hidden="true" {
                        (drawn)
                    }
                    " " (words)
                }
            }
        }
    }
}

/// The class of the line of a series; colours begin again after six.
pub(crate) fn series(nth: usize) -> String {
    format!("l{}", nth % 6)
}
