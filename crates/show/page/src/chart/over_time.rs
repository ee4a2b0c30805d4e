//! Charts over time: percentiles of times, and rates with errors.

use plimsoll_knee::Objective;
use plimsoll_metrics::{
    DistributionSummary, Group, Metric, QUANTILES, Quantile, RunSummary, RunTimeline, ServerFigure,
    TimelineGroup, TimelineInterval,
};
use plimsoll_report::figure_text;
use plimsoll_report::format::{DASH, difference, digits, middle, or_dash, p_value, range, time};
use plimsoll_report::levels::{
    RateFigure, is_sweep, level_name, measured, pareto, speed, throughput,
};
use plimsoll_versus::{Difference, Kind, Role, Versus};
use serde_json::{Value, json};

use super::{Cell, Chart, Rows};

/// Formats seconds from the start: `90`, or `1:30` from ten minutes on.
pub(super) fn second(at: f64) -> String {
    if at >= 600.0 {
        format!("{:.0}:{:02.0}", (at / 60.0).floor(), at % 60.0)
    } else if at.fract().abs() < 1e-9 {
        format!("{at:.0}")
    } else {
        digits(at)
    }
}

fn start_of(interval: &TimelineInterval) -> Cell {
    Cell::new(interval.start_s, second(interval.start_s))
}

/// The headline time, and the time to first token of streams.
pub(super) fn times(summary: &RunSummary, timeline: &RunTimeline) -> Vec<Chart> {
    let metrics = [("times", summary.metadata.headline_time()), ("ttft", Metric::Ttft)];
    metrics.into_iter().filter_map(|(id, metric)| times_of(id, metric, timeline)).collect()
}

fn times_of(id: &'static str, metric: Metric, timeline: &RunTimeline) -> Option<Chart> {
    let mut rows = Rows::named("times");
    for interval in &timeline.intervals {
        for group in &interval.groups {
            let Some(times) = group.times.get(metric.key()) else { continue };
            let figures = [times.p50, times.p90, times.p99, times.max];
            let names = [start_of(interval), Cell::text(&group.stage), Cell::text(&group.target)];
            let row = names.into_iter().chain([Cell::count(times.count)]);
            rows.cells.push(row.chain(figures.map(Cell::time)).collect());
        }
    }
    let spec = include_str!("../../assets/charts/times.json");
    let chart = Chart { id, ..Chart::named("times", metric.title(), spec, &rows) };
    let is_drawn = rows.cells.iter().any(|row| row[4].value.is_number());
    is_drawn.then(|| chart.with("warmup", warmup(timeline)))
}

/// The warm-up stages, drawn behind a chart.
fn warmup(timeline: &RunTimeline) -> Value {
    let stages = timeline.stages.iter().filter(|stage| stage.warmup);
    stages.map(|s| json!({"from": s.start_s, "to": s.start_s + s.duration_s})).collect()
}

/// Requests planned, sent, completed and failed per second.
pub(super) fn rates(timeline: &RunTimeline) -> Chart {
    let counts: [fn(&TimelineGroup) -> u64; 4] = [
        |group| group.due,
        |group| group.sent,
        |group| group.counters.completed,
        |group| group.counters.failures(),
    ];
    let mut rows = Rows::named("rates");
    // The last interval may be too short to divide by its length.
    let whole = timeline.intervals.iter().filter(|i| i.length_s >= timeline.interval_s * 0.5);
    for interval in whole {
        let rates = counts.map(|of| {
            let requests: u64 = interval.groups.iter().map(of).sum();
            Cell::rate(Some(requests as f64 / interval.length_s))
        });
        rows.cells.push([start_of(interval)].into_iter().chain(rates).collect());
    }
    let spec = include_str!("../../assets/charts/rates.json");
    Chart::named("rates", "", spec, &rows).with("warmup", warmup(timeline))
}

