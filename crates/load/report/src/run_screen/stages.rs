//! One line for each stage, and for each of several scenarios.

use plimsoll_metrics::{DistributionSummary, Group, Metric, QUANTILES, RunSummary, samples_needed};

use crate::format;
use crate::levels::{is_shown, is_sweep, level_name, measured, pareto, speed, throughput};
use crate::screen::{Rows, Screen};
use crate::table::Table;

/// Places of percentiles in `QUANTILES`.
const P50: usize = 0;
const P95: usize = 2;
const P99: usize = 3;
/// Completed requests per second are shown that differ from those sent by more.
const DIFFERS: f64 = 0.05;

/// So many levels of a sweep are all shown.
const LEVELS: usize = 8;
/// The most stages: first, worst, last.
const MOST: usize = 12;

const HEAD: [&str; 20] = [
    "", "n", "sent/s", "done/s", "ok", "good", "tokens/s", "per user", "TTFT", "TTFOT", "TPOT",
    "ISL", "OSL", "service", "p50", "p90", "p95", "p99", "max", "ITL",
];
/// Notation of cells; a heading explains only the notation that it needs.
const NOTATION: &str = "[]: 95 % interval; (a to b): min, max; >=: lower limit; *: Pareto-optimal; \
    (-x): up to x less without Plimsoll; (+x): up to x more without Plimsoll";
/// Columns at the end that a narrow terminal may omit, beside the columns of streams.
const SPARE: usize = 5;

pub(super) fn add(screen: &mut Screen, summary: &RunSummary) {
    let stages: Vec<_> = measured(summary).collect();
    let best = pareto(summary);
    let named = stages.iter().enumerate().map(|(index, stage)| {
        let name = level_name(summary, stage.stage.as_deref().unwrap_or_default());
        if best.contains(&index) { format!("{name} *") } else { name }
    });
    let first = by_importance(&stages, summary.metadata.headline_time());
    // The levels of a sweep are read together.
    let least = if best.is_empty() || stages.len() > LEVELS { 0 } else { LEVELS };
    let rows = Rows { unit: "stages", first, least, ..figures(summary, &stages, named) };
    screen.rows(&heading(summary, &stages), rows);
    let scenarios = summary.results.by_scenario.iter();
    let scenarios: Vec<_> = scenarios.filter(|group| group.counters.scheduled > 0).collect();
    if scenarios.len() > 1 && is_sweep(summary) {
        let named = scenarios.iter().map(|group| group.scenario.clone().unwrap_or_default());
        screen
            .rows("by scenario", Rows { unit: "scenarios", ..figures(summary, &scenarios, named) });
    }
}

/// The Pareto-optimal level of a sweep with the highest low end of its throughput's interval.
pub(super) fn peak(summary: &RunSummary) -> Option<String> {
    let levels: Vec<_> = measured(summary).collect();
    let best = pareto(summary).into_iter().map(|index| levels[index]);
    let peak = best.max_by(|a, b| least_per_s(a).total_cmp(&least_per_s(b)))?;
    let unit = if peak.token_rate().is_some() { "tokens/s" } else { "requests/s" };
    let name = level_name(summary, peak.stage.as_deref().unwrap_or_default());
    let ttft = peak.distribution(Metric::Ttft).map(|times| format!(", TTFT {}", median(times)));
    let user = peak.distribution(Metric::Tpot).and_then(|_| speed(peak));
    let user = user.map(|user| format!(", {} tokens/s per user", format::digits(user.value)));
    let [ttft, user] = [ttft, user].map(Option::unwrap_or_default);
    Some(format!(
        "Highest proven throughput: {} {unit} at {name}{ttft}{user}.",
        format::digits(least_per_s(peak))
    ))
}

fn figures(summary: &RunSummary, groups: &[&Group], names: impl Iterator<Item = String>) -> Rows {
    let metric = summary.metadata.headline_time();
    let shown = Shown {
        n: groups.iter().any(|group| is_few(group, metric)),
        p95: has(groups, metric, P95),
        p99: has(groups, metric, P99),
        p90: has(groups, metric, 1),
        streams: has_streams(groups),
        ok: groups.iter().any(|group| group.counters.ok_share().is_some_and(|ok| ok < 1.0)),
        ttfot: groups.iter().any(|group| is_shown(group, Metric::Ttfot)),
    };
    let mut table = Table::new(HEAD);
    for (group, name) in groups.iter().zip(names) {
        table.row(row(name, group, metric, &shown));
    }
    let spare_columns = if shown.streams { SPARE } else { 0 };
    Rows { table, most: MOST, spare_columns, ..Rows::default() }
}

