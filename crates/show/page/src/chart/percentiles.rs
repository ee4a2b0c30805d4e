//! Percentiles of each target, to the right ever rarer requests; a line ends where its samples end.

use maud::html;
use plimsoll_metrics::{DistributionSummary, Group, QUANTILES, RunSummary};
use plimsoll_report::format::{self, count, range};
use plimsoll_report::printable;

use crate::axis::Axis;
use crate::drawn_chart::Chart;
use crate::plot::{Plot, legend};
use crate::table::Table;

/// Points of a line: ten for each factor of ten in rarity, up to one request in a million.
const PER_DECADE: i32 = 10;
const DECADES: i32 = 6;

/// All targets in one chart, without warm-up.
pub(super) fn chart(summary: &RunSummary) -> Option<Chart> {
    let metric = summary.metadata.headline_time();
    let groups = &summary.results.by_target;
    let named =
        |group: &'_ Group| group.target.as_deref().map(printable).unwrap_or_default().to_string();
    let of =
        |group: &'_ Group| Some((named(group), group.distributions.get(metric.key())?.clone()));
    let lines: Vec<(String, DistributionSummary)> = groups.iter().filter_map(of).collect();
    let points: Vec<Vec<Option<(f64, f64)>>> = lines.iter().map(|(_, times)| line(times)).collect();
    let values = || points.iter().flatten().flatten().map(|(_, ms)| *ms);
    let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    if high <= 0.0 {
        return None;
    }
    let rarest = points.iter().flatten().flatten().map(|(x, _)| *x).fold(10.0, f64::max);
    let plot = Plot { x: Axis::log(1.0, rarest), y: Axis::log(low, high) };
    let class = |index: usize| format!("l{}", index % 6);
    let entries: Vec<_> =
        lines.iter().enumerate().map(|(index, line)| (class(index), line.0.clone())).collect();
    Some(Chart {
        id: "percentiles".to_owned(),
        title: format!("{} by percentile", metric.title()),
        text: sentence(&lines),
        drawing: html! {
            (plot.axes(&percentile, &format::time, "percentile, to the right ever rarer"))
            @for (index, line) in points.iter().enumerate() { (plot.line(&class(index), line)) }
        },
        height: None,
        legend: legend(&entries),
        table: table(&lines),
    })
}

/// `p90` where one request in ten takes longer.
fn percentile(one_in: f64) -> String {
    let percent = 100.0 * (1.0 - 1.0 / one_in);
    let text = format!("{percent:.4}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("p{text}")
}

/// One in how many requests takes longer, and the time in milliseconds.
fn line(times: &DistributionSummary) -> Vec<Option<(f64, f64)>> {
    let at = |n: i32| {
        let one_in = 10f64.powf(f64::from(n) / f64::from(PER_DECADE));
        // A histogram that cannot be read has no line.
        let figure = times.figure_at(1.0 - 1.0 / one_in).ok()??;
        Some((one_in, figure.usable()?))
    };
    (1..=PER_DECADE * DECADES).map(at).collect()
}

fn sentence(lines: &[(String, DistributionSummary)]) -> String {
    let of = |(name, times): &(String, DistributionSummary)| {
        let figures = QUANTILES.iter().filter(|q| ["p50", "p99"].contains(&q.key));
        let shown: Vec<_> =
            figures.map(|q| format!("{} {}", q.label, format::figure(times.figure(q)))).collect();
        format!("{name}: {} of {} requests", shown.join(", "), count(times.count))
    };
    lines.iter().map(of).collect::<Vec<_>>().join("; ") + "."
}

fn table(lines: &[(String, DistributionSummary)]) -> Table {
    let mut table = Table::new(&["target", "percentile", "time", "95 % interval", "requests"]);
    for (name, times) in lines {
        for quantile in &QUANTILES {
            let figure = times.figure(quantile);
            let interval = figure.and_then(|figure| {
                let ci = times.interval(quantile).filter(|_| figure.usable().is_some())?;
                Some(format!("[{}]", range(figure.value, ci.low, ci.high)))
            });
            table.rows.push(vec![
                name.clone(),
                quantile.label.to_owned(),
                format::figure(figure),
                interval.unwrap_or_else(|| format::DASH.to_owned()),
                count(times.count),
            ]);
        }
    }
    table
}
