//! The levels of load of a run as one small document: `levels.json`, and what `--json` prints.

use std::collections::BTreeMap;

use plimsoll_metrics::bounded_figure::REFUSED_SHARE;
use plimsoll_metrics::{
    Bias, BoundedFigure, DistributionSummary, Group, Metric, QUANTILES, Refusal, RunSummary,
    ValueSummary,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run_screen::{run_bounds, run_findings, run_verdict};
use crate::screen::Item;
use crate::shown_summary;

/// Version of the layout of `levels.json`.
pub const SCHEMA: &str = "plimsoll.levels/1";

/// Throughputs and speeds that differ by less than these shares count as equal, so chance does not
/// separate levels: throughputs without an interval are known to 5 %.
const NOISE: [f64; 2] = [REFUSED_SHARE, 0.01];

/// The figures of a run by level of load, with their intervals. Times are in milliseconds.
#[serde_with::skip_serializing_none]
#[expect(clippy::struct_field_names, reason = "names of the file")]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Levels {
    /// Version of the layout: `plimsoll.levels/1`.
    pub schema: String,
    /// Name of the run.
    pub name: String,
    /// The URLs of its targets.
    pub targets: Vec<String>,
    /// The models that were asked for.
    pub models: Vec<String>,
    /// The last line of the screen.
    pub verdict: String,
    /// The thresholds with their measured values, and the findings, as on the screen.
    pub findings: Vec<String>,
    /// The bounds of a good request.
    pub goodput: Option<String>,
    /// Input tokens that each request asked for, on average.
    pub isl_asked: Option<f64>,
    /// Output tokens that each request asked for, on average.
    pub osl_asked: Option<f64>,
    /// The levels, in their order.
    pub levels: Vec<LevelFigures>,
    /// The scenarios over all levels, where there are several; of `llm` each is a model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<LevelFigures>,
}

/// The figures of a level.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelFigures {
    /// Name, as the screen has it: `8 users`, `50/s`.
    pub level: String,
    /// Virtual users, where they make the load.
    pub users: Option<f64>,
    /// Requests per second that were planned, where a rate makes the load.
    pub rate: Option<f64>,
    /// Length in seconds.
    pub duration_s: f64,
    /// Requests.
    pub requests: u64,
    /// The share of them that succeeded, from 0 to 1.
    #[serialize_always]
    pub ok: Option<f64>,
    /// Whether no other level is better in throughput or speed per user and at least equal in the
    /// other.
    pub pareto: bool,
    /// Completed requests per second.
    #[serialize_always]
    pub requests_per_s: Option<RateFigure>,
    /// Output tokens per second of all users.
    pub tokens_per_s: Option<RateFigure>,
    /// Output tokens per second of one user: 1 / TPOT.
    pub tokens_per_s_per_user: Option<RateFigure>,
    /// Good requests per second.
    pub goodput_per_s: Option<RateFigure>,
    /// The share of good requests, from 0 to 1.
    pub good: Option<f64>,
    /// The share of the input tokens that repeat a shared prefix (`prefix_pool`).
    pub repeated: Option<f64>,
    /// The share of the input tokens that were cached, by usage, where shared prefixes are sent.
    pub cached: Option<f64>,
    /// Input tokens of a request, on average.
    pub isl: Option<f64>,
    /// Output tokens of a request, on average.
    pub osl: Option<f64>,
    /// Times by metric, like `ttft_ms`.
    pub times: BTreeMap<String, TimeFigures>,
}

/// A rate with the interval that it may lie in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateFigure {
    /// The rate.
    pub value: f64,
    /// Lower limit.
    pub low: f64,
    /// Upper limit; `null` if unknown.
    pub high: Option<f64>,
}

/// Times of the requests of a level, in milliseconds. A percentile that needs more requests is left
/// out.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeFigures {
    /// Number of values.
    pub n: u64,
    /// Median.
    pub p50: f64,
    /// Lower end of the median's 95 % interval; of fewer than 6 values the smallest.
    pub p50_low: f64,
    /// Upper end of the median's 95 % interval; of fewer than 6 values the largest.
    pub p50_high: f64,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Mean.
    pub mean: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// The measurement error of the median.
    pub generator: Option<f64>,
    /// The figures that unfinished requests may make larger.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<String>,
}

