//! The curves of a sweep: request times, and the speed of one user, by throughput.

use plimsoll_knee::Objective;
use plimsoll_metrics::{DistributionSummary, Group, Metric, RunSummary};
use plimsoll_report::format::{digits, middle, or_dash, time};
use plimsoll_report::levels::{
    RateFigure, is_sweep, level_name, measured, pareto, speed, throughput,
};
use serde_json::{Value, json};

use super::{Cell, Chart, Rows};

/// Minimum number of levels of a curve.
const FEWEST: usize = 2;

/// The curves of a sweep; empty for other runs.
pub(crate) fn curves(summary: &RunSummary) -> Vec<Chart> {
    let levels: Vec<_> = measured(summary).collect();
    if !is_sweep(summary) || levels.len() < FEWEST {
        return Vec::new();
    }
    let streams = levels.iter().any(|level| level.distribution(Metric::Ttft).is_some());
    let metric = if streams { Metric::Ttft } else { summary.metadata.headline_time() };
    let counts_tokens = levels.iter().any(|level| level.token_rate().is_some());
    let unit = if counts_tokens { "tokens/s" } else { "requests/s" };
    let rows = rows(summary, &levels, metric);
    let objective = Bound::of(summary);
    let about = format!("{} against throughput in {unit}", metric.title());
    let spec = include_str!("../../assets/charts/levels-time.json");
    let chart = Chart::named("levels-time", &about, spec, &rows);
    let mut charts = vec![chart.with("objective", objective.line("y", metric.name(), |ms| ms))];
    if levels.iter().any(|level| level.distribution(Metric::Tpot).is_some()) {
        let spec = include_str!("../../assets/charts/levels-speed.json");
        let chart = Chart::named("levels-speed", "", spec, &rows);
        charts.push(chart.with("objective", objective.line("x", "tpot", |ms| 1e3 / ms)));
    }
    charts
}

/// The first bound of a good request.
struct Bound(Option<(String, f64)>);

impl Bound {
    fn of(summary: &RunSummary) -> Self {
        let goodput = summary.metadata.goodput.as_ref();
        let objective = goodput.and_then(|text| format!("{text} : 99%").parse::<Objective>().ok());
        let bound = objective.as_ref().and_then(Objective::first_bound);
        Self(bound.map(|(name, bound)| (name.to_owned(), bound.as_millis_f64())))
    }

    /// A line across the chart of a metric at its bound.
    fn line(&self, axis: &str, metric: &str, value: impl Fn(f64) -> f64) -> Value {
        let bound = self.0.iter().filter(|(name, _)| name == metric);
        bound
            .map(|(name, ms)| json!({axis: value(*ms), "meaning": format!("{name} < {}", time(*ms))}))
            .collect()
    }
}

fn rows(summary: &RunSummary, levels: &[&Group], metric: Metric) -> Rows {
    let (mut rows, best) = (Rows::named("levels-time"), pareto(summary));
    rows.cells.extend(levels.iter().enumerate().map(|(nth, level)| {
        let times = level.distribution(metric).and_then(DistributionSummary::middle);
        let (all, one) = (throughput(level), speed(level));
        let median = or_dash(times, |times| middle(&times));
        let ends = or_dash(times, |times| times.ends.map(time).join(" to "));
        let mark = if best.contains(&nth) { "Pareto-optimal" } else { "other levels" };
        let mut cells = vec![
            Cell::text(&level_name(summary, level.stage.as_deref().unwrap_or_default())),
            per_s(all),
            Cell::new(median.clone(), median),
            Cell::new(ends.clone(), ends),
            per_s(one),
            Cell::count(times.map_or(0, |times| times.count)),
            Cell::value(nth),
            Cell::value(mark),
        ];
        cells.extend(drawn_rate(all));
        let time = times.map(|times| [times.figure.value, times.ends[0], times.ends[1]]);
        cells.extend((0..3).map(|end| Cell::value(time.map(|time| time[end]))));
        cells.extend(drawn_rate(one));
        cells
    }));
    rows
}

/// A rate and the ends of its interval.
fn drawn_rate(rate: Option<RateFigure>) -> impl Iterator<Item = Cell> {
    let ends = rate.map(|rate| [rate.value, rate.low, rate.high.unwrap_or(rate.value)]);
    (0..3).map(move |end| Cell::value(ends.map(|ends| ends[end])))
}

fn per_s(rate: Option<RateFigure>) -> Cell {
    let text = or_dash(rate, |rate| digits(rate.value));
    Cell::new(text.clone(), text)
}
