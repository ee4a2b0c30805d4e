//! How the added time is distributed over the pairs of a comparison, the control in grey: whether
//! all requests pay, or a few pay much.

use std::fmt::Write as _;

use maud::html;
use plimsoll_report::format::{self, count};
use plimsoll_report::printable;
use plimsoll_report::table::Table;
use plimsoll_versus::{AddedDistribution, Difference, Role, Versus, added_bin_start_ns};

use crate::axis::Axis;
use crate::drawn_chart::Chart;
use crate::plot::{Plot, legend, place, short, signed_time};

/// The most steps of a line.
const STEPS: usize = 96;
/// Below this, the axis is about linear, as the bins are. In milliseconds.
const KNEE_MS: f64 = 1e-3;

/// The distributions that may be shown; `None` of an invalid comparison, or without pairs.
pub(super) fn chart(versus: &Versus) -> Option<Chart> {
    if !versus.invalid.is_empty() {
        return None;
    }
    let shown: Vec<_> = versus.added.iter().collect();
    let bins = shown.iter().flat_map(|found| found.bins.iter().map(|(bin, _)| *bin));
    let (first, last) = (bins.clone().min()?, bins.max()?);
    let width = usize::try_from(last - first).unwrap_or(0) / STEPS + 1;
    let steps: Vec<_> = shown.iter().map(|found| Steps::from_bins(found, first, width)).collect();
    let highest = steps.iter().flat_map(|s| &s.shares).copied().fold(0.0, f64::max);
    let plot = Plot { x: axis(&steps), y: Axis::from_zero(highest * 100.0) };
    let classes = classes(&shown, |found: &AddedDistribution| {
        versus.targets.iter().any(|t| t.name == found.target && t.role == Role::Control)
    });
    let entries: Vec<_> = classes
        .iter()
        .zip(&shown)
        .map(|(class, found)| (class.clone(), printable(&found.target).into_owned()))
        .collect();
    Some(Chart {
        id: "added-distribution".to_owned(),
        title: format!("How the added {} is distributed", versus.headline.title()),
        text: text(versus, &shown),
        drawing: html! {
            (plot.axes(&signed_time, &percent, "added time, logarithmic from 0 outward"))
            // Areas first, so that lines are seen before them.
            @for pass in [true, false] {
                @for (class, steps) in classes.iter().zip(&steps) {
                    @if class.starts_with('p') == pass { (steps.draw(&plot, class)) }
                }
            }
            (plot.rule("zero", 0.0))
        },
        height: None,
        legend: legend(&entries),
        table: table(&shown),
    })
}

/// The control is an area in grey; the others are lines.
fn classes(
    shown: &[&AddedDistribution],
    is_control: impl Fn(&AddedDistribution) -> bool,
) -> Vec<String> {
    let mut lines = (0..).map(|nth| format!("l{}", nth % 6));
    shown
        .iter()
        .map(|found| {
            let line = (!is_control(found)).then(|| lines.next()).flatten();
            line.unwrap_or_else(|| "pale".to_owned())
        })
        .collect()
}

fn axis(steps: &[Steps]) -> Axis {
    let low = steps.iter().map(|s| s.start(0)).fold(0.0, f64::min);
    let high = steps.iter().map(|s| s.start(s.shares.len())).fold(0.0, f64::max);
    Axis::symmetric(low, high, KNEE_MS)
}

fn percent(value: f64) -> String {
    format!("{}%", short(value))
}

/// Shares of all pairs in steps of so many bins.
struct Steps {
    first: i32,
    width: usize,
    shares: Vec<f64>,
}

impl Steps {
    fn from_bins(found: &AddedDistribution, first: i32, width: usize) -> Self {
        let mut shares = Vec::new();
        for (bin, pairs) in &found.bins {
            let nth = usize::try_from(bin - first).unwrap_or(0) / width;
            if shares.len() <= nth {
                shares.resize(nth + 1, 0.0);
            }
            shares[nth] += *pairs as f64 / found.pairs.max(1) as f64;
        }
        Self { first, width, shares }
    }

    /// Where a step begins, in milliseconds.
    fn start(&self, nth: usize) -> f64 {
        let bins = i32::try_from(nth * self.width).unwrap_or(i32::MAX);
        added_bin_start_ns(self.first.saturating_add(bins)) / 1e6
    }

    fn draw(&self, plot: &Plot, class: &str) -> maud::Markup {
        let bottom = place(plot.y(0.0));
        let begin = self.shares.iter().position(|share| *share > 0.0).unwrap_or(0);
        let mut path = format!("M{} {bottom}", place(plot.x(self.start(begin))));
        for (nth, share) in self.shares.iter().enumerate().skip(begin) {
            let (y, right) = (plot.y(share * 100.0), plot.x(self.start(nth + 1)));
            // Writing to a String cannot fail.
            let _ = write!(path, "V{}H{}", place(y), place(right));
        }
        let _ = write!(path, "V{bottom}");
        let class = if class.starts_with('l') { format!("l {class}") } else { class.to_owned() };
        html! { path class=(class) d=(path) {} }
    }
}

fn text(versus: &Versus, shown: &[&AddedDistribution]) -> String {
    let shown: Vec<_> = shown.iter().map(|found| sentence(versus, found)).collect();
    format!(
        "{}. Distribution of the added time; a second peak means that some requests pay more.",
        shown.join("; ")
    )
}

/// How many pairs a target has, and its median.
fn sentence(versus: &Versus, found: &AddedDistribution) -> String {
    let median = versus.headline_added().find(|known| known.target == found.target);
    let median = median.and_then(Difference::limited).map_or_else(String::new, |m| {
        format!(", median {}", format::difference(m.0 / 1e6, m.1 / 1e6, m.2 / 1e6))
    });
    format!("{}: {} pairs{median}", printable(&found.target), count(found.pairs))
}

/// The bins as the file has them.
fn table(shown: &[&AddedDistribution]) -> Table {
    let mut table = Table::new(["target", "from", "to", "pairs"]);
    for found in shown {
        for (bin, pairs) in &found.bins {
            let ends = [*bin, bin + 1].map(|bin| format::time(added_bin_start_ns(bin) / 1e6));
            let [from, to] = ends;
            table.rows.push(vec![found.target.clone(), from, to, count(*pairs)]);
        }
    }
    table
}
