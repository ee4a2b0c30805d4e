//! What each target adds, with 95 % intervals: the differences of pairs of a comparison.

use maud::html;
use plimsoll_report::format::{DASH, count, difference, or_dash, p_value};
use plimsoll_report::printable;
use plimsoll_versus::{Difference, Figure, Versus};

use crate::axis::Axis;
use crate::drawn_chart::Chart;
use crate::plot::{Plot, WIDTH, legend, place};
use crate::table::Table;

const NANOS: f64 = 1e6;
const ROW: f64 = 38.0;
const TOP: f64 = 10.0;

/// What is added to the headline figure, at the median; of an invalid comparison nothing.
pub(super) fn chart(versus: &Versus) -> Option<Chart> {
    if !versus.invalid.is_empty() {
        return None;
    }
    let reference = versus.reference();
    let shown: Vec<&Difference> = versus.headline_added().collect();
    let measured = || shown.iter().filter_map(|d| d.measured());
    let low = measured().map(|(_, low, _)| low).fold(0.0, f64::min) / NANOS;
    let high = measured().map(|(_, _, high)| high).fold(0.0, f64::max) / NANOS;
    if measured().count() == 0 {
        return None;
    }
    let spare = (high - low) * 0.04;
    let x = Axis::linear(low - spare, high + spare);
    let plot = Plot { x, y: Axis::linear(0.0, 1.0) };
    let height = TOP + ROW * shown.len() as f64 + 36.0;
    Some(Chart {
        id: "added".to_owned(),
        title: format!("What each target adds to the {}", title(versus.headline)),
        text: format!(
            "Median of the differences to {}, request by request, with 95 % intervals; an interval that holds 0 shows no difference.",
            printable(reference)
        ),
        drawing: drawing(&plot, &shown, height),
        height: Some(height),
        legend: legend(&[]),
        table: table(versus),
    })
}

const fn title(figure: Figure) -> &'static str {
    figure.title()
}

fn drawing(plot: &Plot, shown: &[&Difference], height: f64) -> maud::Markup {
    let bottom = height - 30.0;
    let millis = |ms: f64| difference(ms, ms, ms).split(" [").next().unwrap_or_default().to_owned();
    html! {
        @for tick in plot.x.ticks() {
            @let x = place(plot.x(tick));
            line.grid x1=(x) x2=(x) y1=(place(TOP)) y2=(place(bottom)) {}
            text x=(x) y=(place(bottom + 16.0)) text-anchor="middle" { (millis(tick)) }
        }
        line.zero x1=(place(plot.x(0.0))) x2=(place(plot.x(0.0))) y1=(place(TOP)) y2=(place(bottom)) {}
        @for (row, difference) in shown.iter().enumerate() {
            @let y = TOP + ROW * row as f64 + 28.0;
            @let value = difference.measured().map_or_else(
                || format!("{DASH} ({})", difference.refused.as_deref().unwrap_or("not known")), in_words);
            text x="4" y=(place(y - 12.0)) {
                (printable(&difference.target)) " " (difference.quantile) ": " (printable(&value))
            }
            @if let Some((value, low, high)) = difference.measured() {
                @let (value, low, high) = (plot.x(value / NANOS), plot.x(low / NANOS), plot.x(high / NANOS));
                path class="l l0" style="stroke-dasharray:none" stroke-width="2.5" d=(format!("M{} {}H{}", place(low), place(y), place(high))) {}
                circle.f0 cx=(place(value)) cy=(place(y)) r="4" {}
            }
        }
        text.soft x=(place(WIDTH - 10.0)) y=(place(height - 1.0)) text-anchor="end" { "added time" }
    }
}

fn in_words((value, low, high): (f64, f64, f64)) -> String {
    difference(value / NANOS, low / NANOS, high / NANOS)
}

/// Every difference to the reference and between targets.
fn table(versus: &Versus) -> Table {
    let mut table = Table::new(&[
        "target",
        "against",
        "figure",
        "what",
        "percentile",
        "difference [95 %]",
        "p",
        "pairs",
    ]);
    for of in &versus.differences {
        table.rows.push(vec![
            of.target.clone(),
            of.reference.clone(),
            title(of.figure).to_owned(),
            of.kind.name().replace('_', " "),
            of.quantile.clone(),
            of.measured().map_or_else(
                || format!("{DASH} {}", of.refused.clone().unwrap_or_default()),
                in_words,
            ),
            or_dash(of.p, p_value),
            count(of.pairs),
        ]);
    }
    table
}
