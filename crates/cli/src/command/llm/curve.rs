//! The levels side by side, and the curve of throughput against the speed that a user gets.

use plimsoll_metrics::{
    BoundedFigure, DistributionSummary, Group, Metric, QUANTILES, samples_needed,
};
use plimsoll_report::format::{self, DASH};
use plimsoll_report::screen::{Item, Rest, Rows, Screen, Tone, debug_build};
use plimsoll_report::table::Table;
use plimsoll_report::{run_bounds, run_findings, run_verdict};

use super::sweep::throughput;
use crate::session::FinishedRun;

const HEAD: [&str; 12] = [
    "", "req/s", "ok", "tokens/s", "per user", "TTFT", "p90", "TPOT", "response", "mean", "max",
    "good",
];
/// The most levels that are shown.
const MOST: usize = 12;
/// Positions of the quantiles.
const P50: usize = 0;
const P90: usize = 1;
/// The whole time that the table shows.
const SHOWN: Metric = Metric::ResponseTime;

/// A level of load: its name and figures.
struct Level<'a> {
    name: String,
    group: &'a Group,
}

impl Level<'_> {
    /// Tokens per second of one user: 1 / TPOT. Without streams: answers per second of one user.
    fn speed(&self) -> Option<f64> {
        let time = self.median_ms(Metric::Tpot).or_else(|| self.median_ms(Metric::ServiceTime))?;
        (time > 0.0).then(|| 1e3 / time)
    }

    fn median_ms(&self, metric: Metric) -> Option<f64> {
        self.group.distribution(metric)?.raw_quantile(&QUANTILES[P50])
    }

    /// The limits of throughput and of speed.
    fn point(&self) -> Option<[[f64; 2]; 2]> {
        Some([throughput(self.group), [self.speed()?; 2]])
    }
}