/// Columns that are shown if a row has a value in them.
struct Shown {
    n: bool,
    p90: bool,
    p95: bool,
    p99: bool,
    streams: bool,
    ok: bool,
    ttfot: bool,
}

fn has_streams(groups: &[&Group]) -> bool {
    groups.iter().any(|group| group.distribution(Metric::Ttft).is_some())
}

/// Whether a median of a group needs its interval beside it.
fn is_few(group: &Group, metric: Metric) -> bool {
    let times = group.distribution(metric);
    times.is_some_and(|times| times.count < samples_needed(QUANTILES[P50].q))
}

/// Completed requests per second, where they are not those sent.
fn completed(stage: &Group) -> String {
    let throughput = stage.named_rate("throughput");
    let values = stage.named_rate("achieved_rate").zip(throughput);
    let differs =
        values.is_some_and(|(sent, done)| (sent.value - done.value).abs() > sent.value * DIFFERS);
    if differs { format::limited_rate(throughput) } else { String::new() }
}

/// The median service time, where responses waited for a slot of `max_in_flight`.
fn service(stage: &Group) -> String {
    let times = stage.distribution(Metric::ServiceTime);
    let times = times.filter(|_| stage.counters.arrivals_held() > 0);
    times.map_or_else(String::new, |times| format::limited_time(times.figure(&QUANTILES[0])))
}

/// Whether a group has requests enough for this one of `QUANTILES`.
fn has(groups: &[&Group], metric: Metric, quantile: usize) -> bool {
    groups.iter().any(|group| {
        let times = group.distribution(metric);
        times.is_some_and(|times| times.raw_quantile(&QUANTILES[quantile]).is_some())
    })
}

/// The columns of times, the tokens asked for, and the notation of limits that are shown.
fn heading(summary: &RunSummary, stages: &[&Group]) -> String {
    let time = summary.metadata.headline_time().title().to_lowercase();
    let asked = [
        ("ISL", summary.metadata.input_tokens_asked),
        ("OSL", summary.metadata.output_tokens_asked),
    ];
    let mut unconnected = stages.iter().map(|stage| stage.counters.unsent_in_stage);
    let asked = asked.map(|(name, asked)| asked.map(|n| format!("{name} {n:.0}")));
    let asked: Vec<_> = asked.into_iter().flatten().collect();
    let streams = has_streams(stages);
    let lacks_blocks =
        stages.iter().any(|stage| stage.counters.judged > 0 && !completed(stage).is_empty());
    let parts = [
        (true, format!("percentiles: {time}")),
        (lacks_blocks, "done/s: without blocks".to_owned()),
        (streams, "other times: medians".to_owned()),
        (streams && !asked.is_empty(), format!("requested: {}", asked.join(", "))),
        (unconnected.any(|n| n > 0), "sent/s: requests with a connection".to_owned()),
        (true, NOTATION.to_owned()),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| part.0).map(|part| part.1).collect();
    parts.join("; ")
}

fn median(times: &DistributionSummary) -> String {
    match times.figure(&QUANTILES[P50]) {
        None => format::or_dash(times.middle(), |middle| format::middle(&middle)),
        figure => format::limited_time(figure),
    }
}

