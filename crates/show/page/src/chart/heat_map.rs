//! Times over time: how many requests took how long in each interval, with p50 and p99.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use maud::html;
use plimsoll_metrics::timeline::bin_start_ms;
use plimsoll_metrics::{Metric, RunSummary, RunTimeline, TimelineInterval, TimelineTimes};
use plimsoll_report::format::{count, or_dash, time};
use plimsoll_report::printable;
use plimsoll_report::table::Table;

use crate::axis::Axis;
use crate::drawn_chart::Chart;
use crate::over_time;
use crate::plot::{Plot, legend, place, short_time};

/// The most columns and rows of cells.
const COLUMNS: usize = 240;
const ROWS: u32 = 60;
/// Shades, from few requests to many.
const SHADES: usize = 6;

/// A map for each target, of the headline time and of what streams have.
pub(super) fn charts(summary: &RunSummary, timeline: &RunTimeline) -> Vec<Chart> {
    let metrics = [summary.metadata.headline_time(), Metric::Ttft, Metric::Itl];
    let mut charts = Vec::new();
    for (nth, metric) in metrics.into_iter().enumerate() {
        for (index, target) in timeline.targets.iter().enumerate() {
            let id = ["times", "ttft", "itl"][nth];
            charts.extend(chart(timeline, metric, format!("{id}-{index}"), target));
        }
    }
    charts
}

/// The times of a target in an interval, by stage.
fn times<'t>(
    interval: &'t TimelineInterval,
    metric: Metric,
    target: &'t str,
) -> impl Iterator<Item = (&'t str, &'t TimelineTimes)> {
    let of_target = interval.groups.iter().filter(move |group| group.target == target);
    of_target.filter_map(move |group| Some((&*group.stage, group.times.get(metric.key())?)))
}

fn chart(timeline: &RunTimeline, metric: Metric, id: String, target: &str) -> Option<Chart> {
    let all = timeline.intervals.iter().flat_map(|interval| times(interval, metric, target));
    let all: Vec<&TimelineTimes> = all.map(|(_, times)| times).collect();
    let bins = all.iter().flat_map(|times| times.bins.iter().map(|(bin, _)| *bin));
    let (lowest, highest) = (bins.clone().min()?, bins.max()?);
    let y = Axis::log(bin_start_ms(lowest), bin_start_ms(highest + 1));
    let plot = Plot { x: over_time::axis(timeline), y };
    let cells = Cells::count(timeline, metric, target, lowest, highest);
    let shades = cells.paths(&plot);
    let most: Vec<_> = timeline
        .intervals
        .iter()
        .map(|interval| {
            let (_, times) =
                times(interval, metric, target).max_by_key(|(_, times)| times.count)?;
            Some((over_time::middle(interval), times))
        })
        .collect();
    let p50: Vec<_> =
        most.iter().map(|at| at.and_then(|(x, times)| Some((x, times.p50?)))).collect();
    let p99: Vec<_> =
        most.iter().map(|at| at.and_then(|(x, times)| Some((x, times.p99?)))).collect();
    let what = format!("{}: the stronger the colour, the more", values(metric));
    let mut entries = vec![("h".to_owned(), what)];
    if p50.iter().any(Option::is_some) {
        entries.push(("p50".to_owned(), "p50".to_owned()));
    }
    if p99.iter().any(Option::is_some) {
        entries.push(("p99".to_owned(), "p99".to_owned()));
    }
    entries.extend(over_time::legend(timeline, true));
    Some(Chart {
        id,
        title: format!("{} over time: {}", metric.title(), printable(target)),
        text: text(metric, all.iter().map(|times| times.count).sum(), timeline, target),
        drawing: html! {
            (over_time::stages(&plot, timeline))
            (over_time::stalls(&plot, timeline))
            (plot.axes(&over_time::second, &short_time, "second in which a request ended"))
            @for (shade, path) in shades.iter().enumerate() {
                path.h d=(path) opacity=(format!("{:.2}", (shade + 1) as f64 / SHADES as f64)) {}
            }
            (plot.line("p50", &p50))
            (plot.line("p99", &p99))
        },
        height: None,
        legend: legend(&entries),
        table: table(timeline, metric, target),
    })
}