/// The screen of one run with several levels, or of several runs with one.
pub(super) fn screen(runs: &[FinishedRun]) -> Screen {
    let mut screen = Screen::new(Rest::Flag);
    let levels: Vec<_> = runs.iter().flat_map(levels).collect();
    let streams = levels.iter().any(|level: &Level<'_>| level.median_ms(Metric::Tpot).is_some());
    if let Some(first) = runs.first() {
        screen.title(&title(first, runs.len()));
    }
    screen.judged("", "thresholds", bounds(runs), runs.len());
    let best = pareto(&levels);
    let shown = Columns::from_levels(&levels);
    let mut table = Table::new(HEAD);
    for (index, level) in levels.iter().enumerate() {
        let is_best = levels.len() > 1 && best.contains(&index);
        let name = format!("{}{}", level.name, if is_best { " *" } else { "" });
        table.row(row(&name, level, shown));
    }
    let rows = Rows { table, unit: "levels", most: MOST, drops_dashes: true, ..Rows::default() };
    screen.rows(&heading(&levels, &best), rows);
    // A single run says itself that none of its levels has a median.
    let some_have = levels.iter().any(|level| level.median_ms(SHOWN).is_some());
    screen.stands_out(without_median(&levels).filter(|_| some_have || runs.len() > 1));
    if let [run] = runs {
        screen.rows("by model", models(run));
    }
    if levels.len() > 1 && !best.is_empty() {
        let best: Vec<_> = best.iter().map(|index| levels[*index].name.clone()).collect();
        let both = if streams { "tokens/s and per user" } else { "throughput and speed" };
        screen.fact(&format!("Pareto points (no level has more {both}): {}", best.join(", ")));
    }
    for run in runs {
        let (tone, text) = run_verdict(&run.summary);
        // What all runs of a sweep have in common is not worth a line for each.
        let (several, named) = (runs.len() > 1, levels_of_run(run));
        let items = run_findings(&run.summary).into_iter();
        let items = items.filter(|_| !several || tone != Tone::Good);
        screen.stands_out(items.map(|item| if several { item.named(&named) } else { item }));
        let mut own = Screen::new(Rest::Flag);
        let text = if several && tone != Tone::Good { format!("{text} ({named})") } else { text };
        own.verdict(tone, &text);
        screen = screen.and(own);
    }
    match runs {
        [FinishedRun { rest: Rest::Folder(path), .. }] => screen.folder(path),
        [
            FinishedRun { rest: Rest::Folder(first), .. },
            ..,
            FinishedRun { rest: Rest::Folder(last), .. },
        ] => {
            screen.file(&format!("files: {first} to {last}"));
        }
        _ => {}
    }
    if let [FinishedRun { summary, .. }] = runs {
        screen.fact(&plimsoll_report::run_requests(summary));
    }
    screen
}

/// Columns that are there if a level has something to say in them.
#[derive(Clone, Copy)]
struct Columns {
    /// Some answers were not good ones.
    ok: bool,
    /// A level has too few answers for a median of the whole time.
    mean_and_max: bool,
}

impl Columns {
    fn from_levels(levels: &[Level<'_>]) -> Self {
        let mut success = levels.iter().filter_map(|level| level.group.rates.success_rate);
        Self {
            ok: success.any(|ok| ok < 1.0),
            mean_and_max: levels.iter().any(|level| level.median_ms(SHOWN).is_none()),
        }
    }
}

/// What the columns are, as far as there are such; `best` are the levels that no other one beats.
fn heading(levels: &[Level<'_>], best: &[usize]) -> String {
    let has = |metric: Metric, quantile: usize| {
        levels.iter().any(|level| {
            let times = level.group.distribution(metric);
            times.is_some_and(|times| times.raw_quantile(&QUANTILES[quantile]).is_some())
        })
    };
    let parts = [
        (has(SHOWN, P50), if has(Metric::Ttft, P90) { "medians, and TTFT p90" } else { "medians" }),
        (has(Metric::Tpot, P50), "per user: tokens/s = 1 / TPOT"),
        (levels.len() > 1 && !best.is_empty(), "* Pareto point"),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| part.0).map(|part| part.1).collect();
    parts.join("; ")
}

/// The thresholds with what was measured, of several runs by level.
fn bounds(runs: &[FinishedRun]) -> Vec<Item> {
    let found = runs.iter().flat_map(|run: &FinishedRun| {
        let items = run_bounds(&run.summary).into_iter();
        items.map(|item| if runs.len() > 1 { item.named(&levels_of_run(run)) } else { item })
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|item| std::cmp::Reverse(item.tone()));
    found
}

/// Why levels have dashes for times, by the number of their answers.
fn without_median(levels: &[Level<'_>]) -> Option<Item> {
    let lack = levels.iter().filter(|level: &&Level<'_>| level.median_ms(SHOWN).is_none());
    let named: Vec<_> = lack
        .map(|level: &Level<'_>| {
            format!("{} has {}", level.name, format::count(level.group.counters.completed))
        })
        .collect();
    if named.is_empty() {
        return None;
    }
    let needed = samples_needed(QUANTILES[P50].q);
    let text = format!("a median needs {needed} answers: {}", named.join(", "));
    Some(Item::new(Tone::Unsure, &text).fix("longer levels: -d 2m"))
}

fn title(run: &FinishedRun, runs: usize) -> String {
    let metadata = &run.summary.metadata;
    let url = metadata.targets.first().map_or("", |target| &target.url);
    let models: Vec<_> = match metadata.scenarios.as_slice() {
        [_] => metadata.targets.iter().map(|target| target.model.as_str()).collect(),
        several => several.iter().map(String::as_str).collect(),
    };
    let runs = if runs > 1 { format!(", {runs} runs") } else { String::new() };
    let build = debug_build(&metadata.environment);
    format!("llm: {url}, model {}{runs}{build}", models.join(", "))
}

fn levels(run: &FinishedRun) -> impl Iterator<Item = Level<'_>> {
    let measured = run.summary.results.by_stage.iter().filter(|group| !group.warmup);
    measured.filter(|group| group.counters.scheduled > 0).map(|group: &Group| Level {
        name: level_name(group.stage.as_deref().unwrap_or_default()),
        group,
    })
}

fn levels_of_run(run: &FinishedRun) -> String {
    levels(run).map(|level| level.name).collect::<Vec<_>>().join(", ")
}

/// What a stage is called: `8:30s` is 8 users, `@2:30s` 2 requests per second.
fn level_name(stage: &str) -> String {
    let shape = stage.split(':').next().unwrap_or_default();
    match shape.strip_prefix('@') {
        Some(rate) => format!("{rate}/s"),
        None if shape == "1" => "1 user".to_owned(),
        None => format!("{shape} users"),
    }
}

fn row(name: &str, level: &Level<'_>, shown: Columns) -> Vec<String> {
    let group = level.group;
    let whole = |of: fn(&DistributionSummary) -> BoundedFigure| {
        let times = group.distribution(SHOWN).filter(|_| shown.mean_and_max);
        times.map_or_else(String::new, |times| format::limited_time(Some(of(times))))
    };
    let ok = if shown.ok { format::share_of(group.rates.success_rate) } else { String::new() };
    let [ttft_p50, ttft_p90, tpot, response] =
        [(Metric::Ttft, P50), (Metric::Ttft, P90), (Metric::Tpot, P50), (SHOWN, P50)].map(
            |(metric, quantile)| {
                let times = group.distribution(metric);
                format::limited_time(times.and_then(|times| times.figure(&QUANTILES[quantile])))
            },
        );
    let tokens = group.token_rate().map_or_else(
        || DASH.to_owned(),
        |tokens| format::token_rate(&tokens, format::limited_rate),
    );
    let per_user = level.median_ms(Metric::Tpot).and_then(|_| level.speed());
    let mark =
        if per_user.is_some() && group.has_estimated_tokens(Metric::Tpot) { "~" } else { "" };
    vec![
        name.to_owned(),
        format::limited_rate(group.named_rate("throughput")),
        ok,
        tokens,
        per_user
            .map_or_else(|| DASH.to_owned(), |speed| format!("{mark}{}", format::digits(speed))),
        ttft_p50,
        ttft_p90,
        format!("{mark}{tpot}"),
        response,
        whole(DistributionSummary::mean_figure),
        whole(DistributionSummary::max_figure),
        group.rates.good_share.map_or_else(|| DASH.to_owned(), format::share),
    ]
}

/// A row for each of several models.
fn models(run: &FinishedRun) -> Rows {
    let groups = &run.summary.results.by_scenario;
    let models: Vec<_> = groups.iter().map(|group| Level { name: String::new(), group }).collect();
    let shown = Columns::from_levels(&models);
    let mut table = Table::new(HEAD);
    for model in models.iter().filter(|_| groups.len() > 1) {
        table.row(row(&model.group.scenario.clone().unwrap_or_default(), model, shown));
    }
    Rows { table, unit: "models", most: MOST, drops_dashes: true, ..Rows::default() }
}

/// The levels that no other one beats.
fn pareto(levels: &[Level<'_>]) -> Vec<usize> {
    let points: Vec<_> = levels.iter().map(Level::point).collect();
    non_dominated(&points)
}

/// Figures that differ by less than this share are equal: levels are not told apart by chance.
const NOISE: f64 = 0.01;

/// Whether a level has as much of both as another, and more of one, within their limits.
fn beats(one: &[[f64; 2]; 2], other: &[[f64; 2]; 2]) -> bool {
    let mut pairs = one.iter().zip(other).map(|(one, other)| (one[0], other[1]));
    let as_much = pairs.clone().all(|(a, b)| a >= b * (1.0 - NOISE));
    as_much && pairs.any(|(a, b)| a > b * (1.0 + NOISE))
}

fn non_dominated(points: &[Option<[[f64; 2]; 2]>]) -> Vec<usize> {
    let known =
        points.iter().enumerate().filter_map(|(index, point)| Some((index, point.as_ref()?)));
    let best = known.filter(|(_, point)| !points.iter().flatten().any(|other| beats(other, point)));
    best.map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pareto_points_are_those_that_no_other_beats() {
        let point = |rate: f64, speed: f64| Some([[rate; 2], [speed; 2]]);
        let points = [point(10.0, 9.0), point(20.0, 8.0), point(19.0, 7.0), None];
        assert_eq!(non_dominated(&points), [0, 1]);
        assert_eq!(non_dominated(&[point(640.0, 500.2), point(2_560.0, 500.0)]), [1]);
        assert_eq!(non_dominated(&[point(1.0, 1.0), point(1.0, 1.0)]), [0, 1]);
        // 12 within 9 to 15 is not surely more than 10.
        assert_eq!(non_dominated(&[point(10.0, 9.0), Some([[9.0, 15.0], [9.0; 2]])]), [0, 1]);
    }

    #[test]
    fn levels_are_named_by_their_load() {
        for (stage, name) in [("1:30s", "1 user"), ("8:30s", "8 users"), ("@0.5:30s", "0.5/s")] {
            assert_eq!(level_name(stage), name);
        }
    }
}