/// The figures of servers by their own metrics: requests, caches, tokens.
pub(super) fn servers(timeline: &RunTimeline) -> Vec<Chart> {
    let ids = ["server-queue", "server-cache", "server-tokens"];
    ids.into_iter().filter_map(|id| of_servers(id, timeline)).collect()
}

fn of_servers(id: &str, timeline: &RunTimeline) -> Option<Chart> {
    let mut rows = Rows::named(id);
    let of_each = timeline.intervals.iter().flat_map(|interval| {
        interval.servers.iter().map(move |(server, figures)| (interval, server, figures))
    });
    for (interval, server, figures) in of_each {
        let own = ServerFigure::all().filter(|figure| figure.chart == id);
        let known = own.filter_map(|figure| Some((figure, *figures.get(figure.key)?)));
        rows.cells.extend(known.map(|(figure, value)| {
            let drawn = value * if figure.format == "share" { 100.0 } else { 1.0 };
            let value = Cell::new(drawn, figure_text(figure, value));
            vec![start_of(interval), Cell::text(server), Cell::text(figure.title), value]
        }));
    }
    let spec = include_str!("../../assets/charts/server.json");
    let chart = Chart::named(id, "", spec, &rows).with("warmup", warmup(timeline));
    (!rows.cells.is_empty()).then_some(chart)
}

// Times by percentile.

/// A set of times: what it is of, the run among several, and the metric.
pub(super) struct Times<'a> {
    pub(super) of: &'a str,
    pub(super) run: usize,
    pub(super) metric: Metric,
    pub(super) distribution: &'a DistributionSummary,
}

/// The headline time and those of streams of each target, without warm-up.
pub(super) fn by_target(summary: &RunSummary) -> Option<Chart> {
    let metrics = [summary.metadata.headline_time(), Metric::Ttft, Metric::Itl];
    let groups = summary.results.by_target.iter();
    let found = groups.flat_map(|group| {
        metrics.into_iter().filter_map(|metric| {
            let distribution = group.distribution(metric)?;
            Some(Times { of: group.target.as_deref()?, run: 0, metric, distribution })
        })
    });
    chart("Times by percentile", &found.collect::<Vec<_>>())
}