impl Levels {
    /// The levels of a run.
    pub fn new(summary: &RunSummary) -> Self {
        let summary = &*shown_summary(summary);
        let metadata = &summary.metadata;
        let headline = metadata.headline_time();
        let mut levels: Vec<_> = measured(summary)
            .map(|group| {
                let name = group.stage.as_deref().unwrap_or_default();
                let stage = metadata.stages.iter().find(|stage| stage.name == name);
                LevelFigures {
                    level: level_name(summary, name),
                    users: stage.and_then(|stage| stage.users),
                    rate: group
                        .rates
                        .planned_rate_per_s
                        .filter(|_| stage.is_some_and(|stage| stage.users.is_none()))
                        .map(rounded),
                    ..figures(group, headline)
                }
            })
            .collect();
        for index in pareto(summary) {
            levels[index].pareto = true;
        }
        let scenarios = Some(&summary.results.by_scenario).filter(|groups| groups.len() > 1);
        let judged = run_bounds(summary).into_iter().chain(run_findings(summary));
        let mut models: Vec<_> =
            metadata.targets.iter().map(|target| target.model.clone()).collect();
        models.retain(|model| !model.is_empty());
        Self {
            schema: SCHEMA.to_owned(),
            name: metadata.run.name.clone(),
            targets: metadata.targets.iter().map(|target| target.url.clone()).collect(),
            models,
            verdict: run_verdict(summary).1,
            findings: judged.map(|item| sentence(&item)).collect(),
            goodput: metadata.goodput.clone(),
            isl_asked: metadata.input_tokens_asked,
            osl_asked: metadata.output_tokens_asked,
            levels,
            scenarios: scenarios
                .into_iter()
                .flatten()
                .map(|group| {
                    let level = group.scenario.clone().unwrap_or_default();
                    LevelFigures { level, ..figures(group, headline) }
                })
                .collect(),
        }
    }
}

/// The measured stages that sent something: those after the end of a sweep did not.
pub fn measured(summary: &RunSummary) -> impl Iterator<Item = &Group> {
    let stages = summary.results.by_stage.iter().filter(|stage| !stage.warmup);
    stages.filter(|stage| stage.counters.scheduled > 0)
}

/// Whether a run consists of levels: several stages, each of one number of users, or each of one
/// rate.
pub fn is_sweep(summary: &RunSummary) -> bool {
    let stages: Vec<_> = summary
        .metadata
        .stages
        .iter()
        .filter(|stage| !stage.warmup)
        .map(|stage| &*stage.name)
        .collect();
    stages.len() > 1
        && ["", "@"].iter().any(|sign| stages.iter().all(|stage| is_plain(stage, sign)))
}

/// The name of a stage; in a sweep the name of its load: `8:30s` is 8 users, `@2:30s` 2 requests
/// per second.
pub fn level_name(summary: &RunSummary, stage: &str) -> String {
    let shape = stage.split(':').next().unwrap_or_default();
    match shape.strip_prefix('@') {
        _ if !is_sweep(summary) || stage.contains('#') || shape == stage => stage.to_owned(),
        Some(rate) => format!("{rate}/s"),
        None if shape == "1" => "1 user".to_owned(),
        None => format!("{shape} users"),
    }
}

/// The levels that no other one beats in throughput and speed per user, by their places.
pub fn pareto(summary: &RunSummary) -> Vec<usize> {
    let points: Vec<_> = measured(summary).map(point).collect();
    if is_sweep(summary) { non_dominated(&points) } else { Vec::new() }
}

