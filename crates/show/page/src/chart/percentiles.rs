//! Percentiles of each target or run; a line ends where its
//! samples end.

use maud::html;
use plimsoll_compare::Comparison;
use plimsoll_metrics::{DistributionSummary, Metric, QUANTILES, Quantile, RunSummary};
use plimsoll_report::format::{self, count, range};
use plimsoll_report::printable;
use plimsoll_report::table::Table;

use crate::axis::Axis;
use crate::drawn_chart::Chart;
use crate::plot::{Plot, legend, short_time};

/// Points of a line: ten for each factor of ten in rarity, up to one request in a million.
const PER_DECADE: i32 = 10;
const DECADES: i32 = 6;

/// A line: its name, how it is drawn, and its times.
struct Line {
    name: String,
    class: String,
    times: DistributionSummary,
}

/// All targets in one chart for the headline time and for each time of streams, without warm-up.
pub(super) fn of_run(summary: &RunSummary) -> impl Iterator<Item = Chart> {
    let time = summary.metadata.headline_time();
    let metrics = [
        ("percentiles", time),
        ("percentiles-ttft", Metric::Ttft),
        ("percentiles-itl", Metric::Itl),
    ];
    metrics.into_iter().filter_map(|(id, metric)| of_metric(summary, id, metric))
}

fn of_metric(summary: &RunSummary, id: &str, metric: Metric) -> Option<Chart> {
    let groups = summary.results.by_target.iter();
    let found = groups.filter_map(|group| {
        Some((
            group.target.as_deref().map(printable).unwrap_or_default().into(),
            group.distributions.get(metric.key())?,
        ))
    });
    let lines: Vec<Line> = found
        .enumerate()
        .map(|(nth, (name, times))| Line {
            name,
            class: format!("l{}", nth % 6),
            times: times.clone(),
        })
        .collect();
    let entries: Vec<_> = lines.iter().map(|l| (l.class.clone(), l.name.clone())).collect();
    chart(id, metric, &lines, &entries, sentence(&lines))
}

/// Every run of both sides, a line each, so that it is seen how much runs of one side differ.
pub(super) fn of_comparison(comparison: &Comparison) -> Option<Chart> {
    let times = comparison.times.as_ref()?;
    let metric = Metric::ALL.into_iter().find(|metric| metric.key() == times.metric)?;
    let old = lines_of_runs("old", "l0 thin", &times.base);
    let new = lines_of_runs("new", "l1 thin", &times.new);
    let text = format!("{} {}", spread("Old", &old), spread("New", &new));
    let lines: Vec<Line> = old.into_iter().chain(new).collect();
    let entries = [("l0", "old runs, a line each"), ("l1", "new runs")];
    let entries = entries.map(|(class, words)| (class.to_owned(), words.to_owned()));
    chart("percentiles", metric, &lines, &entries, text)
}

fn lines_of_runs(side: &str, class: &str, runs: &[Option<DistributionSummary>]) -> Vec<Line> {
    runs.iter()
        .enumerate()
        .filter_map(|(nth, times)| {
            let times = times.clone()?;
            Some(Line { name: format!("{side} {}", nth + 1), class: class.to_owned(), times })
        })
        .collect()
}

fn chart(
    id: &str,
    metric: Metric,
    lines: &[Line],
    entries: &[(String, String)],
    text: String,
) -> Option<Chart> {
    let points: Vec<Vec<Option<(f64, f64)>>> =
        lines.iter().map(|found| line(&found.times)).collect();
    let values = points.iter().flatten().flatten().map(|(_, ms)| *ms);
    let (low, high) = (values.clone().fold(f64::MAX, f64::min), values.fold(0.0, f64::max));
    if high <= 0.0 {
        return None;
    }
    let rarest = points.iter().flatten().flatten().map(|(x, _)| *x).fold(10.0, f64::max);
    let plot = Plot { x: Axis::log(1.0, rarest), y: Axis::log(low, high) };
    Some(Chart {
        id: id.to_owned(),
        title: format!("{} by percentile", metric.title()),
        text,
        drawing: html! {
            (plot.axes(&percentile, &short_time, "percentile"))
            @for (found, line) in lines.iter().zip(&points) { (plot.line(&found.class, line)) }
        },
        height: None,
        legend: legend(entries),
        table: table(lines),
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
    let one_in =
        (1..=PER_DECADE * DECADES).map(|n| 10f64.powf(f64::from(n) / f64::from(PER_DECADE)));
    let one_in: Vec<f64> = one_in.collect();
    let quantiles: Vec<f64> = one_in.iter().map(|n| 1.0 - 1.0 / n).collect();
    // A histogram that cannot be read has no line.
    let figures = times.figures_at(&quantiles).unwrap_or_default();
    one_in.into_iter().zip(figures).map(|(n, figure)| Some((n, figure?.value))).collect()
}

/// The percentiles that are said in words.
fn said() -> impl Iterator<Item = &'static Quantile> {
    QUANTILES.iter().filter(|q| ["p50", "p99"].contains(&q.key))
}

fn sentence(lines: &[Line]) -> String {
    lines
        .iter()
        .map(|Line { name, times, .. }: &Line| {
            let shown: Vec<_> = said()
                .map(|q| format!("{} {}", q.label, format::figure(times.figure(q))))
                .collect();
            format!("{name}: {} of {} requests", shown.join(", "), count(times.count))
        })
        .collect::<Vec<_>>()
        .join("; ")
        + "."
}

/// Between which values the percentiles of the runs of a side lie.
fn spread(side: &str, lines: &[Line]) -> String {
    let shown: Vec<_> = said()
        .map(|quantile| {
            let figures = lines.iter().map(|l| l.times.figure(quantile).map(|figure| figure.value));
            let values = figures.collect::<Option<Vec<f64>>>().unwrap_or_default();
            let (low, high) =
                (values.iter().copied().reduce(f64::min), values.into_iter().reduce(f64::max));
            match low.zip(high) {
                Some((low, high)) if low < high => {
                    format!("{} {} to {}", quantile.label, format::time(low), format::time(high))
                }
                low => {
                    format!(
                        "{} {}",
                        quantile.label,
                        format::or_dash(low, |(ms, _)| format::time(ms))
                    )
                }
            }
        })
        .collect();
    let s = if lines.len() == 1 { "" } else { "s" };
    format!("{side}, {} run{s}: {}.", lines.len(), shown.join(", "))
}

fn table(lines: &[Line]) -> Table {
    let mut table = Table::new(["of", "percentile", "time", "95 % interval", "requests"]);
    for Line { name, times, .. } in lines {
        for quantile in &QUANTILES {
            let figure = times.figure(quantile);
            let interval = figure.and_then(|figure| {
                let ci = times.interval(quantile)?;
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