/// A line for each set of times, with the interval of each percentile.
pub(super) fn chart(title: &str, sets: &[Times<'_>]) -> Option<Chart> {
    let mut rows = Rows::named("percentiles");
    for times in sets {
        rows.cells.extend(QUANTILES.iter().map(|quantile| row(times, quantile)));
    }
    let drawn = rows.cells.iter().any(|row| row[3].value.is_number());
    let spec = include_str!("../../assets/charts/percentiles.json");
    drawn.then(|| Chart::named("percentiles", title, spec, &rows))
}

fn row(times: &Times<'_>, quantile: &Quantile) -> Vec<Cell> {
    let figure = times.distribution.figure(quantile);
    let ci = figure.and_then(|_| times.distribution.interval(quantile));
    let interval = figure.zip(ci).map_or_else(
        || DASH.to_owned(),
        |(figure, ci)| format!("[{}]", range(figure.value, ci.low, ci.high)),
    );
    vec![
        Cell::text(times.of),
        Cell::text(times.metric.title()),
        Cell::text(quantile.label),
        Cell::figure(figure),
        Cell::new((), interval),
        Cell::count(times.distribution.count),
        Cell::value(1.0 / (1.0 - quantile.q)),
        Cell::value(times.run),
        Cell::value(ci.map(|ci| ci.low)),
        Cell::value(ci.map(|ci| ci.high)),
    ]
}

// The curves of a sweep: request times, and the speed of one user, by throughput.

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

// Overhead of each target: the paired differences, with their intervals.

const NANOS: f64 = 1e6;

/// The charts of comparisons, each with its name.
pub(crate) fn compared(title: &str, comparisons: &[(&str, &Versus)]) -> Vec<Chart> {
    [added(title, comparisons), curve(comparisons)].into_iter().flatten().collect()
}

/// The headline overhead of each target by rate, if the names of comparisons begin with one like
/// `20/s, chat`; else by round.
fn curve(comparisons: &[(&str, &Versus)]) -> Option<Chart> {
    let mut rows = Rows::named("curve");
    for (name, versus) in comparisons.iter().filter(|(_, versus)| versus.invalid.is_empty()) {
        let figure = versus.headline.title();
        if let Some((rate, what)) = name.split_once(", ").filter(|(rate, _)| rate.ends_with("/s")) {
            let figure = format!("{what}, {figure}");
            rows.cells.extend(versus.headline_added().filter_map(|found| {
                let (value, low, high) = found.limited()?;
                Some(point(rate, &found.target, &figure, [value, low, high]))
            }));
        } else {
            rows.cells.extend(versus.by_round.iter().filter_map(|round| {
                let at = format!("round {}", round.round);
                Some(point(&at, &round.target, figure, round.added_ns?))
            }));
        }
    }
    let first = rows.cells.first()?[0].text.clone();
    let is_curve = rows.cells.iter().any(|row| row[0].text != first);
    let spec = include_str!("../../assets/charts/curve.json");
    is_curve.then(|| Chart::named("curve", "", spec, &rows))
}

fn point(at: &str, target: &str, figure: &str, nanos: [f64; 3]) -> Vec<Cell> {
    let [value, low, high] = nanos.map(|nanos| nanos / NANOS);
    let names = [at, target, figure].map(Cell::text).into_iter();
    let words = Cell::new(value, difference(value, low, high));
    names.chain([words, Cell::value(low), Cell::value(high)]).collect()
}

/// The differences of valid comparisons, each with its name.
fn added(title: &str, comparisons: &[(&str, &Versus)]) -> Option<Chart> {
    let mut rows = Rows::named("added");
    for (name, versus) in comparisons.iter().filter(|(_, versus)| versus.invalid.is_empty()) {
        rows.cells.extend(versus.differences.iter().map(|found| level_row(name, versus, found)));
    }
    let drawn = rows.cells.iter().any(|row| row[11].value.is_number());
    let spec = include_str!("../../assets/charts/added.json");
    drawn.then(|| Chart::named("added", title, spec, &rows))
}

fn level_row(comparison: &str, versus: &Versus, found: &Difference) -> Vec<Cell> {
    let role = versus.targets.iter().find(|t| t.name == found.target).map(|target| target.role);
    // The drawing has one row for each figure of a target, and one for its tail.
    let is_drawn = found.reference == versus.reference()
        && (found.kind == Kind::Added && found.quantile == "p50"
            || found.kind == Kind::Shift
                && found.figure == versus.headline
                && found.quantile == "p99");
    let limited = found.limited().filter(|_| is_drawn);
    let measured = found.measured().filter(|_| limited.is_some());
    let what = if found.kind == Kind::Added { "median" } else { "p99" };
    let place = if comparison.is_empty() { String::new() } else { format!("{comparison}: ") };
    let refused = found.refused.as_deref().unwrap_or_default();
    let words = found.words().unwrap_or_else(|| format!("{DASH} {refused}"));
    let mut row = vec![
        Cell::text(&found.target),
        Cell::text(&found.reference),
        Cell::text(found.figure.title()),
        Cell::text(&found.kind.name().replace('_', " ")),
        Cell::text(&found.quantile),
        Cell::new((), words),
        Cell::new((), or_dash(found.generator_ns.map(|nanos| nanos / NANOS), time)),
        Cell::new((), or_dash(found.p, p_value)),
        Cell::count(found.pairs),
        Cell::text(&format!("{place}{}, {}, {what}", found.target, found.figure.title())),
        Cell::value(if role == Some(Role::Control) { "control" } else { "target" }),
    ];
    let ends = [
        limited.map(|(value, ..)| value),
        limited.map(|(_, low, _)| low),
        limited.map(|(.., high)| high),
        measured.map(|(_, low, _)| low),
        measured.map(|(.., high)| high),
    ];
    row.extend(ends.map(|nanos| Cell::value(nanos.map(|nanos| nanos / NANOS))));
    row
}