/// Tokens per second of one user: 1 / TPOT; without streams, responses per second of one user.
pub fn speed(group: &Group) -> Option<RateFigure> {
    let tpot = group.distribution(Metric::Tpot);
    let middle = tpot.or_else(|| group.distribution(Metric::ServiceTime))?.middle()?;
    let [value, low, high] =
        [middle.figure.value, middle.ends[1], middle.ends[0]].map(|ms| rounded(1e3 / ms));
    let high = Some(high).filter(|high| high.is_finite());
    value.is_finite().then_some(RateFigure { value, low, high })
}

/// Output tokens per second; completed requests per second where no tokens are counted.
pub fn throughput(group: &Group) -> Option<RateFigure> {
    let tokens = group.token_rate().map(|tokens| tokens.figure);
    tokens.or_else(|| group.named_rate("throughput")).map(rate_figure)
}

fn figures(group: &Group, headline: Metric) -> LevelFigures {
    let tokens = group.tokens.as_ref();
    let rate = |name| group.named_rate(name).map(rate_figure);
    let repeated = group.rates.repeated_share.filter(|share| *share > 0.0);
    let shown = [headline, Metric::Ttft, Metric::Ttfot, Metric::Tpot, Metric::Itl];
    let times = shown.into_iter().filter_map(|metric| {
        let times = group.distribution(metric).filter(|_| is_shown(group, metric))?;
        Some((metric.key().to_owned(), time_figures(times)?))
    });
    LevelFigures {
        duration_s: rounded(group.duration_s),
        requests: group.counters.scheduled,
        ok: group.counters.ok_share().map(rounded),
        requests_per_s: rate("throughput"),
        tokens_per_s: group.token_rate().map(|tokens| rate_figure(tokens.figure)),
        tokens_per_s_per_user: group.distribution(Metric::Tpot).and_then(|_| speed(group)),
        goodput_per_s: rate("goodput"),
        good: group.rates.good_share.map(rounded),
        repeated: repeated.map(rounded),
        cached: group.rates.cached_share.filter(|_| repeated.is_some()).map(rounded),
        isl: rounded_mean(tokens.and_then(|tokens| tokens.input_tokens.as_ref())),
        osl: rounded_mean(tokens.and_then(|tokens| tokens.output_tokens.as_ref())),
        times: times.collect(),
        ..LevelFigures::default()
    }
}

/// Whether a time says more than another one: TTFOT only where reasoning was streamed.
pub fn is_shown(group: &Group, metric: Metric) -> bool {
    let [later, first] = [Metric::Ttfot, Metric::Ttft]
        .map(|metric| Some(group.distribution(metric)?.raw_mean_min_max()[0]));
    metric != Metric::Ttfot || later > first
}

fn time_figures(times: &DistributionSummary) -> Option<TimeFigures> {
    let middle = times.middle()?;
    let [mean, min, max] = times.raw_mean_min_max().map(rounded);
    let [_, p90, p95, p99, _] =
        QUANTILES.map(|quantile| times.raw_quantile(&quantile).map(rounded));
    let censored = times.refused.iter().filter(|(_, why)| **why == Refusal::Censored);
    Some(TimeFigures {
        n: times.count,
        p50: rounded(middle.figure.value),
        p50_low: rounded(middle.ends[0]),
        p50_high: rounded(middle.ends[1]),
        p90,
        p95,
        p99,
        mean,
        min,
        max,
        generator: Some(middle.figure.bound).filter(|bound| *bound > 0.0).map(rounded),
        at_least: censored.map(|(key, _)| key.clone()).collect(),
    })
}

fn rate_figure(figure: BoundedFigure) -> RateFigure {
    let [low, high] = figure.limits(Bias::Takes).map(rounded);
    RateFigure {
        value: rounded(figure.value),
        low,
        high: Some(high).filter(|high| high.is_finite()),
    }
}

/// The limits of throughput and of speed.
fn point(group: &Group) -> Option<[[f64; 2]; 2]> {
    Some([ends(throughput(group)?), ends(speed(group)?)])
}