/// How many there are, and in which interval the longest was, where every interval has one.
fn text(metric: Metric, number: u64, timeline: &RunTimeline, target: &str) -> String {
    let longest = timeline
        .intervals
        .iter()
        .flat_map(|i| times(i, metric, target).map(move |(_, times)| (i.start_s, times.max)))
        .filter_map(|(at, max)| Some((at, max?)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let longest = longest.filter(|_| {
        !timeline
            .intervals
            .iter()
            .any(|i| times(i, metric, target).any(|(_, times)| times.refused.contains_key("max")))
    });
    let longest = longest.map_or(String::new(), |(at, max)| {
        format!(" The longest took {}, in second {}.", time(max), over_time::second(at))
    });
    format!("{} {}.{longest}", count(number), completed(metric))
}

/// What has a time of this metric.
const fn values(metric: Metric) -> &'static str {
    match metric {
        Metric::Itl => "gaps",
        _ => "requests",
    }
}

/// The same of which the times are known.
const fn completed(metric: Metric) -> &'static str {
    match metric {
        Metric::Itl => "gaps between tokens",
        _ => "completed requests",
    }
}

fn table(timeline: &RunTimeline, metric: Metric, target: &str) -> Table {
    let mut table = Table::new(["second", "stage", values(metric), "p50", "p90", "p99", "max"]);
    for interval in &timeline.intervals {
        for (stage, times) in times(interval, metric, target) {
            let figures = [times.p50, times.p90, times.p99, times.max];
            let mut row = vec![over_time::second(interval.start_s), stage.to_owned()];
            row.push(count(times.count));
            row.extend(figures.map(|figure| or_dash(figure, time)));
            table.rows.push(row);
        }
    }
    table
}

/// Requests by column and row.
struct Cells {
    counts: BTreeMap<(usize, u32), u64>,
    /// Left and right end of each column, in seconds.
    columns: Vec<(f64, f64)>,
    /// Bins of a row, and the first bin.
    bins: u32,
    first: u32,
}

impl Cells {
    fn count(timeline: &RunTimeline, metric: Metric, target: &str, first: u32, last: u32) -> Self {
        let bins = (last - first + 1).div_ceil(ROWS).max(1);
        let intervals = timeline.intervals.len().div_ceil(COLUMNS).max(1);
        let (mut counts, mut columns) = (BTreeMap::new(), Vec::new());
        for (column, chunk) in timeline.intervals.chunks(intervals).enumerate() {
            let ends = chunk.first().zip(chunk.last());
            columns.extend(ends.map(|(from, to)| (from.start_s, over_time::end(to))));
            let found = chunk.iter().flat_map(|interval| times(interval, metric, target));
            for (bin, n) in found.flat_map(|(_, times)| &times.bins) {
                *counts.entry((column, (bin - first) / bins)).or_default() += n;
            }
        }
        Self { counts, columns, bins, first }
    }

    /// A path for each shade. Shades are logarithmic, so that few slow requests are seen. Cells of
    /// one shade above each other are one.
    fn paths(&self, plot: &Plot) -> Vec<String> {
        let most = self.counts.values().copied().max().unwrap_or(1) as f64;
        let mut paths = vec![String::new(); SHADES];
        let mut runs: Vec<Run> = Vec::new();
        for ((column, row), n) in &self.counts {
            let share = ((*n as f64).ln_1p() / most.ln_1p()).clamp(0.0, 1.0);
            let shade = (1..SHADES).find(|s| share <= *s as f64 / SHADES as f64).unwrap_or(SHADES);
            let column = *column;
            match runs.last_mut() {
                Some(run) if (run.column, run.shade, run.end) == (column, shade, *row) => {
                    run.end += 1;
                }
                _ => runs.push(Run { column, shade, start: *row, end: row + 1 }),
            }
        }
        for run in &runs {
            self.draw(plot, run, &mut paths[run.shade - 1]);
        }
        paths
    }

    fn draw(&self, plot: &Plot, run: &Run, path: &mut String) {
        let Some((from, to)) = self.columns.get(run.column) else { return };
        let (left, right) = (plot.x(*from), plot.x(*to));
        let width = place((right - left).max(0.8));
        let [top, bottom] = [run.end, run.start]
            .map(|row| place(plot.y(bin_start_ms(self.first + row * self.bins))));
        let left = place(left);
        // Writing to a String cannot fail. What is filled needs no last side.
        let _ = write!(path, "M{left} {top}h{width}V{bottom}H{left}");
    }
}

/// Cells of a column above each other, of one shade.
struct Run {
    column: usize,
    shade: usize,
    start: u32,
    end: u32,
}