/// The maximum replaces the percentiles if no stage has enough requests for one, and the 90th
/// percentile replaces the 95th: all of them do not fit into a line of 80 columns.
fn row(name: String, group: &Group, metric: Metric, shown: &Shown) -> [String; HEAD.len()] {
    let of = |metric: Metric, text: &dyn Fn(&DistributionSummary) -> String| {
        group.distribution(metric).map_or_else(String::new, text)
    };
    let time =
        |quantile: usize| of(metric, &|times| format::percentile(times, &QUANTILES[quantile]));
    let mark = if group.has_estimated_tokens(Metric::Tpot) { "~" } else { "" };
    let tokens = group.tokens.as_ref();
    let user = group.distribution(Metric::Tpot).and_then(|_| speed(group));
    [
        name,
        only(shown.n, of(metric, &|times| format::count(times.count))),
        format::limited_rate(group.named_rate("achieved_rate")),
        completed(group),
        only(shown.ok || !shown.streams, format::share_of(group.counters.ok_share())),
        group.rates.good_share.map(format::share).unwrap_or_default(),
        group
            .token_rate()
            .map_or_else(String::new, |tokens| format::token_rate(&tokens, format::limited_rate)),
        user.map_or_else(String::new, |user| format!("{mark}{}", format::digits(user.value))),
        of(Metric::Ttft, &median),
        only(shown.ttfot, of(Metric::Ttfot, &median)),
        of(Metric::Tpot, &|times| format!("{mark}{}", median(times))),
        length(shown, "", tokens.and_then(|tokens| Some(tokens.input_tokens?.mean))),
        length(shown, mark, tokens.and_then(|tokens| Some(tokens.output_tokens?.mean))),
        service(group),
        of(metric, &median),
        only(shown.p90 && !shown.p95, time(1)),
        only(shown.p95, time(P95)),
        only(shown.p99, time(P99)),
        only(!shown.p95, of(metric, &|times| format::limited_time(Some(times.max_figure())))),
        of(Metric::Itl, &median),
    ]
}

/// The first stage, the last one, and then the worst: with the most requests without an answer, and
/// of equal ones the slowest.
fn by_importance(stages: &[&Group], metric: Metric) -> Vec<usize> {
    let mut others: Vec<_> = (1..stages.len().saturating_sub(1)).collect();
    others.sort_by(|a, b| {
        let (a, b) = (badness(stages[*a], metric), badness(stages[*b], metric));
        b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)).then(b.2.total_cmp(&a.2))
    });
    [0, stages.len().saturating_sub(1)].into_iter().chain(others).collect()
}

/// The share that got no good answer, then the 99th percentile, then the median.
fn badness(stage: &Group, metric: Metric) -> (f64, f64, f64) {
    let unanswered = 1.0 - stage.counters.ok_share().unwrap_or(1.0);
    let [p99, median] = [P99, 0].map(|quantile| {
        let times = stage.distribution(metric);
        times.and_then(|times| times.raw_quantile(&QUANTILES[quantile])).unwrap_or_default()
    });
    (unanswered, p99, median)
}

fn least_per_s(group: &Group) -> f64 {
    throughput(group).map_or(0.0, |rate| rate.low)
}

fn only(is_shown: bool, text: String) -> String {
    if is_shown { text } else { String::new() }
}

fn length(shown: &Shown, mark: &str, part: Option<f64>) -> String {
    only(shown.streams, part.map_or_else(String::new, |tokens| format!("{mark}{tokens:.0}")))
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::{Counters, Rates};

    use super::*;

    /// 300 requests at 30/s, some of which were completed within the stage.
    #[test]
    fn completed_requests_per_second_are_shown_where_they_differ_from_those_sent() {
        for (done, rejected, as_expected, shown) in [
            (30.0, 0, 0, ""),
            (29.0, 0, 0, ""),
            (19.5, 0, 0, "19.5"),
            // 96 unexpected refusals, then 75 blocks: all as expected, and 40 of them wrong.
            (20.4, 96, 0, "20.4"),
            (22.5, 75, 300, "22.5"),
            (22.5, 75, 260, "22.5"),
            // The backlog of a warm-up ends in the stage.
            (36.0, 0, 0, "36.0"),
        ] {
            let counters = Counters {
                scheduled: 300,
                completed: 300 - rejected,
                rejected,
                judged: as_expected,
                as_expected,
                unexpected: rejected * u64::from(as_expected == 0),
                ..Counters::default()
            };
            let (achieved_rate_per_s, throughput_per_s) = (Some(30.0), Some(done));
            let rates = Rates { achieved_rate_per_s, throughput_per_s, ..Rates::default() };
            assert_eq!(completed(&Group { counters, rates, ..Group::default() }), shown, "{done}");
        }
    }
    /// A rate of connected requests stood beside a share of all.
    #[test]
    fn the_heading_names_the_basis_of_the_rate_where_requests_got_no_connection() {
        for (unsent_in_stage, is_named) in [(0, false), (4, true)] {
            let counters = Counters { unsent_in_stage, ..Counters::default() };
            let stage = Group { counters, ..Group::default() };
            let text = heading(&RunSummary::default(), &[&stage]);
            assert_eq!(text.contains("; sent/s: requests with a connection; "), is_named, "{text}");
        }
    }
}