/// Whether a level is at least equal to another in both figures and better in one, within their
/// limits.
fn beats(one: &[[f64; 2]; 2], other: &[[f64; 2]; 2]) -> bool {
    let mut pairs = one.iter().zip(other).zip(NOISE).map(|((a, b), noise)| (a[0], b[1], noise));
    let as_much = pairs.clone().all(|(a, b, noise)| a >= b * (1.0 - noise));
    as_much && pairs.any(|(a, b, noise)| a > b * (1.0 + noise))
}

fn non_dominated(points: &[Option<[[f64; 2]; 2]>]) -> Vec<usize> {
    let known = points.iter().enumerate().filter_map(|(at, point)| Some((at, point.as_ref()?)));
    let best = known.filter(|(_, point)| !points.iter().flatten().any(|other| beats(other, point)));
    best.map(|(at, _)| at).collect()
}

fn sentence(item: &Item) -> String {
    let parts = [item.word(), item.text().trim(), item.advice().unwrap_or_default()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Five significant digits: no figure is known better.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// Whether the name of a stage is a number of users, or with `@` as its sign a rate.
fn is_plain(stage: &str, sign: &str) -> bool {
    let shape = stage.split(':').next().and_then(|shape| shape.strip_prefix(sign));
    shape.is_some_and(|shape| shape.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
        && !stage.contains("..")
}

fn rounded_mean(part: Option<&ValueSummary>) -> Option<f64> {
    part.map(|part| rounded(part.mean))
}

fn ends(figure: RateFigure) -> [f64; 2] {
    [figure.low, figure.high.unwrap_or(f64::INFINITY)]
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::StageInfo;
    use plimsoll_rules::Finding;

    use super::*;

    #[test]
    fn pareto_points_are_those_that_no_other_beats() {
        let point = |rate: f64, speed: f64| Some([[rate; 2], [speed; 2]]);
        let points = [point(10.0, 9.0), point(20.0, 8.0), point(19.0, 7.0), None];
        assert_eq!(non_dominated(&points), [0, 1]);
        assert_eq!(non_dominated(&[point(640.0, 500.2), point(2_560.0, 500.0)]), [1]);
        assert_eq!(non_dominated(&[point(1.0, 1.0), point(1.0, 1.0)]), [0, 1]);
        // 8 users in a queue for 4 slots, whose first answers do not wait as long as the others.
        assert_eq!(non_dominated(&[point(19.88, 4.98), point(20.56, 2.49)]), [0]);
        // 12 within 9 to 15 is not surely more than 10.
        assert_eq!(non_dominated(&[point(10.0, 9.0), Some([[9.0, 15.0], [9.0; 2]])]), [0, 1]);
    }

    #[test]
    fn numbers_have_five_digits() {
        for (value, shown) in
            [(12.345_67, 12.346), (0.001_234_567, 0.001_234_6), (123_456.7, 123_460.0), (0.0, 0.0)]
        {
            assert!((rounded(value) - shown).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn levels_of_a_sweep_are_named_by_their_load() {
        let run = |stages: &[&str]| {
            let mut summary = RunSummary::default();
            summary.metadata.stages = stages
                .iter()
                .map(|name| StageInfo { name: (*name).to_owned(), ..StageInfo::default() })
                .collect();
            summary
        };
        let sweep = run(&["1:30s", "8:30s"]);
        for (stage, name) in [("1:30s", "1 user"), ("8:30s", "8 users")] {
            assert_eq!(level_name(&sweep, stage), name);
            assert_eq!(level_name(&sweep, name), name);
        }
        // A finding named the notation, which no row of the table has.
        let findings = vec![Finding::new(601).with("stage", "8:30s")];
        let sweep = RunSummary { findings, ..sweep };
        let shown = shown_summary(&shown_summary(&sweep)).into_owned();
        assert_eq!(shown.findings[0].values["stage"], "8 users");
        assert_eq!(level_name(&run(&["@0.5:30s", "@1:30s"]), "@0.5:30s"), "0.5/s");
        for stages in
            [&["8:30s"][..], &["8:30s", "@1:30s"], &["1:30s", "1..8:30s"], &["1:30s", "sine:30s"]]
        {
            assert_eq!(level_name(&run(stages), stages[0]), stages[0]);
        }
    }
}
